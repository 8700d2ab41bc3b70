import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { inLogSpan } from "../requests/RequestColumns.ts"
import { monotonicMillis } from "../runtime/System.ts"
import { recordsOf, rowsOf } from "../sql/SqlStatement.ts"
import type { Usage, UsageRow } from "../telemetry/Usage.ts"
import { type Holds, type Hour, type KpiRecord, OldestHold, OpenHolds } from "./DashboardRecord.ts"

export const hourMillis = 3_600_000
export const dayMillis = 24 * hourMillis
const chartHours = 48
const maxTimedRequests = 20_000

export const floorTo = (at: number, unit: number) => Math.floor(at / unit) * unit

const Percentiles = Schema.Struct({ p50: Schema.NullOr(Schema.Number), p95: Schema.NullOr(Schema.Number) })

/** Reads latency percentiles of the newest successful requests in the hour before `until`. */
const readPercentiles = (sql: SqlClient.SqlClient, until: number) =>
  Effect.map(
    rowsOf(Percentiles)(sql`
      SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY first_byte_ms) AS p50,
        percentile_disc(0.95) WITHIN GROUP (ORDER BY first_byte_ms) AS p95
      FROM (
        SELECT first_byte_ms FROM request_log
        WHERE ${sql.and(inLogSpan(sql, { since: until - hourMillis, until: until + 1 }))} AND status < 400
        ORDER BY id DESC LIMIT ${maxTimedRequests}
      ) AS newest`),
    ([row]) => ({ first_byte_p50_ms: row?.p50 ?? null, first_byte_p95_ms: row?.p95 ?? null })
  )

const countsOf = ({ charge, errors, refusals, requests }: UsageRow) => ({
  requests,
  errors,
  refusals,
  charge_usd: charge
})

const toKpis = (totals: UsageRow, latency: Effect.Effect.Success<ReturnType<typeof readPercentiles>>): KpiRecord => ({
  ...countsOf(totals),
  cost_usd: totals.cost,
  margin_usd: totals.margin ?? (totals.uncosted > 0 ? null : 0n),
  cost_unknown: totals.uncosted,
  ...latency
})

/** Today's range ends at midnight and not now, because clocks differ and a request may be logged slightly in the future. */
export const readKpis = (sql: SqlClient.SqlClient, { report }: typeof Usage.Service, now: number) => {
  const midnight = floorTo(now, dayMillis)
  const totalsOf = (since: number, until: number) =>
    Effect.map(report(OrganizationScope.all, { by: "day", since, until }), ({ totals }) => totals)
  return Effect.all({
    today: Effect.zipWith(totalsOf(midnight, midnight + dayMillis), readPercentiles(sql, now), toKpis),
    yesterday: Effect.zipWith(
      totalsOf(midnight - dayMillis, now - dayMillis),
      readPercentiles(sql, now - dayMillis),
      toKpis
    )
  })
}

const cacheMillis = 60_000

/** Caches a value for a minute, or until the hour ends. For values that are slow to compute and change little. */
export const cacheForMinute = <A>(read: (now: number) => Effect.Effect<A>) => {
  let last: { readonly hour: number; readonly readAt: number; readonly value: A } | undefined
  return Effect.fnUntraced(function* (now: number) {
    const hour = floorTo(now, hourMillis)
    const readAt = yield* monotonicMillis
    if (last?.hour === hour && readAt - last.readAt < cacheMillis) return last.value
    const value = yield* read(now)
    last = { hour, readAt, value }
    return value
  })
}

const readHours = ({ report }: typeof Usage.Service, since: number, until: number) =>
  Effect.map(
    report(OrganizationScope.all, { by: "hour", since, until }),
    ({ rows }) => new Map(rows.map((row) => [Date.parse(row.group ?? ""), countsOf(row)]))
  )

const openHours = 2
const openHoursStart = (now: number) => floorTo(now, hourMillis) - (openHours - 1) * hourMillis
const chartStart = (now: number) => floorTo(now, hourMillis) - (chartHours - 1) * hourMillis

/** Returns a function that reads the hourly chart. Caches all but the newest hours, because only those change. */
export const hoursReader = (usage: typeof Usage.Service) => {
  const readOlder = cacheForMinute((now) => readHours(usage, chartStart(now), openHoursStart(now)))
  return (now: number) =>
    Effect.gen(function* () {
      const older = yield* readOlder(now)
      const newest = yield* readHours(usage, openHoursStart(now), floorTo(now, hourMillis) + hourMillis)
      const none = { requests: 0, errors: 0, refusals: 0, charge_usd: 0n }
      return Array.from({ length: chartHours }, (_, index): Hour => {
        const at = chartStart(now) + index * hourMillis
        return { hour: new Date(at), ...(newest.get(at) ?? older.get(at) ?? none) }
      })
    })
}

export const readHolds = (sql: SqlClient.SqlClient) =>
  Effect.gen(function* () {
    const [all = { open: 0, amount_usd: 0n }] = yield* recordsOf(OpenHolds)(sql`
      SELECT count(*)::int AS open, coalesce(sum(amount), 0) AS amount_usd FROM all_holds WHERE state = 'open'`)
    const [oldest = null] = yield* recordsOf(OldestHold)(sql`
      SELECT h.id, h.org_id AS org, o.name AS org_name, h.amount AS amount_usd, h.created_at
      FROM all_holds h JOIN organizations o ON o.id = h.org_id WHERE h.state = 'open' ORDER BY h.created_at LIMIT 1`)
    const holds: Holds = { ...all, oldest }
    return holds
  })
