import { Command, Options } from "@effect/cli"
import { Effect } from "effect"
import { longestNote, longestRef } from "../domain/LedgerText.ts"
import { toUsdText, usdInputs } from "../domain/Money.ts"
import * as Changes from "../services/admin/CreditChanges.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { change, command } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"
import { requestArgument } from "./Requests.ts"

const filledOption = (name: string, longest: number) =>
  Inputs.option(name, `a text that is not blank, of at most ${longest} characters`, Inputs.filledTo(longest))
const note = filledOption("note", longestNote)

const add = command(
  "add",
  "Enter a payment.",
  {
    org: Inputs.orgArgument,
    amount: Inputs.argument("USD", usdInputs.positive.accepts, usdInputs.positive.read),
    ref: Inputs.optional(
      filledOption("ref", longestRef),
      "the payment's own reference; the same one is never added twice"
    ),
    note: Inputs.optional(note, "why, for the ledger")
  },
  Effect.fnUntraced(function* (payment) {
    const { record } = yield* Changes.topUp(payment)
    return Output.record(record, record.replayed ? "This payment was added before; nothing was added now." : "")
  })
)

const adjust = change(
  "adjust",
  "Correct a balance, up or down.",
  {
    org: Inputs.orgArgument,
    amount: Inputs.argument("USD", usdInputs.nonZero.accepts, usdInputs.nonZero.read),
    note: note.pipe(Options.withDescription("why, for the ledger")),
    force: Inputs.flag("force", "even if less than nothing is left available")
  },
  (correction) =>
    Effect.catchTag(Changes.adjust(correction), "WouldOverdraw", ({ available }) => {
      const message = `Only ${toUsdText(available)} USD are available; --force goes below zero all the same.`
      return new CommandFailed({ message })
    })
)

const refund = change(
  "refund",
  "Give back what a request was charged, to the balance and to its key's cap.",
  {
    id: requestArgument,
    amount: Inputs.optional(
      Inputs.option("amount", usdInputs.positive.accepts, usdInputs.positive.read),
      "USD; default: all that was not given back before"
    ),
    note: note.pipe(Options.withDescription("why, for the ledger"))
  },
  ({ amount, id, note }) => Changes.refund({ request: id, amount, note })
)

export const credits = Inputs.group("credits", "Money in, and corrections.").pipe(
  Command.withSubcommands([add, adjust, refund])
)
