import { Schema } from "effect"
import type { About, Input } from "./Input.ts"

interface Patterns {
  /** Without its full stop, such as "ids or patterns like a*". */
  readonly what: string
  readonly pattern: RegExp
  /** In UTF-16 units. */
  readonly longest: number
  readonly most: number
}

/** Some patterns, of which none is empty. */
export const patterns = (
  { longest, most, pattern, what }: Patterns,
  about: About
): Input<Schema.Array$<typeof Schema.String>, Schema.Schema<ReadonlyArray<string>>> => {
  const isOne = (text: string) => text.length <= longest && pattern.test(text)
  const isWithin = (count: number) => count > 0 && count <= most
  const one = Schema.String.pipe(
    Schema.filter(isOne, { jsonSchema: { minLength: 1, maxLength: longest, pattern: pattern.source } })
  )
  const rules = `${what}, at most ${most}, each of at most ${longest} characters`
  return {
    ...about,
    record: Schema.Array(Schema.String),
    body: Schema.Array(one).pipe(
      Schema.filter(({ length }) => isWithin(length), { jsonSchema: { minItems: 1, maxItems: most } })
    ),
    problem: `must be a list of ${rules}`,
    accepts: `a comma-separated list of ${rules}`,
    read: (word) => {
      const items = [...new Set(word.split(",").map((item) => item.trim()))]
      return isWithin(items.length) && items.every(isOne) ? items : undefined
    },
    form: { kind: "patterns" }
  }
}
