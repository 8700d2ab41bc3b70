/** A point in time, or a distance from now; in milliseconds. */
export type Moment = { readonly at: number } | { readonly distance: number }

const units = new Map([
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
  ["w", 604_800_000]
])

export const durationForms = "a duration such as 90s, 30m, 1h, 7d or 2w"
export const momentForms = `a date, a date and time, Unix seconds, or ${durationForms}`

/** The year 1: the database's calendar does not reach as far back as a date can. */
const earliest = -62_135_596_800_000
const farthest = 8.64e15

/** In milliseconds. */
export const duration = (text: string): number | undefined => {
  const [, amount = "", unit = ""] = /^(\d{1,9})([smhdw])$/.exec(text) ?? []
  const length = units.get(unit)
  return length === undefined ? undefined : Number(amount) * length
}

/** Dates are UTC midnight; times without a zone are UTC. */
export const moment = (text: string): Moment | undefined => {
  const distance = duration(text)
  if (distance !== undefined) return { distance }
  if (/^\d{9,11}$/.test(text)) return { at: Number(text) * 1000 }
  const [, date, time = "T00:00:00", zone = "Z"] =
    /^(\d{4}-\d{2}-\d{2})([T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?)?(Z|[+-]\d{2}:\d{2})?$/i.exec(text) ?? []
  if (date === undefined) return undefined
  const at = Date.parse(`${date}${time.replace(" ", "T").toUpperCase()}${zone.toUpperCase()}`)
  const exists = Number.isFinite(at) && new Date(Date.parse(date)).toISOString().startsWith(date)
  return exists ? { at } : undefined
}

export const toPast = (when: Moment, now: number) => Math.max(earliest, "at" in when ? when.at : now - when.distance)
export const toFuture = (when: Moment, now: number) =>
  "at" in when ? when.at : Math.min(farthest, now + when.distance)
