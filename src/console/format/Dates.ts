import { beginningOf, instantOf, isCalendarWord } from "../../domain/Moment.ts"

const padTwo = (value: number): string => String(value).padStart(2, "0")

/** Formats Unix seconds as `2026-11-22 23:40:12`. */
export const formatUtc = (at: number): string => new Date(at * 1000).toISOString().slice(0, 19).replace("T", " ")

export const formatLocal = (at: number): string => {
  const date = new Date(at * 1000)
  const day = `${date.getFullYear()}-${padTwo(date.getMonth() + 1)}-${padTwo(date.getDate())}`
  return `${day} ${padTwo(date.getHours())}:${padTwo(date.getMinutes())}:${padTwo(date.getSeconds())}`
}

/** The value of a `datetime-local` input. */
export const localMinuteOf = (at: number): string => formatLocal(at).slice(0, 16).replace(" ", "T")

/** In addresses times are UTC, because a link must show the same in every time zone. */
export const utcMinuteOf = (at: number): string => `${formatUtc(at).slice(0, 16).replace(" ", "T")}Z`

const units = [
  [86_400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"]
] as const

/** Formats a duration in at most two units, such as `3 d 4 h`. */
export const formatSpan = (seconds: number): string => {
  const total = Math.max(0, Math.floor(seconds))
  const first = units.findIndex(([size]) => total >= size)
  if (first === -1) return "0 s"
  const [size, name] = units[first] ?? units[3]
  const [nextSize, nextName] = units[first + 1] ?? units[3]
  const rest = Math.floor((total % size) / nextSize)
  return `${Math.floor(total / size)} ${name}${first === 3 || rest === 0 ? "" : ` ${rest} ${nextName}`}`
}

export const formatMillis = (millis: number): string =>
  millis < 1000
    ? `${Math.round(millis)} ms`
    : millis < 60_000
      ? `${Number((millis / 1000).toPrecision(3))} s`
      : formatSpan(millis / 1000)

const unitSeconds: Readonly<Record<string, number>> = { m: 60, h: 3600, d: 86_400 }

/** Returns the Unix seconds of `24h` or `7d` before now, of a UTC day or month, or of a local time, else undefined. */
export const parseMoment = (text: string | undefined, now: number): number | undefined => {
  if (text !== undefined && isCalendarWord(text)) return beginningOf(text, now * 1000) / 1000
  const [, count, unit = ""] = /^(\d+)([mhd])$/.exec(text ?? "") ?? []
  if (count !== undefined) return Math.floor(now - Number(count) * (unitSeconds[unit] ?? 0))
  const [day] = /^\d{4}-\d{2}-\d{2}/.exec(text ?? "") ?? []
  if (day !== undefined && instantOf(day) === undefined) return undefined
  const at = Date.parse(text ?? "")
  return Number.isNaN(at) ? undefined : Math.floor(at / 1000)
}
