import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Authenticated } from "../schema/Authenticated.ts"
import { Blocked, Internal } from "../schema/Errors.ts"

const CreditBalance = Schema.Struct({
  object: Schema.Literal("credits"),
  available_usd: Schema.Number.annotations({ description: "Spendable: the balance minus what is held." }),
  balance_usd: Schema.Number.annotations({ description: "The settled balance." }),
  held_usd: Schema.Number.annotations({ description: "Reserved by requests in flight." })
}).annotations({ identifier: "Credits", description: "The balance of the key's organization, in USD." })

const show = HttpApiEndpoint.get("show", "/credits")
  .addSuccess(CreditBalance)
  .addError(Blocked)
  .addError(Internal)
  .annotateContext(OpenApi.annotations({ identifier: "getCredits", summary: "Show the balance" }))

export const Credits = HttpApiGroup.make("credits").add(show).middleware(Authenticated)
