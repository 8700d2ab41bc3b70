import { Command, Options } from "@effect/cli"
import { Effect, Redacted } from "effect"
import { Role } from "../domain/Operator.ts"
import * as Changes from "../services/admin/OperatorChanges.ts"
import { linkHours, Operators } from "../services/admin/Operators.ts"
import { change, command } from "./Commands.ts"
import { settings } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const reference = Inputs.word("OPERATOR", "an operator's name or id")

const consoleLink = (secret: Redacted.Redacted) =>
  Effect.map(settings, ({ publicUrl }) => Changes.consoleLink(publicUrl, secret))

const create = command(
  "create",
  "Let someone use the console and the admin API. Link and token are shown this once.",
  {
    name: Inputs.word("NAME", "a name that no other operator has"),
    role: Inputs.oneOf("role", Role.literals).pipe(
      Options.withDescription("read looks; write also changes; owner also manages operators and deletes organizations")
    )
  },
  Effect.fnUntraced(function* (given) {
    const { record, value } = yield* Changes.createOperator(given)
    const secrets = value && {
      link: yield* consoleLink(value.link),
      token: Redacted.value(value.token)
    }
    const { id, ...rest } = record
    const remark = `The link opens the console once, within ${linkHours} hours; the token is for scripts, and to sign in again. Neither is shown again.`
    return Output.record({ id, ...secrets, ...rest }, remark)
  })
)

const list = command(
  "list",
  "List the operators.",
  {},
  Effect.fnUntraced(function* () {
    const { list } = yield* Operators
    return Output.list((yield* list).map(Changes.operatorRecord), {
      columns: ["id", "name", "role", "created_at", "used_at", "revoked_at"],
      none: "There are no operators: gateway operators create NAME --role owner makes one."
    })
  })
)

const link = command(
  "link",
  "Make another link that opens the console once.",
  { reference },
  Effect.fnUntraced(function* (given) {
    const { record, value } = yield* Changes.linkOperator(given.reference)
    return Output.record({ id: record.id, ...(value && { link: yield* consoleLink(value.link) }), name: record.name })
  })
)

const revoke = change(
  "revoke",
  "End an operator's token, links and sessions at once.",
  { reference },
  ({ reference }) => Changes.revokeOperator(reference)
)

export const operators = Inputs.group("operators", "Who may use the console and the admin API.").pipe(
  Command.withSubcommands([create, list, link, revoke])
)
