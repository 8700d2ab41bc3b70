import type { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { OrganizationScope } from "../../../domain/OrganizationScope.ts"
import * as Monotonic from "../../runtime/Monotonic.ts"
import { recordsOf, rowsOf } from "../../sql/Statement.ts"
import type { Usage, UsageRow } from "../../telemetry/Usage.ts"
import { type Figures, type Holds, type Hour, OldestHold, OpenHolds } from "./Record.ts"

export const hourMillis = 3_600_000
export const dayMillis = 24 * hourMillis
const hoursShown = 48
const maxTimed = 20_000

export const floor = (at: number, unit: number) => Math.floor(at / unit) * unit

const Percentiles = Schema.Struct({ p50: Schema.NullOr(Schema.Number), p95: Schema.NullOr(Schema.Number) })

/** Latency of the newest answered requests in the hour before. */
const percentiles = (sql: SqlClient.SqlClient, until: number) =>
  Effect.map(
    rowsOf(Percentiles)(sql`
      SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY first_byte_ms) AS p50,
        percentile_disc(0.95) WITHIN GROUP (ORDER BY first_byte_ms) AS p95
      FROM (
        SELECT first_byte_ms FROM request_log
        WHERE at >= ${new Date(until - hourMillis)} AND at <= ${new Date(until)} AND status < 400
        ORDER BY at DESC, id DESC LIMIT ${maxTimed}
      ) AS newest`),
    ([row]) => ({ first_byte_p50_ms: row?.p50 ?? null, first_byte_p95_ms: row?.p95 ?? null })
  )

const countsOf = ({ charge, errors, refusals, requests }: UsageRow) => ({
  requests,
  errors,
  refusals,
  charge_usd: charge
})

const figuresOf = (totals: UsageRow, timed: Effect.Effect.Success<ReturnType<typeof percentiles>>): Figures => ({
  ...countsOf(totals),
  cost_usd: totals.cost,
  margin_usd: totals.margin ?? (totals.uncosted > 0 ? null : 0n),
  cost_unknown: totals.uncosted,
  ...timed
})

/** Today's are those of the whole day: clocks differ, and what is dated a little later has happened. */
export const readFigures = (sql: SqlClient.SqlClient, { report }: typeof Usage.Service, now: number) => {
  const midnight = floor(now, dayMillis)
  const totalsOf = (since: number, until: number) =>
    Effect.map(report(OrganizationScope.all, { by: "day", since, until }), ({ totals }) => totals)
  return Effect.all({
    today: Effect.zipWith(totalsOf(midnight, midnight + dayMillis), percentiles(sql, now), figuresOf),
    yesterday: Effect.zipWith(
      totalsOf(midnight - dayMillis, now - dayMillis),
      percentiles(sql, now - dayMillis),
      figuresOf
    )
  })
}

const keptMillis = 60_000

/** For a minute of the same hour: what changes little and takes long to add up. */
export const keepForMinute = <A>(read: (now: number) => Effect.Effect<A>) => {
  let last: { readonly hour: number; readonly readAt: number; readonly value: A } | undefined
  return Effect.fnUntraced(function* (now: number) {
    const hour = floor(now, hourMillis)
    const readAt = yield* Monotonic.millis
    if (last?.hour === hour && readAt - last.readAt < keptMillis) return last.value
    const value = yield* read(now)
    last = { hour, readAt, value }
    return value
  })
}

const hoursOf = ({ report }: typeof Usage.Service, since: number, until: number) =>
  Effect.map(
    report(OrganizationScope.all, { by: "hour", since, until }),
    ({ rows }) => new Map(rows.map((row) => [Date.parse(row.group ?? ""), countsOf(row)]))
  )

const hoursInFlux = 2
const fluxBegins = (now: number) => floor(now, hourMillis) - (hoursInFlux - 1) * hourMillis
const chartBegins = (now: number) => floor(now, hourMillis) - (hoursShown - 1) * hourMillis

export const hoursReader = (usage: typeof Usage.Service) => {
  const before = keepForMinute((now) => hoursOf(usage, chartBegins(now), fluxBegins(now)))
  return (now: number) =>
    Effect.gen(function* () {
      const older = yield* before(now)
      const newest = yield* hoursOf(usage, fluxBegins(now), floor(now, hourMillis) + hourMillis)
      const none = { requests: 0, errors: 0, refusals: 0, charge_usd: 0n }
      return Array.from({ length: hoursShown }, (_, index): Hour => {
        const at = chartBegins(now) + index * hourMillis
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
