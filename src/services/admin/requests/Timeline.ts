import { Schema } from "effect"
import { toUsdText } from "../../../domain/Money.ts"
import type { HoldRow } from "../../ledger/LedgerAdmin.ts"
import type { Recorded } from "./Price.ts"

export const TimelineEvent = Schema.Struct({
  event: Schema.String,
  /** Since the request came; of attempts the log has only how long each took. */
  at_ms: Schema.optional(Schema.Number),
  took_ms: Schema.optional(Schema.Number),
  detail: Schema.optional(Schema.NullOr(Schema.String))
})
export type TimelineEvent = typeof TimelineEvent.Type

const told = (...parts: ReadonlyArray<string | number | null | undefined>) =>
  parts.filter((part) => part !== null && part !== undefined && part !== "").join(" ")

const settlementOf = ({ charged, closedAt, state }: HoldRow, since: (at: Date) => number) => {
  if (closedAt === null) return []
  const detail = charged === null ? "nothing charged" : `${toUsdText(charged)} USD charged`
  return [{ event: state, at_ms: since(closedAt), detail }]
}

export const timelineOf = ({ money, row, video }: Recorded): ReadonlyArray<TimelineEvent> => {
  const since = (at: Date) => Math.max(0, at.getTime() - row.at.getTime())
  const hold = money?.hold
  const attempts = video?.attempts ?? row.attempts
  const settled = hold === undefined ? [] : settlementOf(hold, since)
  return [
    { event: "received", at_ms: 0, detail: told(row.surface, row.model, row.stream ? "stream" : "") },
    ...(hold === undefined
      ? []
      : [{ event: "admitted", at_ms: since(hold.createdAt), detail: `${toUsdText(hold.amount)} USD held` }]),
    ...attempts.map(({ cost, detail, ms, outcome, provider, providerRequestId, route, status }, index) => ({
      event: `attempt ${index + 1}`,
      took_ms: ms,
      detail: told(
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
    ...(video === undefined ? settled : []),
    { event: "answered", at_ms: row.totalMs, detail: told(row.status, row.code) },
    ...(video?.completedAt ? [{ event: video.status, at_ms: since(video.completedAt), detail: video.errorCode }] : []),
    ...(video === undefined ? [] : settled),
    ...(money?.entries ?? []).flatMap(({ amount, at, kind, note }) =>
      kind === "adjustment"
        ? [{ event: "refunded", at_ms: since(at), detail: told(toUsdText(amount), "USD", note) }]
        : []
    )
  ]
}
