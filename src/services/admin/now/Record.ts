import { Schema } from "effect"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "../../resources/Record.ts"

const Millis = Schema.NullOr(Schema.Number)

export const Figures = Schema.Struct({
  requests: Schema.Number,
  errors: Schema.Number,
  refusals: Schema.Number,
  charge_usd: Usd,
  cost_usd: Usd,
  /** Over the requests whose cost is known; null where that is none of those charged. */
  margin_usd: Schema.NullOr(Usd),
  cost_unknown: Schema.Number,
  first_byte_p50_ms: Millis,
  first_byte_p95_ms: Millis
}).annotations({ identifier: "Figures" })
export type Figures = typeof Figures.Type

const Hour = Schema.Struct({
  hour: UnixSeconds,
  ...Figures.pick("requests", "errors", "refusals", "charge_usd").fields
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

const AttentionKind = Schema.Literal(
  "low_balance",
  "stuck_video",
  "webhook_failing",
  "webhook_failed",
  "catalog_problem",
  "old_hold",
  "model_down",
  "circuit",
  "route_disabled",
  "sold_below_cost",
  "cost_unknown",
  "cost_drift",
  "payment_refused",
  "payment_disputed",
  "payment_reversal_amount"
)
export type AttentionKind = typeof AttentionKind.Type

const Attention = Schema.Struct({
  kind: AttentionKind,
  title: Schema.String,
  detail: Schema.String,
  org: Schema.optional(Schema.String),
  org_name: Schema.optional(Schema.String),
  /** A place in the console. */
  href: Schema.String
})
export type Attention = typeof Attention.Type

export const NowRecord = Schema.Struct({
  at: UnixSeconds,
  /** Since midnight, UTC. */
  today: Figures,
  /** The same span a day before. */
  yesterday: Figures,
  /** 48 hours, oldest first. */
  hours: Schema.Array(Hour),
  holds: Holds,
  circuits: Schema.Array(Circuit),
  attention: Schema.Array(Attention)
}).annotations({ identifier: "Now" })
export type NowRecord = typeof NowRecord.Type
