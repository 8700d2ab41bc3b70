import {
  HttpApiBuilder,
  HttpApiEndpoint,
  HttpApiGroup,
  HttpApiSchema,
  HttpServerRequest,
  HttpServerResponse,
  OpenApi
} from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, identity, Schema, Stream, Struct } from "effect"
import { InsufficientRole } from "../../domain/Failure.ts"
import { duration, durationForms } from "../../domain/Moment.ts"
import { toUsdText } from "../../domain/Money.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import * as Changes from "../../services/admin/CreditChanges.ts"
import { RefundRecord, TopUpRecord } from "../../services/admin/CreditChanges.ts"
import { currentReadSlots } from "../../services/admin/ReadLimiter.ts"
import { Entry, ListedEntry } from "../../services/ledger/Entry.ts"
import { entryLines, holdLines, LedgerAdmin, type WouldOverdraw } from "../../services/ledger/LedgerAdmin.ts"
import { OpenHold } from "../../services/ledger/OpenHolds.ts"
import { type Counts, type Proof, Verification } from "../../services/ledger/Verification.ts"
import { body, field, optionalField, Text } from "../../services/resources/ResourceInput.ts"
import { UnixSeconds } from "../../services/resources/ResourceRecord.ts"
import { csvBody, streamCsv } from "../CsvAnswers.ts"
import { oneOf, parseWith, queryParameter } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, exposeToMembers, ReadAccess, ReportErrors, WriteAccess } from "./AdminAccess.ts"
import {
  cutPage,
  defaultLimit,
  filtersOf,
  invalidCursor,
  organizationOf,
  organizationParameter,
  pageOf,
  pageParameters,
  parseNumericCursor,
  spanParameters
} from "./AdminLists.ts"
import {
  conflict,
  invalid,
  noteText,
  notFound,
  organizationReference,
  paymentReference,
  recordOf,
  usd
} from "./Fields.ts"

const filters = {
  ...organizationParameter,
  ...spanParameters,
  kind: queryParameter("kind", ...oneOf(...Entry.fields.kind.literals), "The kind of entry. The default is all."),
  hold: queryParameter("hold", Schema.UUID, "must be the id of a hold", "A hold's id: lists its charge and refunds.")
}

/** Excludes references and notes, which only operators may see. */
const MemberEntry = ListedEntry.pick(
  "id",
  "at",
  "org",
  "org_name",
  "kind",
  "amount_usd",
  "key_id",
  "key_name",
  "request_id"
)

