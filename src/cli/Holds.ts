import { Effect } from "effect"
import { OrganizationScope } from "../domain/OrganizationScope.ts"
import { holdsCsv } from "../services/admin/LedgerCsv.ts"
import { LedgerAdmin } from "../services/ledger/LedgerAdmin.ts"
import { command, filterOf } from "./Commands.ts"
import * as Inputs from "./Inputs.ts"
import * as Output from "./Output.ts"

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
