import { Effect, Option, Schema, Stream } from "effect"
import { type CsvCell, csvLine } from "../../domain/Csv.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { reportedCounts } from "../requests/RequestCounts.ts"
import { TextOrNull, Usd } from "../resources/ResourceRecord.ts"
import { Grouping, Usage, type UsageCursor, type UsageQuery, type UsageRow } from "../telemetry/Usage.ts"
import { Counts, countsOf } from "./RequestAdmin.ts"

const Amount = Schema.NullOr(Usd)
const Group = Schema.optional(TextOrNull)

const { cached_tokens, completion_tokens, prompt_tokens, total_tokens, ...otherCounts } = Counts

export const UsageSums = Schema.Struct({
  requests: Schema.Number,
  errors: Schema.Number,
  refusals: Schema.Number,
  prompt_tokens,
  completion_tokens,
  total_tokens,
  cached_tokens,
  /** The share of prompt tokens read from the cache. Null if there were no prompt tokens. */
  cache_hit_rate: Schema.NullOr(Schema.Number),
  ...otherCounts,
  spend_usd: Usd,
  cost_usd: Usd,
  /** The sum of provider-reported costs. Requests without one don't count. */
  stated_cost_usd: Usd,
  /** The margin of the requests with a known cost. Null if there are none. */
  margin_usd: Amount,
  /** The number of charged requests without a known cost. */
  cost_unknown: Schema.Number
})

/** A record has one or two of the group fields. `name` belongs to the first one. */
export const UsageRecord = Schema.Struct({
  model: Group,
  key: Group,
  day: Group,
  hour: Group,
  provider: Group,
  org: Group,
  route: Group,
  surface: Group,
  status: Group,
  tag: Group,
  name: Group,
  key_name: Group,
  org_name: Group,
  ...UsageSums.fields
}).annotations({ identifier: "UsageOfGroup" })
export type UsageRecord = typeof UsageRecord.Type

export type Groupings = readonly [Grouping] | readonly [Grouping, Grouping]

export const groupingForms = `one or two of ${Grouping.literals.join(", ")}, such as org,model`

const isGrouping = Schema.is(Grouping)

export const parseGroupings = (text: string): Groupings | undefined => {
  const [by, thenBy, ...rest] = text.split(",")
  if (!isGrouping(by) || rest.length > 0 || by === thenBy) return undefined
  if (thenBy === undefined) return [by]
  return isGrouping(thenBy) ? [by, thenBy] : undefined
}

const isNamed = (by: Grouping | undefined) => by === "key" || by === "org"

export const usageColumns = ([by, thenBy]: Groupings): ReadonlyArray<string> => [
  by,
  ...(isNamed(by) ? ["name"] : []),
  ...(thenBy === undefined ? [] : [thenBy]),
  ...(thenBy !== undefined && isNamed(thenBy) ? [`${thenBy}_name`] : []),
  "requests",
  ...reportedCounts.map(({ name }) => name),
  "cache_hit_rate",
  "spend_usd",
  "cost_usd",
  "stated_cost_usd",
  "margin_usd",
  "cost_unknown"
]

const hitRate = (cached: number, prompt: number) =>
  prompt === 0 ? null : Math.round((cached / prompt) * 10_000) / 10_000

export const usageSums = (row: UsageRow): typeof UsageSums.Type => {
  const { cached_tokens, completion_tokens, prompt_tokens, total_tokens, ...others } = countsOf(row)
  return {
    requests: row.requests,
    errors: row.errors,
    refusals: row.refusals,
    prompt_tokens,
    completion_tokens,
    total_tokens,
    cached_tokens,
    cache_hit_rate: hitRate(cached_tokens, prompt_tokens),
    ...others,
    spend_usd: row.charge,
    cost_usd: row.cost,
    stated_cost_usd: row.statedCost,
    margin_usd: row.margin,
    cost_unknown: row.uncosted
  }
}

export const usageRecord = ([by, thenBy]: Groupings, row: UsageRow): UsageRecord => ({
  [by]: row.group,
  ...(isNamed(by) && { name: row.label }),
  ...(thenBy !== undefined && { [thenBy]: row.subgroup }),
  ...(thenBy !== undefined && isNamed(thenBy) && { [`${thenBy}_name`]: row.sublabel }),
  ...usageSums(row)
})

type ColumnFilter = (column: string) => boolean
const allColumns: ColumnFilter = () => true

const usageCells = (record: UsageRecord, columns: ReadonlyArray<string>) => {
  const cells: Readonly<Record<string, CsvCell>> = record
  return columns.map((column) => cells[column])
}

export const usageCsv = (
  groupings: Groupings,
  rows: ReadonlyArray<UsageRow>,
  isVisible: ColumnFilter = allColumns
): ReadonlyArray<string> => {
  const columns = usageColumns(groupings).filter(isVisible)
  return [columns, ...rows.map((row) => usageCells(usageRecord(groupings, row), columns))].map(csvLine)
}

/** Large, because a report of one page is read by one statement, and so is consistent. */
const pageSize = 10_000

/** Streams a header line and a line for each group, without line breaks. */
export const usageCsvLines = (
  scope: OrganizationScope,
  groupings: Groupings,
  query: Omit<UsageQuery, "by" | "thenBy" | "after" | "limit">,
  isVisible: ColumnFilter = allColumns
) => {
  const [by, thenBy] = groupings
  return Stream.paginateEffect<UsageCursor | undefined, ReadonlyArray<string>, never, Usage>(undefined, (after) =>
    Effect.gen(function* () {
      const { report } = yield* Usage
      const { next, rows } = yield* report(scope, { ...query, by, thenBy, after, limit: pageSize })
      return [usageCsv(groupings, rows, isVisible).slice(after === undefined ? 0 : 1), Option.fromNullable(next)]
    })
  )
}