const listEndpoint = HttpApiEndpoint.get("list", "/ledger")
  .setUrlParams(Schema.Struct({ ...pageParameters, ...filters }))
  .addSuccess(pageOf(ListedEntry, "Entries"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List ledger entries, newest first")
  .annotateContext(
    exposeToMembers(pageOf(MemberEntry, "MemberEntries"), {
      parameters: ["limit", "after", "organization", "since", "until", "kind"]
    })
  )

const csvEndpoint = HttpApiEndpoint.get("csv", "/ledger.csv")
  .setUrlParams(Schema.Struct(filters))
  .addSuccess(csvBody("A header line, then every matching entry."))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Download ledger entries as CSV")

const holdFilters = {
  ...organizationParameter,
  older_than: queryParameter(
    "older_than",
    parseWith(duration),
    `must be ${durationForms}`,
    "The minimum age of a hold, such as 10m. The default is all."
  )
}

const holdsEndpoint = HttpApiEndpoint.get("holds", "/ledger/holds")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...holdFilters,
      state: queryParameter("state", Schema.Literal("open"), "must be open", "Only open holds are listed.")
    })
  )
  .addSuccess(pageOf(OpenHold, "OpenHolds"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List open holds and what will close them, oldest first")

const holdsCsvEndpoint = HttpApiEndpoint.get("holdsCsv", "/ledger/holds.csv")
  .setUrlParams(Schema.Struct(holdFilters))
  .addSuccess(csvBody("A header line, then every matching open hold."))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Download open holds as CSV")

const invariantsEndpoint = HttpApiEndpoint.get("invariants", "/ledger/invariants")
  .addSuccess(Schema.Struct({ data: Schema.Array(Schema.String) }).annotations({ identifier: "Invariants" }))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List the invariants that verification checks")

export const ProofLine = Schema.Struct({
  invariant: Schema.String,
  violations: Schema.Array(Schema.Record({ key: Schema.String, value: Schema.Unknown })).annotations({
    description: "The first 20 rows that break the invariant."
  }),
  count: Schema.Number.annotations({ description: "The number of rows that break the invariant." }),
  ms: Schema.Number
})

export const LastLine = Schema.Struct({
  done: Schema.Literal(true),
  holds_true: Schema.Boolean,
  organizations: Schema.Number,
  entries: Schema.Number,
  holds: Schema.Number,
  at: UnixSeconds.annotations({ description: "The time of the verified state." })
})
const encodeLine = Schema.encode(Schema.parseJson(Schema.Union(ProofLine, LastLine)))

const verifyEndpoint = HttpApiEndpoint.post("verify", "/ledger/verify")
  .addSuccess(
    Schema.String.pipe(HttpApiSchema.withEncoding({ kind: "Text", contentType: "application/x-ndjson" })).annotations({
      description:
        "One JSON line for each checked invariant: `invariant`, `violations`, `count`, `ms`. The last line has `done`, `holds_true`, `organizations`, `entries`, `holds`, `at`. Empty lines keep the connection alive. Without the last line, the result is incomplete."
    })
  )
  .middleware(ReadAccess)
  .addError(ChangeErrors)
  .annotate(OpenApi.Summary, "Verify every ledger invariant; only one verification runs at a time")

export const LedgerGroup = HttpApiGroup.make("ledger")
  .add(listEndpoint)
  .add(csvEndpoint)
  .add(holdsEndpoint)
  .add(holdsCsvEndpoint)
  .add(invariantsEndpoint)
  .add(verifyEndpoint)
  .addError(ReportErrors)

/** An empty line every second, because only a write detects that the client has disconnected. */
const emptyLines = Stream.as(Stream.tick("1 second"), "")

/** Streams steps as JSON lines. A failure destroys the connection, because a normal end would look complete. */
const linesOf = (steps: Stream.Stream<Proof | Counts>) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    let isValid = true
    return steps.pipe(
      Stream.mapEffect((step) => {
        if ("at" in step) return Effect.orDie(encodeLine({ done: true, holds_true: isValid, ...step }))
        const { millis: ms, ...proof } = step
        isValid &&= proof.count === 0
        return Effect.orDie(encodeLine({ ...proof, ms }))
      }),
      Stream.merge(emptyLines, { haltStrategy: "left" }),
      Stream.map((line) => `${line}\n`),
      Stream.encodeText,
      Stream.tapErrorCause((cause) => Effect.logError("The ledger could not be verified", cause)),
      Stream.onError(() => Effect.sync(() => NodeHttpServerRequest.toServerResponse(request).destroy()))
    )
  })

const isUuid = Schema.is(Schema.UUID)

export const LedgerHandlers = HttpApiBuilder.group(
  adminApiOf(LedgerGroup),
  "ledger",
  Effect.fnUntraced(function* (handlers) {
    const ledger = yield* LedgerAdmin
    const verification = yield* Verification
    return handlers
      .handle("list", ({ urlParams: { after: cursor, limit = defaultLimit, ...filters } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const after = yield* parseNumericCursor(scope, cursor)
          const query = { ...(yield* filtersOf(filters)), after, limit: limit + 1 }
          const rows = yield* (yield* currentReadSlots).runOrBusy(ledger.page(scope, query))
          return cutPage(rows, limit, identity<ListedEntry>, Struct.get("id"))
        })
      )
      .handle("csv", ({ urlParams }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          return yield* streamCsv("ledger.csv", entryLines(scope, yield* filtersOf(urlParams)))
        })
      )
      .handle("holds", ({ urlParams: { after, limit = defaultLimit, older_than: olderThan, organization } }) =>
        Effect.gen(function* () {
          if (after !== undefined && !isUuid(after)) return yield* invalidCursor
          const { scope } = yield* CurrentActor
          const org = yield* organizationOf(organization)
          const rows = yield* ledger.openHolds(scope, { after, limit: limit + 1, olderThan, org })
          return cutPage(rows, limit, identity<OpenHold>, Struct.get("id"))
        })
      )
      .handle("holdsCsv", ({ urlParams: { older_than: olderThan, organization } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const org = yield* organizationOf(organization)
          return yield* streamCsv("holds.csv", holdLines(scope, { olderThan, org }))
        })
      )
      .handle("invariants", () => Effect.succeed({ data: verification.invariants }))
      .handle("verify", () =>
        verification.start.pipe(
          Effect.flatMap(linesOf),
          Effect.map((lines) => HttpServerResponse.stream(lines, { contentType: "application/x-ndjson" })),
          Effect.catchTags({ VerificationRunning: conflict(null) })
        )
      )
  })
)

