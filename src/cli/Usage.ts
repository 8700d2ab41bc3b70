import { Command, Options } from "@effect/cli"
import { Clock, Effect, Option } from "effect"
import { Organizations } from "../services/access/Organizations.ts"
import { Grouping, Usage, type UsageRow } from "../services/telemetry/Usage.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { operator } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, presentList } from "./Output.ts"

const record = (by: Grouping, row: UsageRow): Fields => ({
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
  Inputs.option(name, Inputs.momentForms, Inputs.moment).pipe(Options.withDescription(description), Options.optional)

export const usage = Command.make(
  "usage",
  {
    org: Inputs.orgOption.pipe(Options.optional),
    by: Inputs.oneOf("by", Grouping.literals).pipe(
      Options.withDescription("what to add up by; days are UTC"),
      Options.withDefault("model")
    ),
    since: moment("since", `from when: ${Inputs.momentForms}`),
    until: moment("until", "up to and not including when"),
    json: Inputs.json
  },
  Effect.fnUntraced(function* ({ by, json, org, since, until }) {
    const now = yield* Clock.currentTimeMillis
    const range = {
      since: Option.getOrUndefined(Option.map(since, (when) => Inputs.past(when, now))),
      until: Option.getOrUndefined(Option.map(until, (when) => Inputs.past(when, now)))
    }
    if (range.since !== undefined && range.until !== undefined && range.since >= range.until) {
      return yield* new CommandFailed({ message: "--since must be before --until." })
    }
    const organizations = yield* Organizations
    const found = yield* Effect.transposeOption(Option.map(org, organizations.find))
    const query = { by, org: Option.getOrUndefined(found)?.id, ...range }
    const rows = yield* Effect.flatMap(Usage, ({ report }) => report(query))
    return yield* presentList(
      json,
      rows.map((row) => record(by, row)),
      { columns: [by, ...(by === "key" ? ["name"] : []), ...columns], none: "There were no requests." }
    )
  })
).pipe(Command.withDescription("Spend, cost, margin and tokens, by the request log."), Command.provide(operator))
