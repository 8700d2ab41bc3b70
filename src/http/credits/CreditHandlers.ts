import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { toUsd } from "../../domain/Money.ts"
import { availableOf } from "../../domain/Organization.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import { json, respond } from "../Answer.ts"
import { ResourceApi } from "../Api.ts"
import { CurrentCaller } from "../schema/Headers.ts"

export const CreditsHandlers = HttpApiBuilder.group(
  ResourceApi,
  "credits",
  Effect.fnUntraced(function* (handlers) {
    const ledger = yield* Ledger
    return handlers.handleRaw("show", () =>
      Effect.gen(function* () {
        const { org } = yield* CurrentCaller
        const funds = yield* ledger.funds(org)
        return respond(
          json(200, {
            object: "credits",
            available_usd: toUsd(availableOf(funds)),
            balance_usd: toUsd(funds.balance),
            held_usd: toUsd(funds.held),
            cap_usd: funds.cap === null ? null : toUsd(funds.cap),
            cap_spent_usd: funds.capSpent === null ? null : toUsd(funds.capSpent),
            cap_resets_at: funds.capResetsAt && Math.floor(funds.capResetsAt.getTime() / 1000)
          })
        )
      })
    )
  })
)
