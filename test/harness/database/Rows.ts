/** Writes rows that normally only a gateway writes: holds, charges and rows of the request log. */

import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import * as ClosingSql from "../../../src/services/ledger/ClosingSql.ts"
import * as HoldSql from "../../../src/services/ledger/HoldSql.ts"
import { runWith } from "../../../src/services/sql/SqlStatement.ts"
import type { Account } from "../client/Account.ts"
import { logIdAt } from "../LogId.ts"

type Payer = Pick<Account, "org" | "key">

/** Writes an open hold of a job, which the sweeper does not release. */
export const holdOne = Effect.fnUntraced(function* ({ key, org }: Payer, amount: bigint, at = Date.now()) {
  const sql = yield* SqlClient.SqlClient
  const id = logIdAt(at)
  yield* runWith(sql, HoldSql.place(null, [{ id, org, key, amount: NanoUsd(amount), rateLimit: undefined }]))
  return id
})

/** Writes a charged request of a minute ago, with its log row. */
export const chargeOne = Effect.fnUntraced(function* ({ key, org }: Payer, amount: bigint) {
  const sql = yield* SqlClient.SqlClient
  const at = Date.now() - 60_000
  const hold = yield* holdOne({ key, org }, amount, at)
  const requestId = `req_${randomUUID()}`
  const row = {
    id: hold,
    request_id: requestId,
    at: new Date(at).toISOString(),
    surface: "chat",
    status: 200,
    org_id: org,
    key_id: key,
    stream: false,
    attempts: [],
    notes: [],
    hold_id: hold,
    total_ms: 5
  }
  yield* runWith(sql, ClosingSql.settle([{ id: hold, org, cost: NanoUsd(amount) }], [JSON.stringify(row)], "one"))
  return { hold, requestId }
})

/** Writes a row of the request log. Amounts are in nano-USD. */
export const logRequest = Effect.fnUntraced(function* (row: Readonly<Record<string, unknown>>) {
  const sql = yield* SqlClient.SqlClient
  const { at = Date.now() } = row
  const id = logIdAt(new Date(at instanceof Date || typeof at === "number" ? at : String(at)).getTime())
  yield* sql`INSERT INTO request_log SELECT * FROM json_populate_record(NULL::request_log, ${JSON.stringify({
    id,
    request_id: `req_${id}`,
    at: new Date(),
    surface: "chat",
    status: 200,
    org_id: "org_none",
    key_id: "key_none",
    stream: false,
    attempts: [],
    notes: [],
    charge: 0,
    total_ms: 5,
    ...row
  })}::json)`
  return typeof row["id"] === "string" ? row["id"] : id
})
