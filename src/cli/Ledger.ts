import { Command, Options } from "@effect/cli"
import { Effect, Schema } from "effect"
import { Organizations } from "../services/access/Organizations.ts"
import { type Entry, LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import { CommandFailed } from "./CommandFailed.ts"
import { operator } from "./Connection.ts"
import * as Inputs from "./Inputs.ts"
import { type Fields, present, presentList, toJson } from "./Output.ts"

export const entryRecord = (entry: Entry) => ({
  id: entry.id,
  at: entry.at,
  org: entry.orgId,
  kind: entry.kind,
  amount_usd: entry.amount,
  ref: entry.ref,
  note: entry.note,
  key_id: entry.keyId,
  hold_id: entry.holdId
})

const show = Command.make(
  "show",
  {
    org: Inputs.orgArgument,
    limit: Inputs.option("limit", "an integer from 1 to 100000", Inputs.whole(1, 100_000)).pipe(
      Options.withDescription("how many entries"),
      Options.withDefault(100)
    ),
    json: Inputs.json
  },
  Effect.fnUntraced(function* ({ json, limit, org }) {
    const { id } = yield* Effect.flatMap(Organizations, ({ find }) => find(org))
    const entries = yield* Effect.flatMap(LedgerAdmin, (books) => books.entries(id, { limit }))
    yield* presentList(json, entries.map(entryRecord), {
      columns: ["id", "at", "kind", "amount_usd", "key_id", "ref", "note"],
      none: "The ledger has no entries of this organization."
    })
  })
).pipe(Command.withDescription("Show an organization's entries, newest first."), Command.provide(operator))

// The rows are as the database has them, and amounts in them nano-USD.
const asText = Schema.encodeSync(Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown })))

const verify = Command.make(
  "verify",
  { json: Inputs.json },
  Effect.fnUntraced(function* ({ json }) {
    const { entries, holds, organizations, violations } = yield* Effect.flatMap(LedgerAdmin, (books) => books.verify)
    const broken = violations.map(({ invariant, row }): Fields => ({ invariant, row: asText(row) }))
    const counts = { organizations, entries, holds }
    const proof = `Every invariant holds over ${organizations} organizations, ${entries} entries and ${holds} holds.`
    const rows = broken.map(({ invariant, row }) => `${toJson(invariant ?? null)} ${toJson(row ?? null)}`).join("\n")
    yield* present(
      json,
      { proved: broken.length === 0, ...counts, violations: broken },
      broken.length === 0 ? proof : rows
    )
    if (broken.length > 0) {
      const rows = broken.length === 1 ? "1 row breaks" : `${broken.length} rows break`
      return yield* new CommandFailed({ message: `The ledger is broken: ${rows} an invariant.` })
    }
    return undefined
  })
).pipe(Command.withDescription("Prove every invariant over the whole database."), Command.provide(operator))

export const ledger = Inputs.group("ledger", "The record of all money moved.").pipe(
  Command.withSubcommands([show, verify])
)
