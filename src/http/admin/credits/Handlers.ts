import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { InsufficientRole, InvalidRequest } from "../../../domain/Failure.ts"
import { toUsdText } from "../../../domain/Money.ts"
import { CurrentActor } from "../../../services/admin/Actor.ts"
import * as Changes from "../../../services/admin/CreditChanges.ts"
import type { WouldOverdraw } from "../../../services/ledger/LedgerAdmin.ts"
import { AdminApi } from "../AdminApi.ts"
import { conflict, invalid, notFound, recordOf, usdProblem } from "../Fields.ts"

const wrong = (param: string, message: string) => new InvalidRequest({ message, param })

const explain = ({ available }: WouldOverdraw) =>
  conflict("amount_usd")({
    message: `Only ${toUsdText(available)} USD are available; \`force\`, by an owner, goes below zero all the same.`
  })

export const CreditsHandlers = HttpApiBuilder.group(AdminApi, "credits", (handlers) =>
  handlers
    .handle("add", ({ payload: { amount_usd: amount, force, note, organization: org, ref, type } }) =>
      Effect.gen(function* () {
        if (type === "top_up") {
          if (amount < 0n) return yield* wrong("amount_usd", `\`amount_usd\` ${usdProblem.positive}.`)
          if (force === true) return yield* wrong("force", "`force` is for adjustments.")
          return yield* recordOf(Changes.topUp({ org, amount, ref, note }))
        }
        if (ref !== undefined) return yield* wrong("ref", "`ref` is for top-ups.")
        if (note === undefined) return yield* wrong("note", "An adjustment needs a `note`.")
        const { role } = yield* CurrentActor
        if (force === true && role !== "owner") return yield* new InsufficientRole({ needed: "owner" })
        return yield* recordOf(Changes.adjust({ org, amount, note, force: force === true }))
      }).pipe(
        Effect.catchTags({
          OrganizationNotFound: invalid("organization"),
          RefTaken: conflict("ref"),
          RefReserved: invalid("ref"),
          WouldOverdraw: explain
        })
      )
    )
    .handle("refund", ({ payload: { amount_usd: amount, note, request_id: request } }) =>
      recordOf(Changes.refund({ request, amount, note })).pipe(
        Effect.catchTags({ RequestUnknown: notFound, RefundRefused: conflict(null) })
      )
    )
)
