import type { RequestAnswer } from "../../../http/admin/RequestResource.ts"
import type { NamedLogRecord } from "../../../services/admin/RequestAdmin.ts"
import type { Status, Tone } from "../../parts/Status.ts"

/** Amounts in USD, times in Unix seconds. Members get no internal fields. */
export type RequestRecord = typeof NamedLogRecord.Encoded
export type RequestDetail = typeof RequestAnswer.Encoded

export type Attempt = RequestRecord["attempts"][number]
export type TimelineEvent = RequestDetail["timeline"][number]
export type Price = RequestDetail["price"]
export type LedgerEntry = RequestDetail["entries"][number]

const outcomes: Readonly<Record<string, Status>> = {
  ok: { text: "succeeded", tone: "good" },
  retry: { text: "failed", tone: "bad" },
  limit: { text: "rate limited", tone: "warn" },
  account: { text: "provider account rejected", tone: "bad" },
  network: { text: "connection lost", tone: "bad" },
  timeout: { text: "timed out", tone: "bad" },
  request: { text: "request rejected", tone: "warn" },
  moderation: { text: "content rejected", tone: "warn" },
  skipped: { text: "skipped, route paused", tone: "soft" },
  cancelled: { text: "cancelled", tone: "soft" }
}

export const outcomeOf = (outcome: string): Status => outcomes[outcome] ?? { text: outcome, tone: "bad" }

type VideoStatus = RequestRecord["video_status"]

const videoTones: Readonly<Record<NonNullable<VideoStatus>, Tone>> = {
  queued: "soft",
  in_progress: "soft",
  completed: "good",
  failed: "bad"
}

export const videoStatusOf = (status: NonNullable<VideoStatus>): Status => ({
  text: status.replace("_", " "),
  tone: videoTones[status]
})

/** Returns the status as a badge. A stream that breaks after status 200 is an error too. Refused videos have failed jobs. */
export const statusOf = (status: number, code: string | null, videoStatus: VideoStatus = null): Status => {
  if (videoStatus !== null && status < 400) {
    const { text, tone } = videoStatusOf(videoStatus)
    return { text: `${status} ${text}`, tone }
  }
  return {
    text: code === null ? String(status) : `${status} ${code}`,
    tone: status >= 500 || code === "stream_error" ? "bad" : status >= 400 ? "warn" : "good"
  }
}

/** Removes the model's name, with which most routes begin, because it has its own column. */
export const shortRoute = (route: string, model: string | null): string =>
  model !== null && route.startsWith(`${model}@`) ? route.slice(model.length + 1) : route

export interface Identified {
  readonly id: string
}

/** Sorts the newest rows first, as the gateway does, because ids grow with time. */
const compareNewestFirst = (a: Identified, b: Identified): number => (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)

/** Merges rows by id. Later rows replace earlier ones. */
export const merge = <Row extends Identified>(
  rows: ReadonlyArray<Row>,
  later: ReadonlyArray<Row>
): ReadonlyArray<Row> =>
  later.length === 0
    ? rows
    : [...new Map([...rows, ...later].map((row) => [row.id, row])).values()].toSorted(compareNewestFirst)

/** Splits the newest rows into new and changed ones. A gap means that rows between old and new may be missing. */
export const findArrivals = <Row extends Identified>(
  rows: ReadonlyArray<Row>,
  newest: ReadonlyArray<Row>,
  /** Whether the server has more rows after `rows`, and after `newest`. */
  more: { readonly hasMoreRows: boolean; readonly hasMoreNewest: boolean }
): { readonly arrivals: ReadonlyArray<Row>; readonly updates: ReadonlyArray<Row>; readonly isGap: boolean } => {
  const ids = new Set(rows.map(({ id }) => id))
  const updates = newest.filter(({ id }) => ids.has(id))
  // Rows after the last current row belong to a later page.
  const last = more.hasMoreRows ? rows.at(-1) : undefined
  const arrivals = newest.filter((row) => !ids.has(row.id) && (last === undefined || compareNewestFirst(row, last) < 0))
  return { arrivals, updates, isGap: more.hasMoreNewest && updates.length === 0 && newest.length > 0 }
}
