export interface Listed {
  readonly id: string
  readonly at: number
}

/** Newest first, as the gateway lists them: ids grow with time within a second. */
const compare = (a: Listed, b: Listed): number => b.at - a.at || (a.id < b.id ? 1 : a.id > b.id ? -1 : 0)

/** Each row once; the later ones are newer versions. */
export const merge = <Row extends Listed>(rows: ReadonlyArray<Row>, later: ReadonlyArray<Row>): ReadonlyArray<Row> =>
  later.length === 0 ? rows : [...new Map([...rows, ...later].map((row) => [row.id, row])).values()].toSorted(compare)

/** The newest rows that are not known yet; a gap: others may lie between. */
export const arrivals = <Row extends Listed>(
  known: ReadonlyArray<Row>,
  newest: ReadonlyArray<Row>,
  /** Whether rows follow: after those that are known, and after the newest. */
  more: { readonly afterKnown: boolean; readonly afterNewest: boolean }
): { readonly fresh: ReadonlyArray<Row>; readonly changed: ReadonlyArray<Row>; readonly isGap: boolean } => {
  const ids = new Set(known.map(({ id }) => id))
  const changed = newest.filter(({ id }) => ids.has(id))
  // What was listed after the last known row is of a later page.
  const last = more.afterKnown ? known.at(-1) : undefined
  const fresh = newest.filter((row) => !ids.has(row.id) && (last === undefined || compare(row, last) < 0))
  return { fresh, changed, isGap: more.afterNewest && changed.length === 0 && newest.length > 0 }
}
