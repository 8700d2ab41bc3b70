import { Array as Arr, Effect, Schema } from "effect"
import type { Model } from "../../../domain/Model.ts"
import { toUsdText } from "../../../domain/Money.ts"
import type { OrganizationScope } from "../../../domain/OrganizationScope.ts"
import { PriceLists } from "../../catalog/PriceLists.ts"
import { Entry } from "../../ledger/Entry.ts"
import { type HoldRow, LedgerAdmin } from "../../ledger/LedgerAdmin.ts"
import { TextOrNull, TimeOrNull, UnixSeconds, Usd } from "../../resources/Record.ts"
import type { RequestRow } from "../../telemetry/RequestLog.ts"
import { VideoAdmin, VideoRecord } from "../VideoAdmin.ts"
import { explainPrice, PriceRecord, type Recorded } from "./Price.ts"
import { attemptRecord, LogRecord, logRecord } from "./Record.ts"

const TimelineEvent = Schema.Struct({
  event: Schema.String,
  /**
   * Since the request came, never before the event above; of attempts the log has only how long each took. Holds,
   * refunds and the ends of videos are dated by the database, all else by the gateway.
   */
  at_ms: Schema.optional(Schema.Number),
  took_ms: Schema.optional(Schema.Number),
  detail: Schema.optional(TextOrNull)
})
type TimelineEvent = typeof TimelineEvent.Type

const joinParts = (...parts: ReadonlyArray<string | number | null | undefined>) =>
  parts.filter((part) => part !== null && part !== undefined && part !== "").join(" ")

const settlementOf = ({ charged, closedAt, state }: HoldRow, since: (at: Date) => number) => {
  if (closedAt === null) return []
  const detail = charged === null ? "nothing charged" : `${toUsdText(charged)} USD charged`
  return [{ event: state, at_ms: since(closedAt), detail }]
}

/** By how much the clocks of the gateway and the database may differ. */
const skewMillis = 1_000

export const timelineOf = ({ money, row, video }: Recorded): ReadonlyArray<TimelineEvent> => {
  const since = (at: Date, latest = Infinity) => Math.min(latest, at.getTime() - row.at.getTime())
  const hold = money?.hold
  const attempts = video?.attempts ?? row.attempts.map(attemptRecord)
  const isLate = video !== undefined || (hold?.closedAt && since(hold.closedAt) > row.totalMs + skewMillis)
  const settled = hold === undefined ? [] : settlementOf(hold, (at) => since(at, isLate ? Infinity : row.totalMs))
  const events: ReadonlyArray<TimelineEvent> = [
    { event: "received", at_ms: 0, detail: joinParts(row.surface, row.model, row.stream ? "stream" : "") },
    ...(hold === undefined
      ? []
      : [
          {
            event: "admitted",
            at_ms: since(hold.createdAt, row.firstByteMs ?? row.totalMs),
            detail: `${toUsdText(hold.amount)} USD held`
          }
        ]),
    ...attempts.map(({ cost_usd, detail, ms, outcome, provider, provider_request_id, route, status }, index) => ({
      event: `attempt ${index + 1}`,
      took_ms: ms,
      detail: joinParts(
        route,
        provider,
        outcome,
        status,
        provider_request_id,
        cost_usd === undefined ? "" : `cost ${toUsdText(cost_usd)} USD`,
        detail
      )
    })),
    ...(row.firstByteMs === null ? [] : [{ event: "first byte", at_ms: row.firstByteMs }]),
    ...(isLate ? [] : settled),
    { event: "answered", at_ms: row.totalMs, detail: joinParts(row.status, row.code, row.error?.message) },
    ...(video?.completed_at
      ? [
          {
            event: video.status,
            at_ms: since(video.completed_at),
            detail: joinParts(video.error?.code, video.error?.message) || null
          }
        ]
      : []),
    ...(isLate ? settled : []),
    ...(money?.entries ?? []).flatMap(({ amount_usd: amount, at, kind, note }) =>
      kind === "refund"
        ? [{ event: "refunded", at_ms: since(at), detail: joinParts(toUsdText(amount), "USD", note) }]
        : []
    )
  ]
  const [, ordered] = Arr.mapAccum(events, 0, (before, event) => {
    const latest = Math.max(before, event.at_ms ?? 0)
    return [latest, event.at_ms === undefined ? event : { ...event, at_ms: latest }]
  })
  return ordered
}

const HoldRecord = Schema.Struct({
  id: Schema.String,
  amount_usd: Usd,
  state: Schema.Literal("open", "settled", "released"),
  charged_usd: Schema.NullOr(Usd),
  created_at: UnixSeconds,
  closed_at: TimeOrNull
})

export const ExplainedRequest = Schema.Struct({
  ...LogRecord.fields,
  hold: Schema.NullOr(HoldRecord),
  timeline: Schema.Array(TimelineEvent),
  price: PriceRecord,
  entries: Schema.Array(Entry),
  video: Schema.NullOr(VideoRecord)
})
export type ExplainedRequest = typeof ExplainedRequest.Type

const holdRecord = (hold: HoldRow): typeof HoldRecord.Type => ({
  id: hold.id,
  amount_usd: hold.amount,
  state: hold.state,
  charged_usd: hold.charged,
  created_at: hold.createdAt,
  closed_at: hold.closedAt
})

const readMoney = Effect.fnUntraced(function* (scope: OrganizationScope, hold: string | null) {
  if (hold === null) return { money: undefined, video: undefined }
  const ledger = yield* LedgerAdmin
  const videos = yield* VideoAdmin
  // In this order a video that is over is never shown without its charge.
  return yield* Effect.all({ video: videos.findByHold(scope, hold), money: ledger.hold(scope, hold) })
})

/** What happened to a request, and why it cost what it did; chats by their own rates, or where these are not kept by those of `models`. */
export const explainRequest = Effect.fnUntraced(function* (
  scope: OrganizationScope,
  row: RequestRow,
  models: ReadonlyArray<Model>
) {
  const { money, video } = yield* readMoney(scope, row.holdId)
  const { find } = yield* PriceLists
  const rates = row.priceId === null ? undefined : yield* find(row.priceId)
  const recorded = { row, money, video, rates, model: models.find(({ id }) => id === row.model) }
  const price = explainPrice(recorded)
  const explained: ExplainedRequest = {
    ...logRecord(row, price.refunded_usd),
    // A job may have been charged since the row was read.
    ...(money !== undefined && { charge_usd: price.paid_usd }),
    hold: money === undefined ? null : holdRecord(money.hold),
    timeline: timelineOf(recorded),
    price,
    entries: money?.entries ?? [],
    video: video ?? null
  }
  return explained
})

/** Why the first route was chosen, where a conversation had one; null: by preference and weight. */
export const explainPreference = ({ attempts, preferredRoute, route }: RequestRow): string | null => {
  if (preferredRoute === null) return null
  const had = `${preferredRoute} had the prompt cache of the conversation`
  if (preferredRoute === route) return `${had} and answered.`
  const tried = attempts.findLast((attempt) => attempt.route === preferredRoute)
  if (tried === undefined) return `${had}, but was not called.`
  const ending = tried.outcome === "skipped" ? "its circuit was open" : `its attempt ended with ${tried.outcome}`
  return `${had}; ${ending}.`
}
