import { Command } from "@effect/cli"
import { Effect, Schema } from "effect"
import { month, monthForms } from "../domain/Month.ts"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { pluralize } from "../domain/Plural.ts"
import { holdsCsv } from "../services/admin/LedgerCsv.ts"
import { LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import { type Proof } from "../services/ledger/Verification.ts"
import { csvLinesOf, lineColumns, linesOf } from "../services/statements/Statement.ts"
import { Statements } from "../services/statements/Statements.ts"
import { command, filterOf, findAnyOrganization } from "./Commands.ts"
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

// Where the terminal is narrow, columns go from the right.
const columns = [
  "created_at",
  "age_seconds",
  "org_name",
  "amount_usd",
  "waits_for",
  "detail",
  "model",
  "org",
  "key_id",
  "key_name",
  "request_id",
  "video",
  "id"
]

export const holds = command(
  "holds",
  "Open holds, oldest first, and what each waits for.",
  {
    org: Inputs.orgFilter,
    olderThan: Inputs.olderThan,
    csv: Inputs.csv,
    limit: Inputs.limit(100_000, "how many holds")
  },
  Effect.fnUntraced(function* ({ csv, limit, olderThan, org }) {
    const { openHolds } = yield* LedgerAdmin
    const found = yield* openHolds(OrganizationScope.all, { org: yield* filterOf(org), olderThan, limit })
    const { document, text } = Output.list(found, { columns, none: "Nothing is held." })
    return { document, text: csv ? holdsCsv(found).join("\n") : text }
  })
)

export const statement = command(
  "statement",
  "What an organization paid and used in a month, from balance to balance.",
  {
    org: Inputs.orgArgument,
    month: Inputs.optional(
      Inputs.option("month", monthForms, month),
      `${monthForms}, of UTC; default: the running one`
    ),
    csv: Inputs.csv
  },
  Effect.fnUntraced(function* (given) {
    const { id } = yield* findAnyOrganization(given.org)
    const { find } = yield* Statements
    const statement = yield* find(OrganizationScope.all, id, given.month)
    const text = given.csv ? csvLinesOf(statement).join("\n") : Output.table(linesOf(statement), lineColumns, "")
    return { document: statement, text }
  })
)
