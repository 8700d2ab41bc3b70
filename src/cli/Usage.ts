import { Options } from "@effect/cli"
import { Clock, Effect } from "effect"
import { Grouping, Usage, type UsageRow } from "../services/telemetry/Usage.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { command, filterOf } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const recordOf = (by: Grouping, row: UsageRow): Output.Fields => ({
  [by]: row.group,
  ...(by === "key" && { name: row.label }),
  requests: row.requests,
  prompt_tokens: row.promptTokens,
  completion_tokens: row.completionTokens,
  total_tokens: row.promptTokens + row.completionTokens,
  cached_tokens: row.cachedTokens,
  reasoning_tokens: row.reasoningTokens,
  spend_usd: row.spend,
  cost_usd: row.cost,
  margin_usd: row.margin,
  cost_unknown: row.uncosted
})

const columns = [
  "requests",
  "prompt_tokens",
  "completion_tokens",
  "spend_usd",
  "cost_usd",
  "margin_usd",
  "cost_unknown"
]

const moment = (name: string, description: string) =>
  Inputs.optional(Inputs.option(name, Inputs.momentForms, Inputs.moment), description)

export const usage = command(
  "usage",
  "Spend, cost, margin and tokens, by the request log.",
  {
    org: Inputs.orgFilter,
    by: Inputs.oneOf("by", Grouping.literals).pipe(
      Options.withDescription("what to add up by; days are UTC"),
      Options.withDefault("model")
    ),
    since: moment("since", `from when: ${Inputs.momentForms}`),
    until: moment("until", "up to and not including when")
  },
  Effect.fnUntraced(function* (given) {
    const { by } = given
    const now = yield* Clock.currentTimeMillis
    const since = given.since && Inputs.past(given.since, now)
    const until = given.until && Inputs.past(given.until, now)
    if (since !== undefined && until !== undefined && since >= until) {
      return yield* new CommandFailed({ message: "--since must be before --until." })
    }
    const { report } = yield* Usage
    const rows = yield* report({ by, org: yield* filterOf(given.org), since, until })
    return Output.list(
      rows.map((row) => recordOf(by, row)),
      { columns: [by, ...(by === "key" ? ["name"] : []), ...columns], none: "There were no requests." }
    )
  })
)
