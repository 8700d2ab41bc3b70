/** An id of the catalog, or several by `*`, which stands for any characters and for none. */
export const modelPattern = /^[A-Za-z0-9*][\w.:/*-]*$/

export const longestModelPattern = 200

export const maxModelPatterns = 100

export type ModelMatcher = (id: string) => boolean

/** Leftmost matches suffice between the ends, so that nothing is tried twice as a regular expression would. */
const matchParts = ([first = "", ...rest]: ReadonlyArray<string>, id: string): boolean => {
  const last = rest.at(-1) ?? ""
  const end = id.length - last.length
  if (first.length > end || !id.startsWith(first) || !id.endsWith(last)) return false
  let at = first.length
  for (const part of rest.slice(0, -1)) {
    const found = id.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return at <= end
}

export const compileModelPatterns = (patterns: ReadonlyArray<string>): ModelMatcher => {
  const ids = new Set(patterns.filter((pattern) => !pattern.includes("*")))
  const others = patterns.filter((pattern) => pattern.includes("*")).map((pattern) => pattern.split("*"))
  return (id) => ids.has(id) || others.some((parts) => matchParts(parts, id))
}

/** Those that match no id. */
export const unmatchedPatterns = (patterns: ReadonlyArray<string>, ids: ReadonlyArray<string>): ReadonlyArray<string> =>
  patterns.filter((pattern) => !ids.some(compileModelPatterns([pattern])))
