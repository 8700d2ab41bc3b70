import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Clock, Effect, identity, Schema, Stream, Struct } from "effect"
import type { Month } from "../../domain/Month.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import * as Operations from "../../services/admin/OrganizationOperations.ts"
import { Organization, Organizations, settings } from "../../services/admin/Organizations.ts"
import { currentReadSlots } from "../../services/admin/ReadLimiter.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { saleStateAt } from "../../services/catalog/SaleState.ts"
import { Receipt } from "../../services/payments/PaymentRecord.ts"
import { Receipts } from "../../services/payments/Receipts.ts"
import { body, bodyOf, field, optionalField } from "../../services/resources/ResourceInput.ts"
import { csvLinesOf, Statement, Statements } from "../../services/statements/Statements.ts"
import { csvBody, streamCsv } from "../CsvAnswers.ts"
import { monthParameter, oneOf, queryParameter } from "../schema/Query.ts"
import {
  adminApiOf,
  ChangeErrors,
  exposeCsvToMembers,
  exposeToMembers,
  OwnerAccess,
  ReadAccess,
  ReportErrors,
  WriteAccess
} from "./AdminAccess.ts"
import { cutPage, defaultLimit, pageOf, pageParameters } from "./AdminLists.ts"
import { answerOf, conflict, invalid, notFound, recordOf, refuseField, usd, warningsField } from "./Fields.ts"

const MemberOrganization = Organization.pick(
  "id",
  "name",
  "created_at",
  "suspended",
  "balance_usd",
  "held_usd",
  "available_usd",
  "fit_holds",
  "discount_percent",
  "notify_below_usd",
  "cap_usd",
  "cap_period",
  "cap_spent_usd",
  "cap_resets_at"
)

const reference = Schema.Struct({ org: Schema.String.annotations({ description: "The id or name." }) })

const listEndpoint = HttpApiEndpoint.get("list", "/organizations")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      search: queryParameter("search", Schema.String, "must be a string", "An id or part of a name."),
      state: queryParameter(
        "state",
        ...oneOf("active", "suspended", "deleted"),
        "The default is all that are not deleted."
      )
    })
  )
  .addSuccess(pageOf(Organization, "Organizations"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List organizations, newest first")

const ChangedOrganization = Schema.Struct({
  ...Organization.fields,
  ...warningsField("a threshold above the balance or a discount that sells below cost")
}).annotations({ identifier: "ChangedOrganization" })

const createEndpoint = HttpApiEndpoint.post("create", "/organizations")
  .setPayload(
    body({
      name: field("name", settings.name.body, settings.name.problem, `${settings.name.description}.`),
      credits_usd: optionalField("credits_usd", ...usd.nonNegative, "The opening balance in USD."),
      discount_percent: optionalField(
        "discount_percent",
        settings.discount_percent.body,
        settings.discount_percent.problem,
        `${settings.discount_percent.description}.`
      )
    })
  )
  .addSuccess(ChangedOrganization, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.create.summary)

const showEndpoint = HttpApiEndpoint.get("show", "/organizations/:org")
  .setPath(reference)
  .addSuccess(Organization)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show an organization, including a deleted one")
  .annotateContext(exposeToMembers(MemberOrganization))

const updateEndpoint = HttpApiEndpoint.patch("update", "/organizations/:org")
  .setPath(reference)
  .setPayload(bodyOf(settings))
  .addSuccess(ChangedOrganization)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.update.summary)

const suspendEndpoint = HttpApiEndpoint.post("suspend", "/organizations/:org/suspend")
  .setPath(reference)
  .addSuccess(Organization)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.suspend.summary)

const resumeEndpoint = HttpApiEndpoint.post("resume", "/organizations/:org/resume")
  .setPath(reference)
  .addSuccess(Organization)
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, Operations.resume.summary)

const removeEndpoint = HttpApiEndpoint.del("delete", "/organizations/:org")
  .setPath(reference)
  .addSuccess(Organization)
  .middleware(OwnerAccess)
  .annotate(OpenApi.Summary, Operations.remove.summary)

const statementEndpoint = HttpApiEndpoint.get("statement", "/organizations/:org/statement")
  .setPath(reference)
  .setUrlParams(Schema.Struct(monthParameter))
  .addSuccess(Statement)
  .middleware(ReadAccess)
  .addError(ReportErrors)
  .annotate(OpenApi.Summary, "Show a monthly statement")
  .annotateContext(exposeToMembers(Statement, { parameters: ["month"] }))

const statementCsvEndpoint = HttpApiEndpoint.get("statementCsv", "/organizations/:org/statement.csv")
  .setPath(reference)
  .setUrlParams(Schema.Struct(monthParameter))
  .addSuccess(csvBody("A header line, the opening balance, every entry, the usage, and the closing balance."))
  .middleware(ReadAccess)
  .addError(ReportErrors)
  .annotate(OpenApi.Summary, "Download a monthly statement as CSV")
  .annotateContext(exposeCsvToMembers({ parameters: ["month"] }))

