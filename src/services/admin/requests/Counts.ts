import { Record, Schema } from "effect"
import { countFields } from "../../requests/RequestColumns.ts"

type Name = keyof typeof countFields
type Field = (typeof countFields)[Name]

const withTotal = <A>({ completion_tokens, prompt_tokens, ...others }: Record<Name, A>, total: A) => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: total,
  ...others
})

/** What operators see counted, of a request and of many. */
export const Counts = withTotal(
  Record.map(countFields, () => Schema.Number),
  Schema.Number
)

export const countsOf = (row: Readonly<Record<Field, number | null>>) => {
  const counts = Record.map(countFields, (field) => row[field] ?? 0)
  return withTotal(counts, counts.prompt_tokens + counts.completion_tokens)
}
