/** Returns `request` for 1, otherwise `requests`. Pass `plural` if it is not formed with an s. */
export const nounFor = (count: number, singular: string, plural = `${singular}s`): string =>
  count === 1 ? singular : plural

/** Returns `1 request` or `2 requests`; a verb may follow the noun in both forms: `request is`, `requests are`. */
export const pluralize = (count: number, singular: string, plural?: string): string =>
  `${count} ${nounFor(count, singular, plural)}`

/** Returns `a`, `a or b`, or `a, b or c`. */
export const joinWords = (words: ReadonlyArray<string>, last: "and" | "or"): string =>
  [words.slice(0, -1).join(", "), ...words.slice(-1)].filter((part) => part !== "").join(` ${last} `)

/** Returns at most `max` items. If there are more, the text after them is `and 3 more` with the suffix. */
export const limitTo = (items: ReadonlyArray<string>, max: number, suffix = ""): ReadonlyArray<string> =>
  items.length > max ? [...items.slice(0, max), `and ${items.length - max} more${suffix}`] : items

/** Returns `one of a, b, c`, the end of a message such as `must be one of a, b, c`. */
export const oneOfWords = (words: ReadonlyArray<string>): string => `one of ${words.join(", ")}`

/**
 * Returns the minimum number of insertions, deletions, substitutions and swaps of neighbours that turn one text into the
 * other; `maxDistance + 1` if it is above `maxDistance`.
 */
export const editDistance = (maxDistance: number, a: string, b: string): number => {
  const aboveMax = maxDistance + 1
  if (Math.abs(a.length - b.length) > maxDistance) return aboveMax
  let previous: ReadonlyArray<number> = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const next = [row]
    let rowMin = row
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1]
      const isSwapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      const cost = Math.min(
        (next[column - 1] ?? 0) + 1,
        (last[column] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (previous[column - 2] ?? 0) + 1 : aboveMax
      )
      next.push(cost)
      rowMin = Math.min(rowMin, cost)
    }
    if (rowMin > maxDistance) return aboveMax
    previous = last
    last = next
  }
  return Math.min(last[b.length] ?? 0, aboveMax)
}

/** Short names allow no edits, because `HOME` is no typo of `HOST`. */
const maxEdits = (name: string): number => (name.length < 7 ? 0 : name.length < 9 ? 1 : 2)

/** Returns the names with the minimum edit distance to `text`; empty if all distances are above the limit. */
export const findNearest = (
  text: string,
  names: ReadonlyArray<string>,
  maxEditsOf: (name: string) => number = maxEdits
): ReadonlyArray<string> => {
  let min = Number.POSITIVE_INFINITY
  let nearest: ReadonlyArray<string> = []
  for (const name of names) {
    const maxDistance = maxEditsOf(name)
    const distance = editDistance(maxDistance, text, name)
    if (distance > maxDistance || distance > min) continue
    nearest = distance < min ? [name] : [...nearest, name]
    min = distance
  }
  return nearest
}
