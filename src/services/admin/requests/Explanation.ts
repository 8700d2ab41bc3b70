import { Effect, Schema } from "effect"
import type { Model } from "../../../domain/Model.ts"
import type { OrganizationScope } from "../../../domain/OrganizationScope.ts"
import { PriceLists } from "../../catalog/PriceLists.ts"
import { Entry } from "../../ledger/Entry.ts"
import { type HoldRow, LedgerAdmin } from "../../ledger/LedgerAdmin.ts"
import { TimeOrNull, UnixSeconds, Usd } from "../../resources/Record.ts"
import type { RequestRow } from "../../telemetry/RequestLog.ts"
import { VideoAdmin } from "../../videos/VideoAdmin.ts"
import { VideoRecord, videoRecord } from "../VideoRecord.ts"
import { explainPrice, PriceRecord } from "./Price.ts"
import { LogRecord, logRecord } from "./Record.ts"
import { TimelineEvent, timelineOf } from "./Timeline.ts"

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
    video: video === undefined ? null : videoRecord(video)
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