const noteDescription = "The reason, stored in the ledger."

const addEndpoint = HttpApiEndpoint.post("add", "/credits")
  .setPayload(
    body({
      organization: field("organization", ...organizationReference, "The organization's id or name."),
      type: field("type", ...oneOf("top_up", "adjustment"), "A payment, or a positive or negative correction."),
      amount_usd: field("amount_usd", ...usd.nonZero, "The amount in USD. Must be above 0 for a top-up."),
      ref: optionalField("ref", ...paymentReference, "The payment's reference. A reference can be used only once."),
      note: optionalField("note", ...noteText, `${noteDescription} Required for adjustments.`),
      force: optionalField(
        "force",
        Schema.Boolean,
        "must be true or false",
        "Allow a negative available balance. Requires the role owner."
      )
    })
  )
  .addSuccess(Schema.Union(TopUpRecord, Entry), { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Enter a payment, or correct a balance")

const refundEndpoint = HttpApiEndpoint.post("refund", "/credits/refunds")
  .setPayload(
    body({
      request_id: field(
        "request_id",
        Text,
        "must be a string",
        "The `x-request-id` of a response, or the id of a row in the log."
      ),
      amount_usd: optionalField(
        "amount_usd",
        ...usd.positive,
        "The amount in USD. The default is the charge that is not refunded yet."
      ),
      note: field("note", ...noteText, noteDescription)
    })
  )
  .addSuccess(RefundRecord, { status: 201 })
  .middleware(WriteAccess)
  .annotate(OpenApi.Summary, "Refund a request's charge")

export const CreditsGroup = HttpApiGroup.make("credits").add(addEndpoint).add(refundEndpoint).addError(ChangeErrors)

const explainOverdraft = ({ available }: WouldOverdraw) =>
  conflict("amount_usd")({
    message: `Only ${toUsdText(available)} USD is available. An owner can set \`force\` to allow a negative balance.`
  })

export const CreditsHandlers = HttpApiBuilder.group(adminApiOf(CreditsGroup), "credits", (handlers) =>
  handlers
    .handle("add", ({ payload: { amount_usd: amount, force, note, organization: org, ref, type } }) =>
      Effect.gen(function* () {
        if (type === "top_up") {
          if (amount < 0n) return yield* invalid("amount_usd")({ message: `\`amount_usd\` ${usd.positive[1]}.` })
          if (force === true) return yield* invalid("force")({ message: "`force` is only for adjustments." })
          return yield* recordOf(Changes.topUp({ org, amount, ref, note }))
        }
        if (ref !== undefined) return yield* invalid("ref")({ message: "`ref` is only for top-ups." })
        if (note === undefined) return yield* invalid("note")({ message: "An adjustment needs a `note`." })
        const { role } = yield* CurrentActor
        if (force === true && role !== "owner") return yield* new InsufficientRole({ needed: "owner" })
        return yield* recordOf(Changes.adjust({ org, amount, note, force: force === true }))
      }).pipe(
        Effect.catchTags({
          OrganizationNotFound: invalid("organization"),
          RefTaken: conflict("ref"),
          RefReserved: invalid("ref"),
          WouldOverdraw: explainOverdraft
        })
      )
    )
    .handle("refund", ({ payload: { amount_usd: amount, note, request_id: request } }) =>
      recordOf(Changes.refund({ request, amount, note })).pipe(
        Effect.catchTags({ RequestNotLogged: notFound, RefundRefused: conflict(null) })
      )
    )
)
