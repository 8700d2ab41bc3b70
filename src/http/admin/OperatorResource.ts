import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, identity, Redacted, Schema } from "effect"
import { Role } from "../../domain/Organization.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { Audit, AuditRow } from "../../services/admin/AuditLog.ts"
import * as Operations from "../../services/admin/OperatorOperations.ts"
import { Operator, Operators } from "../../services/admin/Operators.ts"
import { body, field, optionalField } from "../../services/resources/ResourceInput.ts"
import { TextOrNull } from "../../services/resources/ResourceRecord.ts"
import { oneOf, queryParameter } from "../schema/Query.ts"
import {
  adminApiOf,
  ChangeErrors,
  exposeToMembers,
  OwnerOrMemberRead,
  OwnerOrMemberWrite,
  ReadAccess,
  ReadErrors
} from "./AdminAccess.ts"
import {
  cutPage,
  defaultLimit,
  filtersOf,
  organizationOf,
  organizationParameter,
  pageOf,
  pageParameters,
  parseNumericCursor,
  singlePage,
  spanParameters
} from "./AdminLists.ts"
import { answerOf, conflict, invalid, notFound, organizationReference, recordOf } from "./Fields.ts"
import { AdminOptions } from "./OperatorAuthentication.ts"

const reference = Schema.Struct({ operator: Schema.String.annotations({ description: "The id or name." }) })

const link = TextOrNull.annotations({
  description: "A one-time link to the console, valid for 24 hours. Null if an `Idempotency-Key` repeats the response."
})

export const LinkedOperator = Schema.Struct({ ...Operator.fields, link }).annotations({
  identifier: "LinkedOperator"
})

export const CreatedOperator = Schema.Struct({
  ...LinkedOperator.fields,
  token: TextOrNull.annotations({
    description: "The token. You cannot read it again. Null if an `Idempotency-Key` repeats the response."
  })
}).annotations({ identifier: "CreatedOperator" })

/** The fields that members see, of operators that are members of the same organization. */
const MemberOperator = Operator.pick("id", "name", "role", "org", "org_name", "created_at", "used_at", "revoked_at")

const listEndpoint = HttpApiEndpoint.get("list", "/operators")
  .setUrlParams(Schema.Struct(organizationParameter))
  .addSuccess(pageOf(Operator, "Operators"))
  .middleware(OwnerOrMemberRead)
  .annotate(OpenApi.Summary, "List operators, including revoked ones, oldest first, on one page")
  .annotateContext(exposeToMembers(pageOf(MemberOperator, "MemberOperators"), { parameters: ["organization"] }))

const role = field("role", ...oneOf(...Role.literals), "The operator's permissions.")

const createEndpoint = HttpApiEndpoint.post("create", "/operators")
  .setPayload(
    body({
      name: field("name", Schema.String, "must be a string", "A name that no other operator has."),
      role,
      organization: optionalField(
        "organization",
        ...organizationReference,
        "For a member: the id or name of the only accessible organization. The role must be read or write. The default for members is their own organization."
      )
    })
  )
  .addSuccess(CreatedOperator, { status: 201 })
  .middleware(OwnerOrMemberWrite)
  .annotate(OpenApi.Summary, Operations.create.summary)
  .annotateContext(
    exposeToMembers(Schema.Struct({ ...MemberOperator.fields, link, token: CreatedOperator.fields.token }))
  )

const makeLinkEndpoint = HttpApiEndpoint.post("link", "/operators/:operator/link")
  .setPath(reference)
  .addSuccess(LinkedOperator, { status: 201 })
  .middleware(OwnerOrMemberWrite)
  .annotate(OpenApi.Summary, Operations.link.summary)
  .annotateContext(exposeToMembers(Schema.Struct({ ...MemberOperator.fields, link })))

const updateEndpoint = HttpApiEndpoint.patch("update", "/operators/:operator")
  .setPath(reference)
  .setPayload(body({ role }))
  .addSuccess(Operator)
  .middleware(OwnerOrMemberWrite)
  .annotate(OpenApi.Summary, `${Operations.update.summary}; not possible for yourself, and members cannot be owners`)
  .annotateContext(exposeToMembers(MemberOperator))

