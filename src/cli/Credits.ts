import { Command, Options } from "@effect/cli"
import { Effect, Option } from "effect"
import { toUsdText } from "../domain/Money.ts"
import { Organizations } from "../services/access/Organizations.ts"
import { LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { operator } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { entryRecord } from "./Ledger.ts"
import { presentRecord } from "./Output.ts"

const filled = (name: string) => Inputs.option(name, "a text that is not blank", Inputs.nonBlank)

const add = Command.make(
  "add",
  {
    org: Inputs.orgArgument,
    amount: Inputs.argument("USD", Inputs.usd.positive, Inputs.positiveUsd),
    ref: filled("ref").pipe(
      Options.withDescription("the payment's own reference; the same one is never added twice"),
      Options.optional
    ),
    note: filled("note").pipe(Options.withDescription("why"), Options.optional),
    json: Inputs.json
  },
  Effect.fnUntraced(function* ({ amount, json, note, org, ref }) {
    const { id } = yield* Effect.flatMap(Organizations, ({ find }) => find(org))
    const books = yield* LedgerAdmin
    const { entry, replayed } = yield* books
      .topUp({ org: id, amount, ref: Option.getOrUndefined(ref), note: Option.getOrUndefined(note) })
      .pipe(
        Effect.catchTag(
          "RefTaken",
          (taken) =>
            new CommandFailed({
              message: `The reference ${taken.ref} belongs to another payment: another organization or amount.`
            })
        )
      )
    const remark = replayed ? "This payment was added before; nothing was added now." : ""
    yield* presentRecord(json, { ...entryRecord(entry), replayed }, remark)
  })
).pipe(Command.withDescription("Enter a payment."), Command.provide(operator))

const adjust = Command.make(
  "adjust",
  {
    org: Inputs.orgArgument,
    amount: Inputs.argument("USD", Inputs.usd.nonZero, Inputs.nonZeroUsd),
    note: filled("note").pipe(Options.withDescription("why")),
    force: Options.boolean("force").pipe(Options.withDescription("even if less than nothing is left available")),
    json: Inputs.json
  },
  Effect.fnUntraced(function* ({ amount, force, json, note, org }) {
    const { id } = yield* Effect.flatMap(Organizations, ({ find }) => find(org))
    const books = yield* LedgerAdmin
    const entry = yield* books.adjust({ org: id, amount, note, force }).pipe(
      Effect.catchTag(
        "WouldOverdraw",
        ({ available }) =>
          new CommandFailed({
            message: `Only ${toUsdText(available)} USD are available; --force goes below zero all the same.`
          })
      )
    )
    yield* presentRecord(json, entryRecord(entry))
  })
).pipe(Command.withDescription("Correct a balance, up or down."), Command.provide(operator))

export const credits = Inputs.group("credits", "Money in, and corrections.").pipe(
  Command.withSubcommands([add, adjust])
)
