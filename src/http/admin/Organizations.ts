import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Effect, identity, Schema, Stream, Struct } from "effect"
import type { Month } from "../../domain/Month.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { Organization, settings } from "../../services/admin/Organization.ts"
import * as Operations from "../../services/admin/OrganizationOperations.ts"
import { Organizations } from "../../services/admin/Organizations.ts"
import { currentTurns } from "../../services/admin/ReadTurns.ts"
import { body, field, optionalField } from "../../services/resources/BodyFields.ts"
import { bodyOf } from "../../services/resources/Input.ts"
import { csvLinesOf, Statement } from "../../services/statements/Statement.ts"
import { Statements } from "../../services/statements/Statements.ts"
import { monthParameter, oneOf, parameter } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, OwnerAccess, ReadAccess, ReportErrors, WriteAccess } from "./Access.ts"
import { csvBody, streamCsv } from "./Csv.ts"
import { answerOf, conflict, invalid, notFound, recordOf, refuseField, usd, warningsLike } from "./Fields.ts"
import { membersDownload, membersSee } from "./Members.ts"
import { cutPage, defaultListed, pageOf, pageParameters } from "./Page.ts"

const MemberOrganization = Organization.pick(
  "id",
  "name",
  "created_at",
  "suspended",
  "balance_usd",
  "held_usd",
  "available_usd",
  "fit_holds",
  "notify_below_usd",
  "cap_usd",
  "cap_period",
  "cap_spent_usd",
  "cap_resets_at"
)

const reference = Schema.Struct({ org: Schema.String.annotations({ description: "Its id or its name." }) })

const list = HttpApiEndpoint.get("list", "/organizations")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      search: parameter("search", Schema.String, "must be a text", "An id, or a part of a name."),
      state: parameter("state", ...oneOf("active", "suspended", "deleted"), "Those that are not deleted, if left out.")
    })
  )
  .addSuccess(pageOf(Organization, "Organizations"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List organizations, newest first")

const create = HttpApiEndpoint.post("create", "/organizations")
  .setPayload(
    body({
      name: field("name", settings.name.body, settings.name.problem, `${settings.name.description}.`),
      credits_usd: optionalField("credits_usd", ...usd.nonNegative, "USD to begin with.")
    })
  )
  .addSuccess(Organization, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.create.summary)

const show = HttpApiEndpoint.get("show", "/organizations/:org")
  .setPath(reference)
  .addSuccess(Organization)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show an organization, a deleted one too")
  .annotateContext(membersSee(MemberOrganization))

const Changed = Schema.Struct({
  ...Organization.fields,
  ...warningsLike("a threshold above the balance")
}).annotations({ identifier: "ChangedOrganization" })

const update = HttpApiEndpoint.patch("update", "/organizations/:org")
  .setPath(reference)
  .setPayload(bodyOf(settings))
  .addSuccess(Changed)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.update.summary)

const suspend = HttpApiEndpoint.post("suspend", "/organizations/:org/suspend")
  .setPath(reference)
  .addSuccess(Organization)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.suspend.summary)

const resume = HttpApiEndpoint.post("resume", "/organizations/:org/resume")
  .setPath(reference)
  .addSuccess(Organization)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.resume.summary)

const remove = HttpApiEndpoint.del("delete", "/organizations/:org")
  .setPath(reference)
  .addSuccess(Organization)
  .middleware(OwnerAccess)
  .annotate(OpenApi.Summary, Operations.remove.summary)

const statement = HttpApiEndpoint.get("statement", "/organizations/:org/statement")
  .setPath(reference)
  .setUrlParams(Schema.Struct(monthParameter))
  .addSuccess(Statement)
  .middleware(ReadAccess)
  .addError(ReportErrors)
  .annotate(OpenApi.Summary, "Show what was paid and used in a month, from balance to balance")
  .annotateContext(membersSee(Statement, { parameters: ["month"] }))

const statementCsv = HttpApiEndpoint.get("statementCsv", "/organizations/:org/statement.csv")
  .setPath(reference)
  .setUrlParams(Schema.Struct(monthParameter))
  .addSuccess(csvBody("A line of names, then the opening balance, every entry, the usage, and the closing balance."))
  .middleware(ReadAccess)
  .addError(ReportErrors)
  .annotate(OpenApi.Summary, "Download the statement of a month")
  .annotateContext(membersDownload({ parameters: ["month"] }))

export const OrganizationsGroup = HttpApiGroup.make("organizations")
  .add(list)
  .add(create)
  .add(show)
  .add(update)
  .add(suspend)
  .add(resume)
  .add(remove)
  .add(statement)
  .add(statementCsv)
  .addError(ChangeErrors)

const nameRefusals = { NameTaken: conflict("name"), NameRefused: invalid("name") }
const unknown = { OrganizationNotFound: notFound }

export const OrganizationsHandlers = HttpApiBuilder.group(
  adminApiOf(OrganizationsGroup),
  "organizations",
  Effect.fnUntraced(function* (handlers) {
    const organizations = yield* Organizations
    const statements = yield* Statements
    const statementOf = (org: string, month: Month | undefined) =>
      Effect.gen(function* () {
        const { scope } = yield* CurrentActor
        const { id } = yield* organizations.findAny(scope, org)
        return yield* (yield* currentTurns).takeSoon(statements.find(scope, id, month))
      }).pipe(Effect.catchTags({ ...unknown, NoStatement: invalid("month") }))
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultListed, search, state } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const rows = yield* organizations.page(scope, { after, limit: limit + 1, search, state })
          return cutPage(rows, limit, identity<Organization>, Struct.get("id"))
        })
      )
      .handle("create", ({ payload: { credits_usd, name } }) =>
        recordOf(Operations.create.run({ name, credits: credits_usd })).pipe(Effect.catchTags(nameRefusals))
      )
      .handle("show", ({ path: { org } }) =>
        Effect.flatMap(CurrentActor, ({ scope }) => organizations.findAny(scope, org)).pipe(Effect.catchTags(unknown))
      )
      .handle("update", ({ path: { org }, payload }) =>
        answerOf(Operations.update.run(org, payload), (record) => {
          const warnings = Operations.warningsOf(payload, record)
          return warnings.length === 0 ? record : { ...record, warnings }
        }).pipe(Effect.catchTags({ ...nameRefusals, ...unknown, FieldRefused: refuseField }))
      )
      .handle("suspend", ({ path: { org } }) => Effect.catchTags(recordOf(Operations.suspend.run(org)), unknown))
      .handle("resume", ({ path: { org } }) => Effect.catchTags(recordOf(Operations.resume.run(org)), unknown))
      .handle("delete", ({ path: { org } }) =>
        recordOf(Operations.remove.run(org)).pipe(Effect.catchTags({ ...unknown, OrganizationInUse: conflict(null) }))
      )
      .handle("statement", ({ path: { org }, urlParams: { month } }) => statementOf(org, month))
      .handle("statementCsv", ({ path: { org }, urlParams: { month } }) =>
        Effect.flatMap(statementOf(org, month), (statement) =>
          streamCsv(`statement-${statement.month}.csv`, Stream.succeed(csvLinesOf(statement)))
        )
      )
  })
)
