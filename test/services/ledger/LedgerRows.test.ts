import { SqlClient } from "@effect/sql/SqlClient"
import { SqlError } from "@effect/sql/SqlError"
import { Effect, Layer } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import type { Allowance } from "../../../src/services/access/RateLimiter.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { refundFailed } from "../../../src/services/ledger/Refunds.ts"
import { inLogSpan } from "../../../src/services/requests/RequestColumns.ts"
import { type RequestEntry, rowOf } from "../../../src/services/requests/RequestEntry.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { losing } from "../../harness/database/LostStatements.ts"
import { account, impatient, ledgers, observedProcess, one } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { logIdAt } from "../../harness/LogId.ts"

/** The answer to the first statement that places holds is lost, and no other. */
const forgettingOnce = losing("answer", "placed AS")

const paid: Omit<RequestEntry, "id" | "hold" | "org" | "key"> = {
  requestId: "r",
  at: 0,
  surface: "chat",
  status: 200,
  code: null,
  model: "m",
  route: "m@p",
  provider: "p",
  stream: false,
  attempts: [],
  notes: [],
  usage: undefined,
  charge: 0n,
  cost: undefined,
  firstByteMs: 1,
  totalMs: 2
}

const rowsOf = (org: OrgId) =>
  Effect.flatMap(
    SqlClient,
    (sql) => sql<{ readonly charge: string }>`
      SELECT request_id, surface, model, charge, key_id FROM request_log WHERE org_id = ${org} ORDER BY charge`
  )

withLayer(Layer.provideMerge(observedProcess(), forgettingOnce))("a hold and its charge", (it) => {
  it.effect("use one rate unit, even if the answer was lost and the statement was repeated", function* () {
    const { key, org, sql } = yield* account(one)
    const allowances: Array<Allowance | undefined> = []
    const ledger = yield* Ledger
    yield* Holds.release(
      ledger,
      yield* Holds.admit(ledger, {
        org,
        key,
        upTo: one,
        rateLimit: 5,
        onAllowances: ({ rate }) => allowances.push(rate)
      })
    )
    assert.deepStrictEqual(allowances, [{ limit: 5, remaining: 4, isAdmitted: true }])
    assert.deepStrictEqual(yield* sql`SELECT used FROM rate_windows WHERE key_id = ${key}`, [{ used: "1" }])
  })

  const left = { status: 499, code: "client_closed" }
  const refunded: ReadonlyArray<readonly [what: string, paid: Partial<RequestEntry>, failed: object]> = [
    ["an answer in one piece", {}, { status: 500, code: "internal_error" }],
    ["a stream, whose head was sent,", { stream: true }, { status: 200, code: "stream_error" }],
    ["a client that left", left, left],
    ["a client that left its stream", { ...left, stream: true }, left]
  ]
  it.effect.each(refunded)("write the row of %s, which a refund marks as failed", function* ([, more, failed]) {
    const { bench, ids, key, ledger, org, sql } = yield* account(one)
    const id = ids.uuid()
    const hold = yield* Holds.admit(ledger, { id, org, key, upTo: one })
    const row = rowOf({ ...paid, ...more, id, hold: id, org, key })
    assert.deepInclude(yield* ledger.settle(hold, NanoUsd(7n), { logRow: row }), {
      charged: NanoUsd(7n),
      isLogged: true
    })
    const rows = sql`SELECT status, code, charge FROM request_log WHERE id = ${id}`
    const { code = null, status = 200 } = more
    assert.deepStrictEqual(yield* rows, [{ status, code, charge: "7" }])
    yield* refundFailed(sql, id)
    assert.deepStrictEqual(yield* rows, [{ ...failed, charge: "0" }])
    const [{ message } = assert.fail("no row")] =
      yield* sql`SELECT error ->> 'message' AS message FROM request_log WHERE id = ${id}`
    assert.strictEqual(message, failed === left ? null : "Internal server error.")
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: one, held: NanoUsd(0n) })
    assert.isTrue(yield* bench.proved)
  })

  it.effect("are written even if the log row is rejected", function* () {
    const { bench, key, ledger, org } = yield* account(one)
    const hold = yield* Holds.admit(ledger, { org, key, upTo: one })
    const row = rowOf({ ...paid, id: "no uuid", hold: hold.id, org, key })
    assert.deepInclude(yield* ledger.settle(hold, NanoUsd(7n), { logRow: row }), { charged: NanoUsd(7n) })
    assert.deepStrictEqual(yield* bench.charges(org), [NanoUsd(7n)])
    const bare = { requestId: "r", surface: "chat", model: "m", charge: "7", keyId: key }
    assert.deepStrictEqual(yield* rowsOf(org), [bare])
    assert.isTrue(yield* bench.proved)
  })

  it.effect.each([
    ["without a row", undefined],
    [
      "whose row is refused",
      rowOf({ ...paid, id: "no uuid", hold: undefined, org: OrgId.make("o"), key: KeyId.make("k") })
    ]
  ] as const)("are found by the time of the request, however late its charge %s is", function* ([, row]) {
    const { key, ledger, org, sql } = yield* account(one)
    const at = Date.now() - 3_600_000
    const hold = yield* Holds.admit(ledger, { id: logIdAt(at), org, key, upTo: one })
    yield* ledger.settle(hold, NanoUsd(7n), { logRow: row })
    const found = sql`SELECT at FROM request_log WHERE org_id = ${org} AND ${sql.and(inLogSpan(sql, { since: at, until: at + 1 }))}`
    assert.deepStrictEqual(yield* found, [{ at: new Date(at) }])
  })
})

withLayer(Layer.provide(ledgers, impatient))("a charge with other statements", (it) => {
  it.effect("writes the row too, in one transaction", function* () {
    const { bench, ids, key, ledger, org, sql } = yield* account(3n * one)
    const settle = Effect.fnUntraced(function* (
      amount: bigint,
      effect: Effect.Effect<unknown, SqlError>,
      prompt: number
    ) {
      const id = ids.uuid()
      const hold = yield* Holds.admit(ledger, { id, org, key, upTo: one })
      const row = rowOf({
        ...paid,
        id,
        hold: id,
        org,
        key,
        usage: { prompt, completion: 1, cached: 0, cacheWrite: 0, reasoning: 0 }
      })
      return yield* ledger.settle(hold, NanoUsd(amount), { effect, logRow: row })
    })
    assert.deepInclude(yield* settle(7n, sql`SELECT 1`, 5), { charged: NanoUsd(7n), isLogged: true })
    assert.deepInclude(yield* settle(8n, sql`SELECT 1`, 1e30), { charged: NanoUsd(8n) })
    const lost = new SqlError({ cause: new Error("refused"), message: "refused" })
    yield* Effect.flip(settle(9n, lost, 5))
    const rows = yield* rowsOf(org)
    assert.deepStrictEqual(rows.map(({ charge }) => charge).toSorted(), ["7", "8"])
    assert.isTrue(yield* bench.proved)
  })
})
