import { Schema } from "effect"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "../resources/ResourceRecord.ts"

const Millis = Schema.NullOr(Schema.Number)

export const KpiRecord = Schema.Struct({
  requests: Schema.Number,
  errors: Schema.Number,
  refusals: Schema.Number,
  charge_usd: Usd,
  cost_usd: Usd,
  /** The margin of the charged requests with a known cost. Null if there are none. */
  margin_usd: Schema.NullOr(Usd),
  cost_unknown: Schema.Number,
  first_byte_p50_ms: Millis,
  first_byte_p95_ms: Millis
}).annotations({ identifier: "Figures" })
export type KpiRecord = typeof KpiRecord.Type

const Hour = Schema.Struct({
  hour: UnixSeconds,
  ...KpiRecord.pick("requests", "errors", "refusals", "charge_usd").fields
})
export type Hour = typeof Hour.Type

export const OpenHolds = Schema.Struct({ open: Schema.Number, amount_usd: Usd })
export const OldestHold = Schema.Struct({
  id: Schema.String,
  org: Schema.String,
  org_name: Schema.String,
  amount_usd: Usd,
  created_at: UnixSeconds
})
const Holds = Schema.Struct({ ...OpenHolds.fields, oldest: Schema.NullOr(OldestHold) })
export type Holds = typeof Holds.Type

const Circuit = Schema.Struct({
  route: Schema.String,
  state: Schema.Literal("open", "half_open", "disabled"),
  until: TimeOrNull,
  last_error: TextOrNull,
  last_error_at: TimeOrNull,
  note: TextOrNull
})
export type Circuit = typeof Circuit.Type

const AlertKind = Schema.Literal(
  "low_balance",
  "stuck_video",
  "webhook_failing",
  "webhook_failed",
  "catalog_problem",
  "old_hold",
  "model_down",
  "high_error_rate",
  "route_failing",
  "circuit",
  "route_disabled",
  "sold_below_cost",
  "discount_below_cost",
  "cost_unknown",
  "cost_drift",
  "payment_refused",
  "payment_disputed",
  "payment_reversal_amount"
)
export type AlertKind = typeof AlertKind.Type

const Alert = Schema.Struct({
  kind: AlertKind,
  title: Schema.String,
  detail: Schema.String,
  org: Schema.optional(Schema.String),
  org_name: Schema.optional(Schema.String),
  /** A link within the console. */
  href: Schema.String
})
export type Alert = typeof Alert.Type

export const DashboardRecord = Schema.Struct({
  at: UnixSeconds,
  /** Since midnight UTC. */
  today: KpiRecord,
  /** From midnight UTC of the previous day to the same time of day as now. */
  yesterday: KpiRecord,
  /** 48 hours, oldest first. */
  hours: Schema.Array(Hour),
  holds: Holds,
  circuits: Schema.Array(Circuit),
  attention: Schema.Array(Alert)
}).annotations({ identifier: "Now" })
export type DashboardRecord = typeof DashboardRecord.Type
