import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"

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
