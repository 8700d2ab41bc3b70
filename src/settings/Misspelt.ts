/** Insertions, removals, changes of one character, and swaps of two neighbours. */
const distanceOf = (a: string, b: string): number => {
  let before: ReadonlyArray<number> = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const next = [row]
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1]
      const isSwapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      const ways = [
        (next[column - 1] ?? 0) + 1,
        (last[column] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        ...(isSwapped ? [(before[column - 2] ?? 0) + 1] : [])
      ]
      next.push(Math.min(...ways))
    }
    before = last
    last = next
  }
  return last[b.length] ?? 0
}

/** `HOME` is no misspelt `HOST`, and `GS_BUCKET` none of `S3_BUCKET`. */
const mostMistakes = (name: string): number => (name.length < 7 ? 0 : name.length < 9 ? 1 : 2)

export interface Misspelt {
  readonly given: string
  readonly meant: string
}

/** Names beside which the one that was meant is not set; another program may read the others. */
export const findMisspelt = (given: ReadonlyArray<string>, known: ReadonlyArray<string>): ReadonlyArray<Misspelt> => {
  const set = new Set(given)
  const unset = known.filter((name) => !set.has(name))
  const isKnown = new Set(known)
  return given.flatMap((name) => {
    if (isKnown.has(name)) return []
    const meant = unset.find((other) => other[0] === name[0] && distanceOf(name, other) <= mostMistakes(other))
    return meant === undefined ? [] : [{ given: name, meant }]
  })
}