const receiptEndpoint = HttpApiEndpoint.get("receipt", "/organizations/:org/receipts/:entry")
  .setPath(
    Schema.Struct({
      ...reference.fields,
      entry: Schema.String.annotations({ description: "The id of a payment in a statement." })
    })
  )
  .addSuccess(Receipt)
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Show the receipt of a payment or of credits that an operator entered")
  .annotateContext(exposeToMembers(Receipt))

export const OrganizationsGroup = HttpApiGroup.make("organizations")
  .add(listEndpoint)
  .add(createEndpoint)
  .add(showEndpoint)
  .add(updateEndpoint)
  .add(suspendEndpoint)
  .add(resumeEndpoint)
  .add(removeEndpoint)
  .add(statementEndpoint)
  .add(statementCsvEndpoint)
  .add(receiptEndpoint)
  .addError(ChangeErrors)

const withWarnings = (record: Organization, warnings: ReadonlyArray<string>) =>
  warnings.length === 0 ? record : { ...record, warnings }

const nameRefusals = { NameTaken: conflict("name"), NameRefused: invalid("name") }
const refusals = { OrganizationNotFound: notFound }

export const OrganizationsHandlers = HttpApiBuilder.group(
  adminApiOf(OrganizationsGroup),
  "organizations",
  Effect.fnUntraced(function* (handlers) {
    const organizations = yield* Organizations
    const receipts = yield* Receipts
    const statements = yield* Statements
    const catalog = yield* Catalog
    const saleStates = Effect.map(Clock.currentTimeMillis, (now) =>
      catalog.current.saleStates.map((state) => saleStateAt(state, now))
    )
    const statementOf = (org: string, month: Month | undefined) =>
      Effect.gen(function* () {
        const { scope } = yield* CurrentActor
        const { id } = yield* organizations.findIncludingDeleted(scope, org)
        return yield* (yield* currentReadSlots).runOrBusy(statements.find(scope, id, month))
      }).pipe(Effect.catchTags({ ...refusals, NoStatement: invalid("month") }))
    return handlers
      .handle("list", ({ urlParams: { after, limit = defaultLimit, search, state } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const rows = yield* organizations.page(scope, { after, limit: limit + 1, search, state })
          return cutPage(rows, limit, identity<Organization>, Struct.get("id"))
        })
      )
      .handle("create", ({ payload: { credits_usd, ...organization } }) =>
        Effect.flatMap(saleStates, (saleStates) =>
          answerOf(Operations.create.run({ ...organization, credits: credits_usd }), (record) =>
            withWarnings(record, Operations.discountWarningsOf(organization, saleStates))
          )
        ).pipe(Effect.catchTags(nameRefusals))
      )
      .handle("show", ({ path: { org } }) =>
        Effect.flatMap(CurrentActor, ({ scope }) => organizations.findIncludingDeleted(scope, org)).pipe(
          Effect.catchTags(refusals)
        )
      )
      .handle("update", ({ path: { org }, payload }) =>
        Effect.flatMap(saleStates, (saleStates) =>
          answerOf(Operations.update.run(org, payload), (record) =>
            withWarnings(record, [
              ...Operations.warningsOf(payload, record),
              ...Operations.discountWarningsOf(payload, saleStates)
            ])
          )
        ).pipe(Effect.catchTags({ ...nameRefusals, ...refusals, FieldRefused: refuseField }))
      )
      .handle("suspend", ({ path: { org } }) => Effect.catchTags(recordOf(Operations.suspend.run(org)), refusals))
      .handle("resume", ({ path: { org } }) => Effect.catchTags(recordOf(Operations.resume.run(org)), refusals))
      .handle("delete", ({ path: { org } }) =>
        recordOf(Operations.remove.run(org)).pipe(Effect.catchTags({ ...refusals, OrganizationInUse: conflict(null) }))
      )
      .handle("statement", ({ path: { org }, urlParams: { month } }) => statementOf(org, month))
      .handle("receipt", ({ path: { entry, org } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const { id } = yield* organizations.findIncludingDeleted(scope, org)
          return yield* receipts.find(scope, id, entry)
        }).pipe(Effect.catchTags({ ...refusals, ReceiptNotFound: notFound }))
      )
      .handle("statementCsv", ({ path: { org }, urlParams: { month } }) =>
        Effect.flatMap(statementOf(org, month), (statement) =>
          streamCsv(`statement-${statement.month}.csv`, Stream.succeed(csvLinesOf(statement)))
        )
      )
  })
)
