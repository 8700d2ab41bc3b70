import { Effect } from "effect"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import {
  type Groupings,
  groupingForms,
  parseGroupings,
  usageColumns,
  usageCsv,
  usageRecord,
  usageSums
} from "../services/admin/UsageRecord.ts"
import { Usage } from "../services/telemetry/Usage.ts"
import { command, filterOf } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

export const usage = command(
  "usage",
  "Spend, cost, margin and tokens, by the request log.",
  {
    org: Inputs.orgFilter,
    by: Inputs.optional(
      Inputs.option("by", groupingForms, parseGroupings),
      `${groupingForms}; days are UTC; default: model`
    ),
    csv: Inputs.csv,
    ...Inputs.period
  },
  Effect.fnUntraced(function* (given) {
    const groupings: Groupings = given.by ?? ["model"]
    const [by, thenBy] = groupings
    const query = { ...(yield* Inputs.readPeriod(given)), org: yield* filterOf(given.org) }
    const { report } = yield* Usage
    const { rows, totals: all } = yield* report(OrganizationScope.all, { ...query, by, thenBy })
    const records = rows.map((row) => usageRecord(groupings, row))
    const totals = usageSums(all)
    const shown = usageColumns(groupings)
    const text = given.csv
      ? usageCsv(groupings, rows).join("\n")
      : Output.table(
          rows.length === 0 ? [] : [...records, { ...totals, [by]: "total" }],
          shown,
          "There were no requests."
        )
    return { document: { data: records, totals }, text }
  })
)
