import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Record, Schema } from "effect"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { toFields } from "../requests/RequestColumns.ts"
import { requestCounts } from "../requests/RequestCounts.ts"
import { isLockTimeout } from "../sql/Outage.ts"
import { rowsOf } from "../sql/SqlStatement.ts"
import { report, type UsageCursor, type UsageQuery } from "./UsageSql.ts"

/** `cost` includes failed attempts. `margin` is that of the requests with a known cost, or null if there are none. */
export class UsageRow extends Schema.Class<UsageRow>("UsageRow")({
  /** The value by which rows are grouped. Null for requests that lack it, such as a model. */
  group: Schema.NullOr(Schema.String),
  label: Schema.NullOr(Schema.String),
  /** The value of the second grouping. Null without a second grouping. */
  subgroup: Schema.NullOr(Schema.String),
  sublabel: Schema.NullOr(Schema.String),
  requests: Schema.NumberFromString,
  /** Responses with status 500 or above, and broken streams. */
  errors: Schema.NumberFromString,
  /** Responses with status 400 to 498. */
  refusals: Schema.NumberFromString,
  ...toFields(Record.map(requestCounts, () => Schema.NumberFromString)),
  charge: NanoUsdFromRow,
  cost: NanoUsdFromRow,
  margin: Schema.NullOr(NanoUsdFromRow),
  uncosted: Schema.NumberFromString,
  /** The provider-reported cost, including requests without a known cost. */
  statedCost: NanoUsdFromRow,
  /** The catalog cost of the requests that have both costs. */
  comparedCost: NanoUsdFromRow,
  /** The provider-reported cost of the requests that have both costs, minus `comparedCost`. */
  costDrift: NanoUsdFromRow,
  isTotal: Schema.Boolean
}) {}

interface UsageReport {
  readonly rows: ReadonlyArray<UsageRow>
  /** Totals over all pages. */
  readonly totals: UsageRow
  /** The cursor of the next page. */
  readonly next: UsageCursor | undefined
}

/** Usage reports for any period. They include requests whose log rows are already deleted. */
export class Usage extends Context.Tag("gateway/Usage")<
  Usage,
  { readonly report: (scope: OrganizationScope, query: UsageQuery) => Effect.Effect<UsageReport> }
>() {
  static readonly layer = Layer.effect(
    Usage,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return Usage.of({
        report: Effect.fn("Usage.report")(function* (scope: OrganizationScope, query: UsageQuery) {
          const scopedQuery = { ...query, org: scope.narrow(query.org) }
          const reportRows = yield* rowsOf(UsageRow)(report(sql, scopedQuery, "unknown"))
          const totals = reportRows.at(-1)
          if (totals === undefined) return yield* Effect.dieMessage("a report has no totals")
          const { limit = Infinity } = query
          const rows = reportRows.slice(0, -1)
          const page = rows.slice(0, limit)
          const last = page.at(-1)
          const next = last !== undefined && page.length < rows.length ? last : undefined
          return { rows: page, totals, next: next && { group: next.group, subgroup: next.subgroup } }
        })
      })
    })
  )
}

/** The number of rows per transaction. Small, because updates of these rows wait for the transaction. */
const batchSize = 5_000

const CountResult = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ counted: Schema.Number })))

/**
 * Adds all queued log rows to the usage totals (see `requests/RequestColumns.ts`). Does nothing while another gateway does
 * so.
 */
export const countUsage = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [{ counted }] = yield* Effect.flatMap(sql`SELECT count_uncounted(${batchSize}) AS counted`, CountResult)
  return counted === batchSize
}).pipe(
  Effect.catchIf(isLockTimeout, () => Effect.succeed(false)),
  Effect.uninterruptible,
  Effect.repeat({ while: (isFull) => isFull }),
  Effect.asVoid
)
