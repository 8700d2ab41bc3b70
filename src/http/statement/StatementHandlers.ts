import { HttpApiBuilder } from "@effect/platform"
import { Effect, Schema } from "effect"
import { Statement } from "../../services/statements/Statement.ts"
import { Statements } from "../../services/statements/Statements.ts"
import { json, respond } from "../Answer.ts"
import { ResourceApi } from "../Api.ts"
import { refuse } from "../body/Refusals.ts"
import { CurrentCaller } from "../schema/Headers.ts"

const encode = Schema.encodeSync(Statement)

export const StatementHandlers = HttpApiBuilder.group(
  ResourceApi,
  "statement",
  Effect.fnUntraced(function* (handlers) {
    const statements = yield* Statements
    return handlers.handleRaw("show", ({ urlParams: { month } }) =>
      Effect.gen(function* () {
        const { org } = yield* CurrentCaller
        return respond(json(200, encode(yield* statements.findForCustomer(org, month))))
      }).pipe(Effect.catchTags({ NoStatement: ({ message }) => refuse("month", message) }))
    )
  })
)