const revokeEndpoint = HttpApiEndpoint.del("revoke", "/operators/:operator")
  .setPath(reference)
  .addSuccess(Operator)
  .middleware(OwnerOrMemberWrite)
  .annotate(OpenApi.Summary, `${Operations.revoke.summary}; not possible for yourself or the last owner`)
  .annotateContext(exposeToMembers(MemberOperator))

export const OperatorsGroup = HttpApiGroup.make("operators")
  .add(listEndpoint)
  .add(createEndpoint)
  .add(makeLinkEndpoint)
  .add(updateEndpoint)
  .add(revokeEndpoint)
  .addError(ChangeErrors)

const refusals = { OperatorNotFound: notFound, LockOut: conflict(null) }

export const OperatorsHandlers = HttpApiBuilder.group(
  adminApiOf(OperatorsGroup),
  "operators",
  Effect.fnUntraced(function* (handlers) {
    const operators = yield* Operators
    const { publicUrl } = yield* AdminOptions
    const linkOf = (secrets: { readonly link: Redacted.Redacted } | undefined) =>
      secrets === undefined ? null : Operations.consoleLink(publicUrl, secrets.link)

    return handlers
      .handle("list", ({ urlParams: { organization } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          return singlePage(yield* operators.list(scope, yield* organizationOf(organization)))
        })
      )
      .handle("create", ({ payload }) =>
        answerOf(Operations.create.run(payload), (record, secrets) => ({
          ...record,
          link: linkOf(secrets),
          token: secrets === undefined ? null : Redacted.value(secrets.token)
        })).pipe(
          Effect.catchTags({
            OperatorNameTaken: conflict("name"),
            NameUnavailable: conflict("name"),
            OperatorNameRefused: invalid("name"),
            MemberRoleRefused: invalid("role"),
            OrganizationNotFound: invalid("organization"),
            TooManyMembers: invalid(null),
            LockOut: refusals.LockOut
          })
        )
      )
      .handle("link", ({ path: { operator } }) =>
        answerOf(Operations.link.run(operator), (record, secrets) => ({ ...record, link: linkOf(secrets) })).pipe(
          Effect.catchTags(refusals)
        )
      )
      .handle("update", ({ path: { operator }, payload }) =>
        recordOf(Operations.update.run(operator, payload)).pipe(
          Effect.catchTags({ ...refusals, MemberRoleRefused: invalid("role") })
        )
      )
      .handle("revoke", ({ path: { operator } }) =>
        recordOf(Operations.revoke.run(operator)).pipe(Effect.catchTags(refusals))
      )
  })
)

const filter = (name: string, description: string) =>
  queryParameter(name, Schema.String, "must be a string", description)

const listAuditEndpoint = HttpApiEndpoint.get("list", "/audit")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      actor: filter("actor", "An operator's name, or `cli:` and the system user who ran the command."),
      action: filter("action", "An action such as `keys.revoke`, or a resource such as `keys` for all its actions."),
      target: filter("target", "The id of the changed object."),
      ...organizationParameter,
      ...spanParameters
    })
  )
  .addSuccess(pageOf(AuditRow, "Audit"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List operators' changes, newest first")

export const AuditGroup = HttpApiGroup.make("audit").add(listAuditEndpoint).addError(ReadErrors)

export const AuditHandlers = HttpApiBuilder.group(
  adminApiOf(AuditGroup),
  "audit",
  Effect.fnUntraced(function* (handlers) {
    const audit = yield* Audit
    return handlers.handle("list", ({ urlParams: { limit = defaultLimit, ...filters } }) =>
      Effect.gen(function* () {
        const { scope } = yield* CurrentActor
        const after = yield* parseNumericCursor(scope, filters.after)
        const rows = yield* audit.list(scope, { ...(yield* filtersOf(filters)), after, limit: limit + 1 })
        return cutPage(rows, limit, identity<AuditRow>, ({ id }) => String(id))
      })
    )
  })
)
