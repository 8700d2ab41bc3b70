/** Rows that would take a gateway to be written: holds, charges, requests of the log. */

import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import * as ClosingSql from "../../../src/services/ledger/ClosingSql.ts"
import * as HoldSql from "../../../src/services/ledger/HoldSql.ts"
import { runWith } from "../../../src/services/sql/Statement.ts"
import type { Account } from "../client/Account.ts"

type Payer = Pick<Account, "org" | "key">

/** An open hold of a job, which no sweep releases. */
export const holdOne = Effect.fnUntraced(function* ({ key, org }: Payer, amount: bigint) {
  const sql = yield* SqlClient.SqlClient
  const id = randomUUID()
  yield* runWith(sql, HoldSql.place(null, [{ id, org, key, amount: NanoUsd(amount), rateLimit: undefined }]))
  return id
})

/** A request of a minute ago that was charged, with its row of the log. */
export const chargeOne = Effect.fnUntraced(function* ({ key, org }: Payer, amount: bigint) {
  const sql = yield* SqlClient.SqlClient
  const hold = yield* holdOne({ key, org }, amount)
  const requestId = `req_${randomUUID()}`
  const row = {
    id: hold,
    request_id: requestId,
    at: new Date(Date.now() - 60_000).toISOString(),
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
  yield* runWith(sql, ClosingSql.settle([{ id: hold, org, cost: NanoUsd(amount) }], "job", [JSON.stringify(row)]))
  return { hold, requestId }
})

/** Writes a row of the request log; amounts in nano-USD. */
export const logRequest = Effect.fnUntraced(function* (row: Readonly<Record<string, unknown>>) {
  const sql = yield* SqlClient.SqlClient
  const id = randomUUID()
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
