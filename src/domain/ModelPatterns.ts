/** A catalog id, or a pattern in which `*` matches any number of characters. */
export const modelPattern = /^[A-Za-z0-9*][\w.:/*-]*$/

export const maxModelPatternLength = 200

export const maxModelPatterns = 100

export type ModelMatcher = (id: string) => boolean

/**
 * Whether the parts occur in the id in order, the first at its start and the last at its end. Never backtracks: the
 * leftmost match of each part suffices.
 */
const matchParts = ([first = "", ...rest]: ReadonlyArray<string>, id: string): boolean => {
  const last = rest.at(-1) ?? ""
  const end = id.length - last.length
  if (first.length > end || !id.startsWith(first) || !id.endsWith(last)) return false
  let at = first.length
  for (const part of rest.slice(0, -1)) {
    const partAt = id.indexOf(part, at)
    if (partAt === -1) return false
    at = partAt + part.length
  }
  return at <= end
}

export const compileModelPatterns = (patterns: ReadonlyArray<string>): ModelMatcher => {
  const ids = new Set(patterns.filter((pattern) => !pattern.includes("*")))
  const matchers = patterns.filter((pattern) => pattern.includes("*")).map((pattern) => pattern.split("*"))
  return (id) => ids.has(id) || matchers.some((parts) => matchParts(parts, id))
}

/** Returns the patterns that match no id. */
export const findUnmatchedPatterns = (
  patterns: ReadonlyArray<string>,
  ids: ReadonlyArray<string>
): ReadonlyArray<string> => patterns.filter((pattern) => !ids.some(compileModelPatterns([pattern])))
