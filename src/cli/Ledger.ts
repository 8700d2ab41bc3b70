import { Command } from "@effect/cli"
import { Effect, Schema } from "effect"
import { pluralize } from "../domain/Plural.ts"
import { LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import type { Proof } from "../services/ledger/Verification.ts"
import { command, findAnyOrganization } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const show = command(
  "show",
  "Show an organization's entries, newest first.",
  { org: Inputs.orgArgument, limit: Inputs.limit(100_000, "how many entries") },
  Effect.fnUntraced(function* ({ limit, org }) {
    const { id } = yield* findAnyOrganization(org)
    const { entries } = yield* LedgerAdmin
    return Output.list(yield* entries(id, { limit }), {
      columns: ["id", "at", "kind", "amount_usd", "key_id", "ref", "note"],
      none: "The ledger has no entries of this organization."
    })
  })
)

const asText = Schema.encodeSync(Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown })))

/** On a terminal only: large ledgers take minutes. */
const showProgress = ({ count, invariant, millis }: Proof) =>
  Effect.sync(() => {
    if (!process.stderr.isTTY) return
    const outcome = count === 0 ? "holds" : `broken by ${pluralize(count, "row")}`
    process.stderr.write(`${(millis / 1000).toFixed(1).padStart(6)} s  ${invariant}: ${outcome}\n`)
  })

const verify = command(
  "verify",
  "Prove every invariant over the whole database.",
  {},
  Effect.fnUntraced(function* () {
    const { verifyEach } = yield* LedgerAdmin
    const { entries, holds, organizations, violations } = yield* verifyEach(showProgress)
    const counts = { organizations, entries, holds }
    if (violations.length === 0) {
      const text = `Every invariant holds over ${pluralize(organizations, "organization")}, ${pluralize(entries, "entry", "entries")} and ${pluralize(holds, "hold")}.`
      return { document: { proved: true, ...counts, violations: [] }, text }
    }
    const broken = violations.map(({ invariant, row }) => ({ invariant, row: asText(row) }))
    return {
      document: { proved: false, ...counts, violations: broken },
      text: broken.map(({ invariant, row }) => `${JSON.stringify(invariant)} ${JSON.stringify(row)}`).join("\n"),
      failure: `The ledger is broken: ${pluralize(broken.length, "row breaks", "rows break")} an invariant.`
    }
  })
)

export const ledger = Inputs.group("ledger", "The record of all money moved.").pipe(
  Command.withSubcommands([show, verify])
)
