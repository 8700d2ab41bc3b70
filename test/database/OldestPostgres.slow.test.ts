import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import { oldestTested } from "../../src/database/Requirements.ts"
import { administration } from "../../src/services/admin/AdminServices.ts"
import { Dashboard } from "../../src/services/admin/Dashboard.ts"
import { DatabaseTotalsReader } from "../../src/services/telemetry/DatabaseTotals.ts"
import { ledgerContract } from "../contracts/Ledger.ts"
import { observedProcess } from "../harness/database/MoneyProcess.ts"
import { logRequest } from "../harness/database/Rows.ts"
import { assert, describe, liveOver } from "../harness/It.ts"
import * as InstalledPostgres from "./InstalledPostgres.ts"

const isSkipped = !InstalledPostgres.isInstalled(oldestTested)
const server = InstalledPostgres.layer(oldestTested)

describe.skipIf(isSkipped)("the oldest PostgreSQL that is tested", () => {
  const reports = Layer.provideMerge(Layer.merge(administration, DatabaseTotalsReader.layer), server)

  liveOver(reports)("takes every migration, and adds up what is logged", function* () {
    const sql = yield* SqlClient.SqlClient
    const [server] = yield* sql`SELECT current_setting('server_version_num')::int / 10000 AS major`
    assert.deepStrictEqual(server, { major: oldestTested })
    yield* logRequest({ model: "m", route: "m@p", provider: "p", charge: 9, cost: 4 })
    const { today, attention } = yield* Effect.flatMap(Dashboard, ({ read }) => read)
    assert.deepInclude(today, { requests: 1, charge_usd: 9n, margin_usd: 5n })
    assert.isEmpty(attention)
  })
})

if (!isSkipped) ledgerContract(`PostgreSQL ${oldestTested}`, Layer.provideMerge(observedProcess(), server))
