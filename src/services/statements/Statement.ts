import { Schema } from "effect"
import { Integer } from "../../domain/Constraints.ts"
import { type CsvCell, csvLine } from "../../domain/Csv.ts"
import { OrgId } from "../../domain/Organization.ts"
import { TextOrNull, UnixSeconds, Usd } from "../resources/Record.ts"

export const StatementEntry = Schema.Struct({
  id: Schema.String,
  at: UnixSeconds.annotations({ jsonSchema: { type: "integer", description: "Unix seconds." } }),
  amount_usd: Usd.annotations({ description: "What it adds to the balance." }),
  ref: TextOrNull
}).annotations({ identifier: "StatementEntry" })
export type StatementEntry = typeof StatementEntry.Type

export const StatementUsage = Schema.Struct({
  model: TextOrNull.annotations({ description: "Null: charges of which nothing else is kept." }),
  surface: TextOrNull,
  requests: Integer.annotations({ description: "Those that were charged." }),
  prompt_tokens: Integer,
  completion_tokens: Integer,
  images: Integer,
  seconds: Integer.annotations({ description: "Of video." }),
  charge_usd: Usd.annotations({
    description: "Before refunds, which are listed in the month in which they were given."
  })
}).annotations({ identifier: "StatementUsage" })
export type StatementUsage = typeof StatementUsage.Type

/** The closing balance is the opening one, plus all entries listed, less all charges. */
export const Statement = Schema.Struct({
  object: Schema.Literal("statement"),
  organization: OrgId,
  month: Schema.String,
  opening_usd: Usd,
  closing_usd: Usd.annotations({
    description: "The opening balance of the next month; of the running month the balance now."
  }),
  payments: Schema.Array(StatementEntry),
  reversals: Schema.Array(StatementEntry).annotations({ description: "Refunds and disputes of payments." }),
  refunds: Schema.Array(StatementEntry).annotations({ description: "What was given back of charges, of any month." }),
  adjustments: Schema.Array(StatementEntry),
  usage: Schema.Array(StatementUsage),
  total_charge_usd: Usd
}).annotations({ identifier: "Statement", description: "What an organization paid and used in a month of UTC." })
export type Statement = typeof Statement.Type

/** The sections of entries, and what a line of each is called. */
export const sections = {
  payments: "payment",
  reversals: "payment reversal",
  refunds: "refund",
  adjustments: "adjustment"
} as const
export type Section = keyof typeof sections
export const sectionNames: ReadonlyArray<Section> = ["payments", "reversals", "refunds", "adjustments"]

export const lineColumns = [
  "line",
  "at",
  "model",
  "surface",
  "requests",
  "prompt_tokens",
  "completion_tokens",
  "images",
  "seconds",
  "amount_usd",
  "ref"
] as const

type Cells = {
  readonly [Column in (typeof lineColumns)[number]]?: Exclude<CsvCell, ReadonlyArray<string>>
}
export type StatementLine = Cells & { readonly amount_usd: bigint }

/** All but the last add up to the last. */
export const linesOf = (statement: Statement): ReadonlyArray<StatementLine> => [
  { line: "opening balance", amount_usd: statement.opening_usd },
  ...sectionNames.flatMap((section) =>
    statement[section].map(({ amount_usd, at, ref }) => ({ line: sections[section], at, amount_usd, ref }))
  ),
  ...statement.usage.map(({ charge_usd, model, surface, ...counts }) => ({
    line: "usage",
    model: model ?? "other",
    surface,
    ...counts,
    amount_usd: -charge_usd
  })),
  { line: "closing balance", amount_usd: statement.closing_usd }
]

export const csvLinesOf = (statement: Statement): ReadonlyArray<string> => [
  csvLine(lineColumns),
  ...linesOf(statement).map((line) => csvLine(lineColumns.map((column) => line[column])))
]
