import { HttpApiBuilder } from "@effect/platform"
import { Effect, Redacted } from "effect"
import * as Operations from "../../../services/admin/OperatorOperations.ts"
import { Operators } from "../../../services/admin/Operators.ts"
import { AdminApi } from "../AdminApi.ts"
import { answerOf, conflict, invalid, notFound, recordOf } from "../Fields.ts"
import { AdminOptions } from "../OperatorAuthentication.ts"
import { wholePage } from "../Page.ts"

const unknown = { OperatorNotFound: notFound }

export const OperatorsHandlers = HttpApiBuilder.group(
  AdminApi,
  "operators",
  Effect.fnUntraced(function* (handlers) {
    const operators = yield* Operators
    const { publicUrl } = yield* AdminOptions
    const linkOf = (made: { readonly link: Redacted.Redacted } | undefined) =>
      made === undefined ? null : Operations.consoleLink(publicUrl, made.link)

    return handlers
      .handle("list", () => Effect.map(operators.list, wholePage))
      .handle("create", ({ payload }) =>
        answerOf(Operations.create.run(payload), (record, made) => ({
          ...record,
          link: linkOf(made),
          token: made === undefined ? null : Redacted.value(made.token)
        })).pipe(
          Effect.catchTags({
            OperatorNameTaken: conflict("name"),
            OperatorNameRefused: invalid("name"),
            MemberRoleRefused: invalid("role"),
            OrganizationNotFound: invalid("organization")
          })
        )
      )
      .handle("link", ({ path: { operator } }) =>
        answerOf(Operations.link.run(operator), (record, made) => ({ ...record, link: linkOf(made) })).pipe(
          Effect.catchTags(unknown)
        )
      )
      .handle("revoke", ({ path: { operator } }) =>
        recordOf(Operations.revoke.run(operator)).pipe(Effect.catchTags({ ...unknown, LockOut: conflict(null) }))
      )
  })
)
