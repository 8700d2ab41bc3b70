import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Operators } from "../../../src/services/admin/Operators.ts"
import { hire } from "../../harness/client/AdminClient.ts"
import { bearer, callAt, soon } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer, MediaServer } from "../MediaServer.ts"

/** What the statements of an answer wait for, until the scope closes. */
const lock = Effect.fnUntraced(function* (table: string) {
  const { connect } = yield* Database
  const client = yield* connect
  yield* Effect.promise(() => client.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`))
})

const assertWaits = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const waiting = yield* sql`
    SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
  assert.isNotEmpty(waiting)
})

/** What becomes of an answer that is not there yet. */
const reading = Effect.fnUntraced(function* (path: string, init: RequestInit) {
  const { url } = yield* MediaServer
  const ending = fetch(`${url}/admin/v1${path}`, init)
    .then((response) => response.text())
    .then(
      () => "complete",
      () => "broken off"
    )
  yield* soon(assertWaits)
  return Effect.promise(() => ending)
})

withLayer(layer)("a long answer to an operator", (it) => {
  it.scoped("breaks off when the token is revoked", function* () {
    const { revoke } = yield* Operators
    const { id, token } = yield* asOperator("read")
    yield* lock("key_spend")
    const ending = yield* reading("/ledger/verify", { method: "POST", headers: bearer(token) })
    yield* revoke(OrganizationScope.all, id)
    assert.strictEqual(yield* ending, "broken off")
  })

  it.scoped("breaks off when the session ends", function* () {
    const { url } = yield* MediaServer
    const { token } = yield* hire("read")
    const signedIn = yield* callAt(`${url}/admin/v1/session`, {
      body: { token },
      headers: { "content-type": "application/json" }
    })
    const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? ""
    yield* lock("request_log")
    const ending = yield* reading("/requests.csv", { headers: { cookie } })
    const { status } = yield* callAt(`${url}/admin/v1/session`, { method: "DELETE", headers: { cookie, origin: url } })
    assert.strictEqual(status, 204)
    assert.strictEqual(yield* ending, "broken off")
  })
})
