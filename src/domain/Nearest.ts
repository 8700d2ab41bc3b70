/**
 * The least number of insertions, removals, changes of one character and swaps of two neighbours that make one text the
 * other; above `most` it is `most + 1`.
 */
export const distanceWithin = (most: number, a: string, b: string): number => {
  const beyond = most + 1
  if (Math.abs(a.length - b.length) > most) return beyond
  let before: ReadonlyArray<number> = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const next = [row]
    let least = row
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1]
      const isSwapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      const way = Math.min(
        (next[column - 1] ?? 0) + 1,
        (last[column] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwapped ? (before[column - 2] ?? 0) + 1 : beyond
      )
      next.push(way)
      least = Math.min(least, way)
    }
    if (least > most) return beyond
    before = last
    last = next
  }
  return Math.min(last[b.length] ?? 0, beyond)
}

/** `HOME` is no misspelt `HOST`, and `GS_BUCKET` none of `S3_BUCKET`. */
const mostMistakes = (name: string): number => (name.length < 7 ? 0 : name.length < 9 ? 1 : 2)

/** Those of the known names that differ least from the given one, none where each differs too much. */
export const findNearest = (
  given: string,
  known: ReadonlyArray<string>,
  mistakesIn: (name: string) => number = mostMistakes
): ReadonlyArray<string> => {
  let least = Number.POSITIVE_INFINITY
  let nearest: ReadonlyArray<string> = []
  for (const name of known) {
    const most = mistakesIn(name)
    const distance = distanceWithin(most, given, name)
    if (distance > most || distance > least) continue
    nearest = distance < least ? [name] : [...nearest, name]
    least = distance
  }
  return nearest
}
