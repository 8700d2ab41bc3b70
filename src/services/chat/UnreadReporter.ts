import { Effect } from "effect"
import type { Unread } from "../../domain/Chat.ts"
import * as Metrics from "../metrics/Metrics.ts"
import type { RequestEntry } from "../requests/RequestEntry.ts"
import type { RequestRecord } from "../requests/RequestRecord.ts"
import { LogLimit } from "../routing/LogLimit.ts"
import * as Monotonic from "../runtime/Monotonic.ts"

interface Report {
  readonly note: RequestEntry["notes"][number]
  readonly what: string
}

const reports: Readonly<Record<Unread["part"], Report>> = {
  stop_reason: { note: "stop_reason_unknown", what: "ended an answer for a reason that the gateway does not know" },
  usage: { note: "usage_unexplained", what: "counted tokens that the parts of its usage do not explain" },
  block: { note: "block_unknown", what: "put a part into an answer that the gateway does not know" }
}

/** Reports the parts of answers that the gateway cannot read: by notes, a metric, and one log line a minute for each route. */
export const makeUnreadReporter = Effect.map(Effect.clock, (clock) => {
  const limits = new Map<string, LogLimit>()

  const limitOf = (key: string): LogLimit => {
    const limit = limits.get(key) ?? new LogLimit()
    limits.set(key, limit)
    return limit
  }

  return (record: RequestRecord, { unread }: { readonly unread: ReadonlyArray<Unread> }): Effect.Effect<void> => {
    const route = record.route?.id ?? "none"
    const now = Monotonic.millisOf(clock)
    return Effect.forEach(
      unread,
      ({ detail, part }) => {
        const { note, what } = reports[part]
        record.notes.add(note)
        Metrics.unsafeCount(Metrics.unread, { part, route })
        if (limitOf(`${part} ${route}`).enter(now) === undefined) return Effect.void
        return Effect.annotateLogs(Effect.logWarning(`Route ${route} ${what}: ${detail}`), {
          request_id: record.requestId
        })
      },
      { discard: true }
    )
  }
})
