import { HttpApiBuilder, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, identity, Schema, Stream, Struct } from "effect"
import { CurrentActor } from "../../../services/admin/Actor.ts"
import { entryLines, holdLines } from "../../../services/admin/LedgerCsv.ts"
import { currentTurns } from "../../../services/admin/ReadTurns.ts"
import type { ListedEntry } from "../../../services/ledger/Entry.ts"
import { LedgerAdmin } from "../../../services/ledger/LedgerAdmin.ts"
import type { OpenHold } from "../../../services/ledger/OpenHolds.ts"
import { type Counts, type Proof, Verification } from "../../../services/ledger/Verification.ts"
import { AdminApi } from "../AdminApi.ts"
import { streamCsv } from "../Csv.ts"
import { conflict } from "../Fields.ts"
import { filtersOf, organizationOf } from "../Filters.ts"
import { cutPage, defaultListed, numberedAfter, wrongCursor } from "../Page.ts"
import { encodeLine } from "./Schema.ts"

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
  AdminApi,
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
