interface Change {
  readonly name: string
  readonly was: unknown
  readonly is: unknown
}

const fieldsOf = (record: unknown): ReadonlyMap<string, unknown> =>
  new Map(typeof record === "object" && record !== null ? Object.entries(record) : [])

/** Fields that the audit has a column for, or that no operator chose. */
const known = new Set(["id", "org", "org_name", "at", "created_at"])

const isChosen = (name: string, value: unknown) => !known.has(name) && value !== null && value !== false && value !== 0

/** The fields that differ; of a new record those that say something. */
export const differenceOf = (before: unknown, after: unknown): ReadonlyArray<Change> => {
  const was = fieldsOf(before)
  const is = fieldsOf(after)
  return [...new Set([...was.keys(), ...is.keys()])].flatMap((name) => {
    const change = { name, was: was.get(name), is: is.get(name) }
    const isShown =
      before === null ? isChosen(name, change.is) : JSON.stringify(change.was) !== JSON.stringify(change.is)
    return isShown ? [change] : []
  })
}
