import { Command } from "@effect/cli"
import { Effect, Schema } from "effect"
import { withoutControls } from "../domain/Csv.ts"
import { currencyText, discountText } from "../domain/Documents.ts"
import { month, monthForms } from "../domain/Month.ts"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { pluralize } from "../domain/Wording.ts"
import { holdsCsv, LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import type { Proof } from "../services/ledger/Verification.ts"
import { csvLinesOf, lineColumns, linesOf, type Statement, Statements } from "../services/statements/Statements.ts"
import { command, findAnyOrganization, findOrganizationId } from "./CommandBuilders.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

const show = command(
  "show",
  "Show an organization's ledger entries, newest first.",
  { org: Inputs.orgArgument, limit: Inputs.limit(100_000, "maximum number of entries") },
  Effect.fnUntraced(function* ({ limit, org }) {
    const { id } = yield* findAnyOrganization(org)
    const { entries } = yield* LedgerAdmin
    return Output.list(yield* entries(id, { limit }), {
      columns: ["id", "at", "kind", "amount_usd", "key_id", "ref", "note"],
      none: "This organization has no ledger entries."
    })
  })
)

const asText = Schema.encodeSync(Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown })))

const pairsOf = (row: Readonly<Record<string, unknown>>) =>
  Object.entries(row)
    .map(([name, value]) => withoutControls(`${name} ${typeof value === "string" ? value : JSON.stringify(value)}`))
    .join(", ")

/** On a terminal, prints each invariant when it is verified, because a large ledger takes minutes. */
const showProgress = ({ count, invariant, millis }: Proof) =>
  Effect.sync(() => {
    if (!process.stderr.isTTY) return
    const outcome = count === 0 ? "holds" : `broken by ${pluralize(count, "row")}`
    process.stderr.write(`${(millis / 1000).toFixed(1).padStart(6)} s  ${invariant}: ${outcome}\n`)
  })

const verify = command(
  "verify",
  "Verify every balance, hold and entry of the ledger in the database.",
  {},
  Effect.fnUntraced(function* () {
    const { verifyEach } = yield* LedgerAdmin
    const { entries, holds, organizations, violations } = yield* verifyEach(showProgress)
    const counts = { organizations, entries, holds }
    if (violations.length === 0) {
      const text = `Every invariant holds for ${pluralize(organizations, "organization")}, ${pluralize(entries, "entry", "entries")} and ${pluralize(holds, "hold")}.`
      return { document: { proved: true, ...counts, violations: [] }, text }
    }
    const broken = violations.map(({ invariant, row }) => ({ invariant, row: asText(row) }))
    return {
      document: { proved: false, ...counts, violations: broken },
      text: violations.map(({ invariant, row }) => `${invariant}: ${pairsOf(row)}`).join("\n"),
      failure: `The ledger is broken: ${pluralize(broken.length, "row breaks", "rows break")} an invariant.`
    }
  })
)

export const ledger = Inputs.group("ledger", "Show and verify the ledger.").pipe(
  Command.withSubcommands([show, verify])
)

// The most important columns come first, because a narrow terminal hides columns from the right.
const columns = [
  "created_at",
  "age_seconds",
  "org_name",
  "amount_usd",
  "waits_for",
  "detail",
  "model",
  "key_name",
  "request_id",
  "video",
  "id",
  "key_id",
  "org"
]

export const holds = command(
  "holds",
  "List open holds, oldest first, with the reason why each is open.",
  {
    org: Inputs.orgFilter,
    olderThan: Inputs.olderThan,
    csv: Inputs.csv,
    limit: Inputs.limit(100_000, "maximum number of holds")
  },
  Effect.fnUntraced(function* ({ csv, limit, olderThan, org }) {
    const { openHolds } = yield* LedgerAdmin
    const found = yield* openHolds(OrganizationScope.all, { org: yield* findOrganizationId(org), olderThan, limit })
    const { document, text } = Output.list(found, { columns, none: "There are no open holds." })
    return { document, text: csv ? holdsCsv(found).join("\n") : text }
  })
)

/** Returns the head of a printed statement. */
const headOf = (statement: Statement): string => {
  const { seller } = statement
  const changes = statement.discount_changes.map(({ at, ...percents }) => ({ at: at.getTime() / 1000, ...percents }))
  const discount = discountText(statement.discount_percent, changes)
  return Output.sheet({
    statement: statement.number,
    ...(seller !== undefined && { seller: [seller.name, ...(seller.address?.split("\n") ?? [])].join(", ") }),
    ...(seller?.tax_id !== undefined && { tax_id: seller.tax_id }),
    customer: `${statement.organization_name} (${statement.organization})`,
    period: statement.period,
    currency: currencyText,
    ...(discount !== undefined && { discount })
  })
}

export const statement = command(
  "statement",
  "Show an organization's monthly statement.",
  {
    org: Inputs.orgArgument,
    month: Inputs.optional(
      Inputs.option("month", monthForms, month),
      `${monthForms}, in UTC; default: the current month`
    ),
    csv: Inputs.csv
  },
  Effect.fnUntraced(function* (input) {
    const { id } = yield* findAnyOrganization(input.org)
    const { find } = yield* Statements
    const statement = yield* find(OrganizationScope.all, id, input.month)
    if (input.csv) return { document: statement, text: csvLinesOf(statement).join("\n") }
    const lines = Output.table(linesOf(statement), lineColumns, "")
    return { document: statement, text: `${headOf(statement)}\n\n${lines}` }
  })
)
