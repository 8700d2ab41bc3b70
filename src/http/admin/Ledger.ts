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
import { duration, durationForms } from "../../domain/Moment.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { entryLines, holdLines } from "../../services/admin/LedgerCsv.ts"
import { currentTurns } from "../../services/admin/ReadTurns.ts"
import { Entry, ListedEntry } from "../../services/ledger/Entry.ts"
import { LedgerAdmin } from "../../services/ledger/LedgerAdmin.ts"
import { OpenHold } from "../../services/ledger/OpenHolds.ts"
import { type Counts, type Proof, Verification } from "../../services/ledger/Verification.ts"
import { UnixSeconds } from "../../services/resources/Record.ts"
import { oneOf, parameter, parsedBy } from "../schema/Query.ts"
import { adminApiOf, ChangeErrors, ReadAccess, ReportErrors } from "./Access.ts"
import { csvBody, streamCsv } from "./Csv.ts"
import { conflict } from "./Fields.ts"
import { filtersOf, organizationOf, organizationParameter, spanParameters } from "./Filters.ts"
import { membersSee } from "./Members.ts"
import { cutPage, defaultListed, numberedAfter, pageOf, pageParameters, wrongCursor } from "./Page.ts"

const filters = {
  ...organizationParameter,
  ...spanParameters,
  kind: parameter("kind", ...oneOf(...Entry.fields.kind.literals), "All if left out."),
  hold: parameter("hold", Schema.UUID, "must be the id of a hold", "Its charge, and what was given back of it.")
}

/** References and notes are the operators' own. */
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

const list = HttpApiEndpoint.get("list", "/ledger")
  .setUrlParams(Schema.Struct({ ...pageParameters, ...filters }))
  .addSuccess(pageOf(ListedEntry, "Entries"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List the ledger's entries, newest first")
  .annotateContext(
    membersSee(pageOf(MemberEntry, "MemberEntries"), {
      parameters: ["limit", "after", "organization", "since", "until", "kind"]
    })
  )

const csv = HttpApiEndpoint.get("csv", "/ledger.csv")
  .setUrlParams(Schema.Struct(filters))
  .addSuccess(csvBody("A line of names, then every entry that matches."))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Download the ledger's entries")

const holdFilters = {
  ...organizationParameter,
  older_than: parameter(
    "older_than",
    parsedBy(duration),
    `must be ${durationForms}`,
    "Those that have been open for so long, such as 10m; all if left out."
  )
}

const holds = HttpApiEndpoint.get("holds", "/ledger/holds")
  .setUrlParams(
    Schema.Struct({
      ...pageParameters,
      ...holdFilters,
      state: parameter("state", Schema.Literal("open"), "must be open", "Only those that are open are listed.")
    })
  )
  .addSuccess(pageOf(OpenHold, "OpenHolds"))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List open holds and what each waits for, oldest first")

const holdsCsv = HttpApiEndpoint.get("holdsCsv", "/ledger/holds.csv")
  .setUrlParams(Schema.Struct(holdFilters))
  .addSuccess(csvBody("A line of names, then every open hold that matches."))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "Download the open holds")

const names = HttpApiEndpoint.get("invariants", "/ledger/invariants")
  .addSuccess(Schema.Struct({ data: Schema.Array(Schema.String) }).annotations({ identifier: "Invariants" }))
  .middleware(ReadAccess)
  .annotate(OpenApi.Summary, "List what verifying proves")

export const ProofLine = Schema.Struct({
  invariant: Schema.String,
  violations: Schema.Array(Schema.Record({ key: Schema.String, value: Schema.Unknown })).annotations({
    description: "The first 20 rows that break it."
  }),
  count: Schema.Number.annotations({ description: "All rows that break it." }),
  ms: Schema.Number
})

export const LastLine = Schema.Struct({
  done: Schema.Literal(true),
  holds_true: Schema.Boolean,
  organizations: Schema.Number,
  entries: Schema.Number,
  holds: Schema.Number,
  at: UnixSeconds.annotations({ description: "When all of it was so." })
})
const encodeLine = Schema.encode(Schema.parseJson(Schema.Union(ProofLine, LastLine)))

const verify = HttpApiEndpoint.post("verify", "/ledger/verify")
  .addSuccess(
    Schema.String.pipe(HttpApiSchema.withEncoding({ kind: "Text", contentType: "application/x-ndjson" })).annotations({
      description:
        "A line of JSON for each invariant as it is proved: `invariant`, `violations`, `count`, `ms`; and a last one: `done`, `holds_true`, `organizations`, `entries`, `holds`, `at`. Empty lines come between them while it runs. Without the last line nothing is proved."
    })
  )
  .middleware(ReadAccess)
  .addError(ChangeErrors)
  .annotate(OpenApi.Summary, "Prove every invariant over the whole database; one run at a time")

export const LedgerGroup = HttpApiGroup.make("ledger")
  .add(list)
  .add(csv)
  .add(holds)
  .add(holdsCsv)
  .add(names)
  .add(verify)
  .addError(ReportErrors)

/** A write tells whether the client is still there. */
const emptyLines = Stream.as(Stream.tick("1 second"), "")

/** Without a last line where it fails: an end would pass for the whole. */
const linesOf = (steps: Stream.Stream<Proof | Counts>) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => {
    let holdsTrue = true
    return steps.pipe(
      Stream.mapEffect((step) => {
        if ("at" in step) return Effect.orDie(encodeLine({ done: true, holds_true: holdsTrue, ...step }))
        const { millis: ms, ...proof } = step
        holdsTrue &&= proof.count === 0
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
      .handle("list", ({ urlParams: { after: shown, limit = defaultListed, ...filters } }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          const after = yield* numberedAfter(scope, shown)
          const query = { ...(yield* filtersOf(filters)), after, limit: limit + 1 }
          const rows = yield* (yield* currentTurns).takeSoon(ledger.page(scope, query))
          return cutPage(rows, limit, identity<ListedEntry>, Struct.get("id"))
        })
      )
      .handle("csv", ({ urlParams }) =>
        Effect.gen(function* () {
          const { scope } = yield* CurrentActor
          return yield* streamCsv("ledger.csv", entryLines(scope, yield* filtersOf(urlParams)))
        })
      )
      .handle("holds", ({ urlParams: { after, limit = defaultListed, older_than: olderThan, organization } }) =>
        Effect.gen(function* () {
          if (after !== undefined && !isUuid(after)) return yield* wrongCursor
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
