import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { ReadErrors } from "../errors/Schemas.ts"
import { Authenticated } from "../schema/Headers.ts"

const CreditBalance = Schema.Struct({
  object: Schema.Literal("credits"),
  available_usd: Schema.Number.annotations({ description: "Spendable: the balance minus what is held." }),
  balance_usd: Schema.Number.annotations({ description: "The settled balance." }),
  held_usd: Schema.Number.annotations({ description: "Reserved by requests in flight." }),
  cap_usd: Schema.NullOr(Schema.Number).annotations({
    description: "What the organization may spend in a period; null without a spending cap."
  }),
  cap_spent_usd: Schema.NullOr(Schema.Number).annotations({
    description: "What it was charged in the running period of the cap; null without one."
  }),
  cap_resets_at: Schema.NullOr(Schema.Number).annotations({
    description: "When the next period begins, in Unix seconds; null without a cap, and for one in total."
  })
}).annotations({
  identifier: "Credits",
  description: "The balance of the key's organization, and its spending cap, in USD."
})

const show = HttpApiEndpoint.get("show", "/credits")
  .addSuccess(CreditBalance)
  .addError(ReadErrors)
  .annotateContext(OpenApi.annotations({ identifier: "getCredits", summary: "Get the balance" }))

export const Credits = HttpApiGroup.make("credits")
  .add(show)
  .annotate(OpenApi.Description, "What the organization that owns the key can spend.")
  .middleware(Authenticated)
