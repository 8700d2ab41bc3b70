import type { Tone } from "../../parts/Status.ts"
import { type Attempt, outcomeOf, type TimelineEvent } from "./Outcome.ts"

/** From 0 in steps of 1, 2 or 5 times a power of ten, up to the first that is not below the most. */
export const valueTicks = (most: number, count = 3): ReadonlyArray<number> => {
  if (!(most > 0)) return [0, 1]
  const rough = most / count
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5].find((factor) => factor * power >= rough * 0.999) ?? 10) * power
  return Array.from({ length: Math.ceil((most / step) * 0.999_999) + 1 }, (_, at) =>
    Number((at * step).toPrecision(12))
  )
}

/** A bar on the time axis, or a point where it begins and ends at once; milliseconds after the request came. */
export interface TimelineRow {
  readonly name: string
  readonly from: number
  readonly to: number
  readonly tone: Tone | "accent"
  readonly attempt?: Attempt
  readonly detail: string
}

const endings = new Set(["settled", "released", "expired"])

const toneOf = (event: string): TimelineRow["tone"] => {
  if (event === "failed") return "bad"
  if (event === "refunded") return "warn"
  return event === "settled" || event === "completed" ? "good" : "accent"
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Attempts are known by how long they took: they follow each other from the admission on. */
export const layOut = (
  events: ReadonlyArray<TimelineEvent>,
  attempts: ReadonlyArray<Attempt>
): ReadonlyArray<TimelineRow> => {
  const timeOf = (name: string) => events.find(({ event }) => event === name)?.at_ms
  const answered = timeOf("answered")
  /** Streams run from their first byte on, and renders from the answer on. */
  const beginnings: Readonly<Record<string, number | undefined>> = {
    answered: timeOf("first byte"),
    completed: answered,
    failed: answered
  }
  const ends = events.find(({ event }) => endings.has(event))?.at_ms
  const latest = Math.max(0, ...events.map(({ at_ms = 0, event }) => (event === "refunded" ? 0 : at_ms)))
  let free = 0
  let made = 0
  return events.flatMap(({ at_ms: at, detail, event, took_ms: took }): ReadonlyArray<TimelineRow> => {
    const row = { name: sentence(event), detail: detail ?? "", tone: toneOf(event) }
    if (took !== undefined) {
      const attempt = attempts[made++]
      const from = free
      free += took
      const tone = attempt === undefined ? row.tone : outcomeOf(attempt.outcome).tone
      return [{ ...row, tone, from, to: free, ...(attempt && { attempt }) }]
    }
    if (at === undefined) return [{ ...row, from: free, to: free }]
    if (event === "admitted") {
      free = at
      return [
        { ...row, name: "Admission", tone: "soft", detail: "", from: 0, to: at },
        { ...row, name: "Hold", tone: "soft", from: at, to: ends ?? latest }
      ]
    }
    const from = beginnings[event]
    return [{ ...row, from: from === undefined ? at : Math.min(from, at), to: at }]
  })
}

/** What comes long after the rest does not stretch the axis. */
export const axisEnd = (rows: ReadonlyArray<TimelineRow>): number =>
  Math.max(1, ...rows.map(({ name, to }) => (name === "Refunded" ? 0 : to)))
