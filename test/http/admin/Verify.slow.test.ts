import { SqlClient } from "@effect/sql"
import { Effect, Struct } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { Verification } from "../../../src/services/ledger/Verification.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, soon } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer, MediaServer } from "../MediaServer.ts"

const linesOf = (text: string) =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))

const sums = "a balance is the sum of the organization's entries"

/** What the statements of a verification wait for, until the scope closes. */
const lockTable = Effect.gen(function* () {
  const { connect } = yield* Database
  const client = yield* connect
  yield* Effect.promise(() => client.query("BEGIN; LOCK TABLE key_spend IN ACCESS EXCLUSIVE MODE"))
})

const verifications = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const found = yield* sql`
    SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'SELECT broken%' AND leader_pid IS NULL`
  return found.length
})

withLayer(layer)("verifying the ledger at the admin API", (it) => {
  it.effect("proves each invariant by its name, and says what about and when", function* () {
    const { admin } = yield* asOperator("read")
    yield* openAccount({})
    const { data } = read(yield* admin("/ledger/invariants"))
    assert.include(data, sums)
    const answer = yield* admin("/ledger/verify", { method: "POST" })
    assert.strictEqual(answer.headers.get("content-type"), "application/x-ndjson")
    const proofs = linesOf(answer.text)
    const last = proofs.pop()
    assert.deepStrictEqual(
      proofs.map((proof) => Struct.omit(proof, "ms")),
      data.map((invariant: string) => ({ invariant, violations: [], count: 0 }))
    )
    assert.deepInclude(last, { done: true, holds_true: true })
    assert.isAtLeast(last.organizations, 1)
    assert.approximately(last.at, Date.now() / 1000, 60)
  })

  it.effect("shows the first rows that break an invariant, and counts all", function* () {
    const { admin } = yield* asOperator("read")
    const sql = yield* SqlClient.SqlClient
    const { org } = yield* openAccount({})
    yield* Effect.replicateEffect(openAccount({}), 24)
    const tamper = (by: number) => sql`UPDATE organizations SET balance = balance + ${by}`
    yield* tamper(1)
    const [{ total } = { total: 0 }] = yield* sql<{ total: number }>`SELECT count(*)::int AS total FROM organizations`
    const lines = linesOf((yield* admin("/ledger/verify", { method: "POST" })).text)
    yield* tamper(-1)
    const broken = lines.find(({ invariant }) => invariant === sums)
    assert.strictEqual(broken.count, total)
    assert.lengthOf(broken.violations, 20)
    assert.hasAllKeys(broken.violations[0], ["orgId", "balance", "entries"])
    assert.include(JSON.stringify(lines), org.slice(0, 4))
    assert.isFalse(lines.at(-1).holds_true)
  })

  it.scoped("runs once at a time, and ends with its client", function* () {
    const { admin } = yield* asOperator("read")
    const { url } = yield* MediaServer
    yield* lockTable
    const { token } = yield* asOperator("read")
    const leaving = new AbortController()
    const response = yield* Effect.promise(() =>
      fetch(`${url}/admin/v1/ledger/verify`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        signal: leaving.signal
      })
    )
    assert.strictEqual(response.status, 200)
    yield* soon(Effect.map(verifications, (running) => assert.strictEqual(running, 1)))
    assertRefused(
      yield* admin("/ledger/verify", { method: "POST" }),
      refusals.conflict("A verification is already running. Wait until it finishes.")
    )
    leaving.abort()
    yield* soon(Effect.map(verifications, (running) => assert.strictEqual(running, 0)))
    yield* soon(
      Effect.gen(function* () {
        const { start } = yield* Verification
        yield* Effect.scoped(start)
      })
    )
  })
})
