import { Effect } from "effect"
import { csvLine } from "../domain/Csv.ts"
import { month, monthForms } from "../domain/Month.ts"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { lineColumns, linesOf } from "../services/statements/Statement.ts"
import { Statements } from "../services/statements/Statements.ts"
import { command, findAnyOrganization } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

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
    const lines = linesOf(statement)
    const text = given.csv
      ? [csvLine(lineColumns), ...lines.map((line) => csvLine(lineColumns.map((column) => line[column])))].join("\n")
      : Output.table(lines, lineColumns, "")
    return { document: statement, text }
  })
)
