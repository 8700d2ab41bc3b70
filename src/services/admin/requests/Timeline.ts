import { Array as Arr, Schema } from "effect"
import { toUsdText } from "../../../domain/Money.ts"
import type { HoldRow } from "../../ledger/LedgerAdmin.ts"
import { TextOrNull } from "../../resources/Record.ts"
import type { Recorded } from "./Price.ts"

export const TimelineEvent = Schema.Struct({
  event: Schema.String,
  /**
   * Since the request came, never before the event above; of attempts the log has only how long each took. Holds,
   * refunds and the ends of videos are dated by the database, all else by the gateway.
   */
  at_ms: Schema.optional(Schema.Number),
  took_ms: Schema.optional(Schema.Number),
  detail: Schema.optional(TextOrNull)
})
export type TimelineEvent = typeof TimelineEvent.Type

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
  const attempts = video?.attempts ?? row.attempts
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
    ...attempts.map(({ cost, detail, ms, outcome, provider, providerRequestId, route, status }, index) => ({
      event: `attempt ${index + 1}`,
      took_ms: ms,
      detail: joinParts(
        route,
        provider,
        outcome,
        status,
        providerRequestId,
        cost === undefined ? "" : `cost ${toUsdText(cost)} USD`,
        detail
      )
    })),
    ...(row.firstByteMs === null ? [] : [{ event: "first byte", at_ms: row.firstByteMs }]),
    ...(isLate ? [] : settled),
    { event: "answered", at_ms: row.totalMs, detail: joinParts(row.status, row.code, row.error?.message) },
    ...(video?.completedAt
      ? [
          {
            event: video.status,
            at_ms: since(video.completedAt),
            detail: joinParts(video.errorCode, video.errorMessage) || null
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
