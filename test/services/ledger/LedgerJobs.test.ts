import { SqlClient } from "@effect/sql"
import { Context, Effect } from "effect"
import { Instance } from "../../../src/services/instance/Instance.ts"
import * as HoldSql from "../../../src/services/ledger/HoldSql.ts"
import { sweep } from "../../../src/services/ledger/HoldSweeper.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { runWith } from "../../../src/services/sql/SqlStatement.ts"
import { ledgerJobsContract } from "../../contracts/LedgerJobs.ts"
import * as LedgerFake from "../../fakes/LedgerFake.ts"
import { moneyOf } from "../../harness/database/Money.ts"
import { account, anotherProcess, ledgers, one } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"

ledgerJobsContract("in memory", LedgerFake.layer)
ledgerJobsContract("PostgreSQL", ledgers)

withLayer(ledgers)("jobs in PostgreSQL", (it) => {
  it.effect("outlive the process that began them", function* () {
    const { bench, key, org, sql } = yield* account(one)
    const hold = { id: (yield* Ids).uuid(), org, key, amount: one }
    yield* Effect.scoped(Effect.flatMap(anotherProcess, (context) => Context.get(context, Ledger).job.hold(hold)))
    yield* sweep
    assert.deepInclude(yield* moneyOf(org), { held: one, openHolds: 1 })
    assert.deepStrictEqual(yield* sql`SELECT instance_id FROM holds WHERE id = ${hold.id}`, [{ instanceId: null }])
    assert.deepInclude(yield* (yield* Ledger).job.settle(hold, one), { charged: one })
    assert.isTrue(yield* bench.proved)
  })

  it.effect("change nothing in a transaction that is rolled back", function* () {
    const sql = yield* SqlClient.SqlClient
    const { job } = yield* Ledger
    const { bench, key, org } = yield* account(one)
    const hold = { id: (yield* Ids).uuid(), org, key, amount: one }
    const rolledBack = <A, E>(statements: Effect.Effect<A, E>) =>
      Effect.flip(sql.withTransaction(Effect.zipRight(statements, Effect.fail("rolled back"))))
    yield* rolledBack(job.hold(hold))
    assert.deepInclude(yield* moneyOf(org), { held: 0n, openHolds: 0 })
    yield* job.hold(hold)
    yield* rolledBack(job.settle(hold, one))
    yield* rolledBack(job.release(hold))
    assert.deepInclude(yield* moneyOf(org), { held: one, openHolds: 1, charges: [] })
    yield* sql.withTransaction(job.settle(hold, one))
    assert.deepInclude(yield* moneyOf(org), { held: 0n, balance: 0n, charges: [one] })
    assert.isTrue(yield* bench.proved)
  })

  it.effect("add no scan of all holds to a reservation", function* () {
    const { bench, ids, key, org, sql } = yield* account(one)
    yield* bench.cap(key, one, "month")
    yield* sql`
        INSERT INTO holds (id, org_id, key_id, amount, state, charged, closed_at)
        SELECT gen_random_uuid(), ${org}, ${key}, 0, 'released', NULL, now() FROM generate_series(1, 20000)`
    yield* sql`
        INSERT INTO instances (id, stopped_at) SELECT gen_random_uuid(), now() FROM generate_series(1, 5000)`
    yield* sql`ANALYZE holds, instances`
    const instance = yield* (yield* Instance).id
    const batch = [{ id: ids.uuid(), org, key, amount: one, rateLimit: 600 }]
    for (const query of [HoldSql.place(instance, batch), HoldSql.place(null, batch)]) {
      const read = sql`SELECT sum(seq_tup_read)::int AS rows FROM pg_stat_xact_user_tables
        WHERE relname IN ('holds', 'instances')`
      const [before, , after] = yield* sql.withTransaction(Effect.all([read, runWith(sql, query), read]))
      assert.deepStrictEqual(after, before)
      const plan = yield* sql.unsafe(`EXPLAIN ${query.text}`, query.values)
      assert.notMatch(JSON.stringify(plan), /Seq Scan on (holds|instances)/)
    }
  })
})
