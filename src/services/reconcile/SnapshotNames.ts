const snapshot = /-(?:\d{4}-\d{2}-\d{2}|20\d{6})$/

const withoutDate = (name: string): string => name.replace(snapshot, "")

/** Gives a model one name on both sides: `gpt-4o-2024-08-06` is `gpt-4o` where routes call it so, and the reverse. */
export const snapshotNames = (upstreamModels: Iterable<string>): ((name: string) => string) => {
  const known = new Map(Array.from(upstreamModels, (name) => [name.toLowerCase(), name]))
  const dated = new Map<string, Array<string>>()
  for (const [lower, name] of known) {
    const base = withoutDate(lower)
    if (base !== lower) dated.set(base, [...(dated.get(base) ?? []), name])
  }
  return (name) => {
    const lower = name.toLowerCase()
    const base = withoutDate(lower)
    const undated = known.get(base)
    if (undated !== undefined) return undated
    const exact = known.get(lower)
    if (exact !== undefined) return exact
    const [only, ...others] = dated.get(base) ?? []
    return only !== undefined && others.length === 0 && base === lower ? only : name
  }
}
