type Defined<A> = { [K in keyof A]: Exclude<A[K], undefined> }

/** The fields that have a value: hosts read `null` and absence differently, and undefined is neither. */
export const defined = <A extends object>(fields: A): Partial<Defined<A>> => {
  const kept: Partial<Defined<A>> = {}
  for (const name in fields) {
    const value = fields[name]
    if (value !== undefined) Object.assign(kept, { [name]: value })
  }
  return kept
}
