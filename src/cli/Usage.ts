import { Clock, Effect, Schema } from "effect"
import { Usage, type UsageRow } from "../services/telemetry/Usage.ts"
import { Grouping } from "../services/telemetry/UsageSql.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { command, filterOf } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

type Groupings = readonly [Grouping] | readonly [Grouping, Grouping]

const isNamed = (by: Grouping | undefined) => by === "key" || by === "org"

const columnsOf = ([by, thenBy]: Groupings) => [
  by,
  ...(isNamed(by) ? ["name"] : []),
  ...(thenBy === undefined ? [] : [thenBy]),
  ...(thenBy !== undefined && isNamed(thenBy) ? [`${thenBy}_name`] : []),
  ...columns
]

/** Null without prompt tokens. */
const hitRate = (cached: number, prompt: number) =>
  prompt === 0 ? null : Math.round((cached / prompt) * 10_000) / 10_000

const sumsOf = (row: UsageRow) => ({
  requests: row.requests,
  errors: row.errors,
  refusals: row.refusals,
  prompt_tokens: row.promptTokens,
  completion_tokens: row.completionTokens,
  total_tokens: row.promptTokens + row.completionTokens,
  cached_tokens: row.cachedTokens,
  cache_hit_rate: hitRate(row.cachedTokens, row.promptTokens),
  cache_write_tokens: row.cacheWriteTokens,
  cache_write_1h_tokens: row.cacheWriteHourTokens,
  reasoning_tokens: row.reasoningTokens,
  web_searches: row.webSearches,
  spend_usd: row.charge,
  cost_usd: row.cost,
  margin_usd: row.margin,
  cost_unknown: row.uncosted
})

const recordOf = ([by, thenBy]: Groupings, row: UsageRow): Output.Fields => ({
  [by]: row.group,
  ...(isNamed(by) && { name: row.label }),
  ...(thenBy !== undefined && { [thenBy]: row.subgroup }),
  ...(thenBy !== undefined && isNamed(thenBy) && { [`${thenBy}_name`]: row.sublabel }),
  ...sumsOf(row)
})

const columns = [
  "requests",
  "prompt_tokens",
  "completion_tokens",
  "cache_hit_rate",
  "spend_usd",
  "cost_usd",
  "margin_usd",
  "cost_unknown"
]

const isGrouping = Schema.is(Grouping)

const parseGroupings = (text: string): Groupings | undefined => {
  const [by, thenBy, ...rest] = text.split(",")
  if (!isGrouping(by) || rest.length > 0 || by === thenBy) return undefined
  if (thenBy === undefined) return [by]
  return isGrouping(thenBy) ? [by, thenBy] : undefined
}

const moment = (name: string, description: string) =>
  Inputs.optional(Inputs.option(name, Inputs.momentForms, Inputs.moment), description)

export const usage = command(
  "usage",
  "Spend, cost, margin and tokens, by the request log.",
  {
    org: Inputs.orgFilter,
    by: Inputs.optional(
      Inputs.option("by", `one or two of ${Grouping.literals.join(", ")}, such as org,model`, parseGroupings),
      `one or two of ${Grouping.literals.join(", ")}, such as org,model; days are UTC; default: model`
    ),
    csv: Inputs.csv,
    since: moment("since", `from when: ${Inputs.momentForms}; default: the oldest that is kept`),
    until: moment("until", "up to and not including when; default: now")
  },
  Effect.fnUntraced(function* (given) {
    const groupings: Groupings = given.by ?? ["model"]
    const [by, thenBy] = groupings
    const now = yield* Clock.currentTimeMillis
    const since = given.since && Inputs.past(given.since, now)
    const until = given.until && Inputs.past(given.until, now)
    if (since !== undefined && until !== undefined && since >= until) {
      return yield* new CommandFailed({ message: "--since must be before --until." })
    }
    const { report } = yield* Usage
    const { rows, totals: all } = yield* report({ by, thenBy, org: yield* filterOf(given.org), since, until })
    const records = rows.map((row) => recordOf(groupings, row))
    const shown = columnsOf(groupings)
    const totals = sumsOf(all)
    const text = given.csv
      ? Output.csv(records, shown)
      : Output.table(
          rows.length === 0 ? [] : [...records, { ...totals, [by]: "total" }],
          shown,
          "There were no requests."
        )
    return { document: { data: records, totals }, text }
  })
)
