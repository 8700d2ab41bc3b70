import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Record, Schema } from "effect"
import { NanoUsdFromRow } from "../../domain/Money.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { toFields } from "../requests/RequestColumns.ts"
import { requestCounts } from "../requests/RequestCounts.ts"
import { isLockTimeout } from "../sql/Outage.ts"
import { rowsOf } from "../sql/Statement.ts"
import { report, type UsagePlace, type UsageQuery } from "./UsageSql.ts"

/** `cost` includes failed attempts; `margin` covers what has a known cost, and is null without any. */
export class UsageRow extends Schema.Class<UsageRow>("UsageRow")({
  /** Null: requests without a model, for example. */
  group: Schema.NullOr(Schema.String),
  label: Schema.NullOr(Schema.String),
  /** Key of the second grouping; null without one. */
  subgroup: Schema.NullOr(Schema.String),
  sublabel: Schema.NullOr(Schema.String),
  requests: Schema.NumberFromString,
  /** Status 500 and above, and streams that broke. */
  errors: Schema.NumberFromString,
  /** Status 400 to 498. */
  refusals: Schema.NumberFromString,
  ...toFields(Record.map(requestCounts, () => Schema.NumberFromString)),
  charge: NanoUsdFromRow,
  cost: NanoUsdFromRow,
  margin: Schema.NullOr(NanoUsdFromRow),
  uncosted: Schema.NumberFromString,
  /** What providers say; also where the cost is not known. */
  statedCost: NanoUsdFromRow,
  /** The cost of what has a stated one too. */
  comparedCost: NanoUsdFromRow,
  /** How much more was stated than those cost. */
  costDrift: NanoUsdFromRow,
  isTotal: Schema.Boolean
}) {}

interface UsageReport {
  readonly rows: ReadonlyArray<UsageRow>
  /** Totals of all matching rows, not of the page. */
  readonly totals: UsageRow
  /** What the next page begins after. */
  readonly next: UsagePlace | undefined
}

/** What requests of any time come to, also of those whose rows are gone. */
export class Usage extends Context.Tag("gateway/Usage")<
  Usage,
  { readonly report: (scope: OrganizationScope, query: UsageQuery) => Effect.Effect<UsageReport> }
>() {
  static readonly layer = Layer.effect(
    Usage,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      return Usage.of({
        report: Effect.fn("Usage.report")(function* (scope: OrganizationScope, given: UsageQuery) {
          const query = { ...given, org: scope.narrow(given.org) }
          const found = yield* rowsOf(UsageRow)(report(sql, query, "unknown"))
          const totals = found.at(-1)
          if (totals === undefined) return yield* Effect.dieMessage("a report has no totals")
          const { limit = Infinity } = query
          const rows = found.slice(0, -1)
          const page = rows.slice(0, limit)
          const last = page.at(-1)
          const next = last !== undefined && page.length < rows.length ? last : undefined
          return { rows: page, totals, next: next && { group: next.group, subgroup: next.subgroup } }
        })
      })
    })
  )
}

/** Rows of one transaction, which changes of counted rows wait for. */
const rowsAtOnce = 5_000

const Counted = Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ counted: Schema.Number })))

/** Adds all queued rows of the log to the totals, as `requests/RequestColumns.ts` says; does nothing while another gateway adds. */
export const countUsage = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [{ counted }] = yield* Effect.flatMap(sql`SELECT count_uncounted(${rowsAtOnce}) AS counted`, Counted)
  return counted === rowsAtOnce
}).pipe(
  Effect.catchIf(isLockTimeout, () => Effect.succeed(false)),
  Effect.uninterruptible,
  Effect.repeat({ while: (isFull) => isFull }),
  Effect.asVoid
)
