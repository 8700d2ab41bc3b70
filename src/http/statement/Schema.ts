import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { described, Integer } from "../../domain/Constraints.ts"
import { ReadErrors, UsageBusy, WrongQuery } from "../errors/Schemas.ts"
import { Authenticated } from "../schema/Headers.ts"
import { monthParameter } from "../schema/MonthParameter.ts"

const Entry = Schema.Struct({
  id: Schema.String,
  at: described(Integer, "Unix seconds."),
  amount_usd: described(Schema.Number, "What it adds to the balance."),
  ref: Schema.NullOr(Schema.String)
})

const Usage = Schema.Struct({
  model: described(Schema.NullOr(Schema.String), "Null: charges of which nothing else is kept."),
  surface: Schema.NullOr(Schema.String),
  requests: described(Integer, "Those that were charged."),
  prompt_tokens: Integer,
  completion_tokens: Integer,
  images: Integer,
  seconds: described(Integer, "Of video."),
  charge_usd: described(Schema.Number, "Before refunds, which are listed in the month in which they were given.")
})

const Statement = Schema.Struct({
  object: Schema.Literal("statement"),
  organization: Schema.String,
  month: Schema.String,
  opening_usd: Schema.Number,
  closing_usd: described(Schema.Number, "The opening balance of the next month; of the running month the balance now."),
  payments: Schema.Array(Entry),
  reversals: described(Schema.Array(Entry), "Refunds and disputes of payments."),
  refunds: described(Schema.Array(Entry), "What was given back of charges, of any month."),
  adjustments: Schema.Array(Entry),
  usage: Schema.Array(Usage),
  total_charge_usd: Schema.Number
}).annotations({ identifier: "Statement", description: "What the organization paid and used in a month of UTC." })

const show = HttpApiEndpoint.get("show", "/statement")
  .setUrlParams(Schema.Struct(monthParameter))
  .addSuccess(Statement)
  .addError(ReadErrors)
  .addError(WrongQuery)
  .addError(UsageBusy)
  .annotateContext(OpenApi.annotations({ identifier: "getStatement", summary: "Get the statement of a month" }))

export const StatementGroup = HttpApiGroup.make("statement").add(show).middleware(Authenticated)
