import type { Tone } from "../../parts/Status.ts"
import { type Attempt, outcomeOf, type TimelineEvent } from "./RequestRows.ts"

/** Returns ticks from 0 in steps of 1, 2 or 5 times a power of ten. The last tick is the first at or above the maximum. */
export const valueTicks = (max: number, count = 3): ReadonlyArray<number> => {
  if (!(max > 0)) return [0, 1]
  const rough = max / count
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5].find((factor) => factor * power >= rough * 0.999) ?? 10) * power
  return Array.from({ length: Math.ceil((max / step) * 0.999_999) + 1 }, (_, at) => Number((at * step).toPrecision(12)))
}

/** A bar on the time axis, or a point if `from` equals `to`. Times are milliseconds after the request arrived. */
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

const capitalize = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

const nameOf = (event: string): string => (event === "answered" ? "Response" : capitalize(event))

/** Attempts follow one another from the admission on, because the log has only their durations. */
export const layOut = (
  events: ReadonlyArray<TimelineEvent>,
  attempts: ReadonlyArray<Attempt>
): ReadonlyArray<TimelineRow> => {
  const timeOf = (name: string) => events.find(({ event }) => event === name)?.at_ms
  const answeredAt = timeOf("answered")
  /** A stream's bar begins at its first byte, a video's at the response. */
  const beginnings: Readonly<Record<string, number | undefined>> = {
    answered: timeOf("first byte"),
    completed: answeredAt,
    failed: answeredAt
  }
  const ends = events.find(({ event }) => endings.has(event))?.at_ms
  const latest = Math.max(0, ...events.map(({ at_ms = 0, event }) => (event === "refunded" ? 0 : at_ms)))
  let attemptStart = 0
  let attemptIndex = 0
  return events.flatMap(({ at_ms: at, detail, event, took_ms: took }): ReadonlyArray<TimelineRow> => {
    const row = { name: nameOf(event), detail: detail ?? "", tone: toneOf(event) }
    if (took !== undefined) {
      const attempt = attempts[attemptIndex++]
      const from = attemptStart
      attemptStart += took
      const tone = attempt === undefined ? row.tone : outcomeOf(attempt.outcome).tone
      return [{ ...row, tone, from, to: attemptStart, ...(attempt && { attempt }) }]
    }
    if (at === undefined) return [{ ...row, from: attemptStart, to: attemptStart }]
    if (event === "admitted") {
      attemptStart = at
      return [
        { ...row, name: "Admission", tone: "soft", detail: "", from: 0, to: at },
        { ...row, name: "Hold", tone: "soft", from: at, to: ends ?? latest }
      ]
    }
    const from = beginnings[event]
    return [{ ...row, from: from === undefined ? at : Math.min(from, at), to: at }]
  })
}

/** Refunds come long after the rest, so they must not stretch the axis. */
export const axisEnd = (rows: ReadonlyArray<TimelineRow>): number =>
  Math.max(1, ...rows.map(({ name, to }) => (name === "Refunded" ? 0 : to)))
