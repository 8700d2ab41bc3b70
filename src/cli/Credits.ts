import { Command, Options } from "@effect/cli"
import { Effect } from "effect"
import { toUsdText } from "../domain/Money.ts"
import { LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { command, findOrganization } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import { entryRecord } from "./Ledger.ts"
import * as Output from "./Output.ts"

const filled = (name: string) => Inputs.option(name, "a text that is not blank", Inputs.nonBlank)

const add = command(
  "add",
  "Enter a payment.",
  {
    org: Inputs.orgArgument,
    amount: Inputs.argument("USD", Inputs.usd.positive, Inputs.positiveUsd),
    ref: Inputs.optional(filled("ref"), "the payment's own reference; the same one is never added twice"),
    note: Inputs.optional(filled("note"), "why")
  },
  Effect.fnUntraced(
    function* ({ org, ...payment }) {
      const { id } = yield* findOrganization(org)
      const { topUp } = yield* LedgerAdmin
      const { entry, replayed } = yield* topUp({ org: id, ...payment })
      const remark = replayed ? "This payment was added before; nothing was added now." : ""
      return Output.record({ ...entryRecord(entry), replayed }, remark)
    },
    Effect.catchTag("RefTaken", ({ ref }) => {
      const message = `The reference ${ref} belongs to another payment: another organization or amount.`
      return new CommandFailed({ message })
    })
  )
)

const adjust = command(
  "adjust",
  "Correct a balance, up or down.",
  {
    org: Inputs.orgArgument,
    amount: Inputs.argument("USD", Inputs.usd.nonZero, Inputs.nonZeroUsd),
    note: filled("note").pipe(Options.withDescription("why")),
    force: Options.boolean("force").pipe(Options.withDescription("even if less than nothing is left available"))
  },
  Effect.fnUntraced(
    function* ({ org, ...correction }) {
      const { id } = yield* findOrganization(org)
      const { adjust } = yield* LedgerAdmin
      return Output.record(entryRecord(yield* adjust({ org: id, ...correction })))
    },
    Effect.catchTag("WouldOverdraw", ({ available }) => {
      const message = `Only ${toUsdText(available)} USD are available; --force goes below zero all the same.`
      return new CommandFailed({ message })
    })
  )
)

export const credits = Inputs.group("credits", "Money in, and corrections.").pipe(
  Command.withSubcommands([add, adjust])
)
