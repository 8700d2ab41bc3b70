import { findNearest } from "../domain/Nearest.ts"

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
    const [meant] = findNearest(
      name,
      unset.filter((other) => other[0] === name[0])
    )
    return meant === undefined ? [] : [{ given: name, meant }]
  })
}
