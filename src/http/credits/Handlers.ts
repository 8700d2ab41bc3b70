import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { toUsd } from "../../domain/Money.ts"
import { available } from "../../domain/Organization.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import { ReadApi } from "../Api.ts"
import { json } from "../response/Respond.ts"
import { CurrentCaller } from "../schema/Authenticated.ts"

export const CreditsHandlers = HttpApiBuilder.group(
  ReadApi,
  "credits",
  Effect.fnUntraced(function* (handlers) {
    const ledger = yield* Ledger
    return handlers.handleRaw("show", () =>
      Effect.gen(function* () {
        const { org } = yield* CurrentCaller
        const funds = yield* ledger.balance(org)
        return json(200, {
          object: "credits",
          available_usd: toUsd(available(funds)),
          balance_usd: toUsd(funds.balance),
          held_usd: toUsd(funds.held)
        })
      })
    )
  })
)
