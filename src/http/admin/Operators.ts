import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, Redacted, Schema } from "effect"
import { Role } from "../../domain/Operator.ts"
import { Operator } from "../../services/admin/Operator.ts"
import * as Operations from "../../services/admin/OperatorOperations.ts"
import { Operators } from "../../services/admin/Operators.ts"
import { body, field, optionalField } from "../../services/resources/BodyFields.ts"
import { TextOrNull } from "../../services/resources/Record.ts"
import { oneOf } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, OwnerAccess } from "./Access.ts"
import { answerOf, conflict, invalid, notFound, organizationReference, recordOf } from "./Fields.ts"
import { AdminOptions } from "./OperatorAuthentication.ts"
import { pageOf, wholePage } from "./Page.ts"

const reference = Schema.Struct({ operator: Schema.String.annotations({ description: "Its id or its name." }) })

const link = TextOrNull.annotations({
  description: "Opens the console once, within 24 hours; null in a repeated answer."
})

export const LinkedOperator = Schema.Struct({ ...Operator.fields, link }).annotations({
  identifier: "LinkedOperator"
})

export const CreatedOperator = Schema.Struct({
  ...LinkedOperator.fields,
  token: TextOrNull.annotations({ description: "Shown only here; null in a repeated answer." })
}).annotations({ identifier: "CreatedOperator" })

const list = HttpApiEndpoint.get("list", "/operators")
  .addSuccess(pageOf(Operator, "Operators"))
  .middleware(OwnerAccess)
  .annotate(OpenApi.Summary, "List the operators, oldest first, revoked ones too; always whole")

const create = HttpApiEndpoint.post("create", "/operators")
  .setPayload(
    body({
      name: field("name", Schema.String, "must be a text", "A name that no other operator has."),
      role: field("role", ...oneOf(...Role.literals), "What it may do."),
      organization: optionalField(
        "organization",
        ...organizationReference,
        "Whose member it is: an id or a name. It sees this organization alone; its role is read or write."
      )
    })
  )
  .addSuccess(CreatedOperator, { status: 201 })
  .middleware(OwnerAccess)
  .annotate(OpenApi.Summary, Operations.create.summary)

const makeLink = HttpApiEndpoint.post("link", "/operators/:operator/link")
  .setPath(reference)
  .addSuccess(LinkedOperator, { status: 201 })
  .middleware(OwnerAccess)
  .annotate(OpenApi.Summary, Operations.link.summary)

const revoke = HttpApiEndpoint.del("revoke", "/operators/:operator")
  .setPath(reference)
  .addSuccess(Operator)
  .middleware(OwnerAccess)
  .annotate(OpenApi.Summary, `${Operations.revoke.summary}; neither one's own nor the last owner's`)

export const OperatorsGroup = HttpApiGroup.make("operators")
  .add(list)
  .add(create)
  .add(makeLink)
  .add(revoke)
  .addError(ChangeErrors)

const unknown = { OperatorNotFound: notFound }

export const OperatorsHandlers = HttpApiBuilder.group(
  adminApiOf(OperatorsGroup),
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
