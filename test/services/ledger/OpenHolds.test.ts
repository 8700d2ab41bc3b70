import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Exit, Fiber } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import * as ClosingSql from "../../../src/services/ledger/ClosingSql.ts"
import * as HoldSql from "../../../src/services/ledger/HoldSql.ts"
import { minimalLogRow } from "../../../src/services/requests/RequestEntry.ts"
import { runWith } from "../../../src/services/sql/SqlStatement.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { eventually } from "../../harness/database/Money.ts"
import { account, archiveNow, ledgers, one } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"

/** In which tables the hold has a row, and what it is read as. */
const placesOf = (id: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.map(
      sql<{ open: boolean; stored: boolean; charge: boolean; states: ReadonlyArray<string> }>`
        SELECT EXISTS (SELECT FROM open_holds WHERE id = ${id}) AS open, EXISTS (SELECT FROM holds WHERE id = ${id}) AS stored,
          EXISTS (SELECT FROM ledger_entries WHERE hold_id = ${id}) AS charge,
          ARRAY(SELECT state FROM all_holds WHERE id = ${id}) AS states`,
      ([places]) => places
    )
  )

withLayer(ledgers)("the storage of a hold", (it) => {
  it.effect("is the table of open holds, and after settlement only its charge", function* () {
    const { admin, bench, key, ledger, org } = yield* account(one)
    const hold = yield* Holds.admit(ledger, { org, key, upTo: one })
    assert.deepStrictEqual(yield* placesOf(hold.id), { open: true, stored: false, charge: false, states: ["open"] })
    const before = yield* Effect.fromNullable((yield* admin.hold(OrganizationScope.all, hold.id))?.hold.createdAt)
    yield* ledger.settle(hold, NanoUsd(7n))
    assert.deepStrictEqual(yield* placesOf(hold.id), { open: false, stored: false, charge: true, states: ["settled"] })
    const after = yield* admin.hold(OrganizationScope.all, hold.id)
    assert.deepInclude(after?.hold, { amount: one, state: "settled", charged: NanoUsd(7n), createdAt: before })
    assert.isNotNull(after?.hold.closedAt)
    assert.deepInclude(yield* ledger.settle(hold, one), { charged: NanoUsd(7n), wasReleased: false })
    assert.deepStrictEqual(yield* bench.charges(org), [NanoUsd(7n)])
    assert.isTrue(yield* bench.proved)
  })

  it.effect("charges it once if it is settled twice in one batch, and charges the others", function* () {
    const { bench, key, ledger, org } = yield* account(NanoUsd(2n * one))
    const twice = yield* Holds.admit(ledger, { org, key, upTo: one })
    const other = yield* Holds.admit(ledger, { org, key, upTo: one })
    const settled = yield* Effect.forEach([twice, other, twice], (hold) => ledger.settle(hold, NanoUsd(7n)), {
      concurrency: "unbounded"
    })
    for (const { charged, wasReleased } of settled) assert.deepStrictEqual([charged, wasReleased], [NanoUsd(7n), false])
    assert.deepStrictEqual(yield* bench.charges(org), [NanoUsd(7n), NanoUsd(7n)])
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: NanoUsd(2n * one - 14n), held: NanoUsd(0n) })
    assert.isTrue(yield* bench.proved)
  })

  it.effect("settles a hold of zero with a charge of zero", function* () {
    const { bench, key, ledger, org } = yield* account(one)
    const hold = yield* Holds.admit(ledger, { org, key, upTo: NanoUsd(0n) })
    yield* ledger.settle(hold, one)
    assert.deepStrictEqual(yield* placesOf(hold.id), { open: false, stored: false, charge: true, states: ["settled"] })
    assert.isTrue(yield* bench.proved)
  })

  it.effect(
    "keeps a released hold among the open ones for a while, then archives it, and never charges it",
    function* () {
      const { bench, key, ledger, org } = yield* account(one)
      const hold = yield* Holds.admit(ledger, { org, key, upTo: one })
      yield* Holds.release(ledger, hold)
      assert.deepStrictEqual(yield* placesOf(hold.id), {
        open: true,
        stored: false,
        charge: false,
        states: ["released"]
      })
      assert.deepInclude(yield* ledger.settle(hold, one), { charged: NanoUsd(0n), wasReleased: true })
      yield* archiveNow
      assert.deepStrictEqual(yield* placesOf(hold.id), {
        open: false,
        stored: true,
        charge: false,
        states: ["released"]
      })
      assert.deepInclude(yield* ledger.settle(hold, one), { charged: NanoUsd(0n), wasReleased: true })
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: one, held: NanoUsd(0n) })
      assert.isTrue(yield* bench.proved)
    }
  )

  it.effect("does not archive an old open hold", function* () {
    const { bench, key, ledger, org, sql } = yield* account(one)
    const hold = yield* Holds.admit(ledger, { org, key, upTo: one })
    yield* sql`UPDATE open_holds SET created_at = now() - interval '1 day' WHERE id = ${hold.id}`
    yield* archiveNow
    assert.deepInclude(yield* placesOf(hold.id), { open: true, stored: false })
    yield* ledger.settle(hold, one)
    assert.isTrue(yield* bench.proved)
  })

  it.effect("does not place a closed hold again for a late statement", function* () {
    const { bench, key, ledger, org, sql } = yield* account(NanoUsd(3n * one))
    const process = yield* (yield* Instance).id
    const [settled, released, archived] = yield* Effect.all([
      Holds.admit(ledger, { org, key, upTo: one }),
      Holds.admit(ledger, { org, key, upTo: one }),
      Holds.admit(ledger, { org, key, upTo: one })
    ])
    yield* Holds.release(ledger, archived)
    yield* archiveNow
    yield* ledger.settle(settled, NanoUsd(7n))
    yield* Holds.release(ledger, released)
    for (const hold of [settled, archived, released]) {
      const exit = yield* Effect.exit(runWith(sql, HoldSql.place(process, [{ ...hold, rateLimit: undefined }])))
      assert.strictEqual(Exit.isSuccess(exit), hold === released, "refused, or known")
    }
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: NanoUsd(3n * one - 7n), held: NanoUsd(0n) })
    assert.isTrue(yield* bench.proved)
  })

  it.scoped(
    "placed and closed while such a statement waits for the organization, it is not placed again",
    function* () {
      const { bench, ids, key, ledger, org, sql } = yield* account(NanoUsd(3n * one))
      const process = yield* (yield* Instance).id
      const hold = { id: ids.uuid(), org, key, amount: one, rateLimit: undefined }
      const isLocked = yield* Deferred.make<void>()
      const isWaiting = yield* Deferred.make<void>()
      const other = Effect.all([
        sql`SELECT FROM organizations WHERE id = ${org} FOR UPDATE`,
        Deferred.succeed(isLocked, undefined),
        Deferred.await(isWaiting),
        runWith(sql, HoldSql.place(process, [hold])),
        runWith(sql, ClosingSql.settle([{ ...hold, cost: NanoUsd(7n) }], [minimalLogRow(hold)]))
      ]).pipe(sql.withTransaction)
      const closed = yield* Effect.fork(other)
      yield* Deferred.await(isLocked)
      const { values, ...query } = HoldSql.place(process, [hold])
      const patient = { ...query, values: values.map((value) => (value === "250" ? "20000" : value)) }
      const late = yield* Effect.fork(Effect.exit(runWith(sql, patient)))
      yield* eventually(sql`SELECT FROM pg_locks WHERE NOT granted`, (waiting) => waiting.length > 0)
      yield* Deferred.succeed(isWaiting, undefined)
      yield* Fiber.join(closed)
      assert.include(String((yield* Effect.flip(yield* Fiber.join(late))).cause), "placed again")
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: NanoUsd(3n * one - 7n), held: NanoUsd(0n) })
      assert.deepInclude(yield* placesOf(hold.id), { states: ["settled"] })
      assert.isTrue(yield* bench.proved)
    }
  )

  it.scoped("does not place a hold again that closes while such a statement waits", function* () {
    const { bench, key, ledger, org, sql } = yield* account(NanoUsd(3n * one))
    const process = yield* (yield* Instance).id
    const hold = yield* Holds.admit(ledger, { org, key, upTo: one })
    const isClosed = yield* Deferred.make<void>()
    const mayCommit = yield* Deferred.make<void>()
    const closing = runWith(sql, ClosingSql.settle([{ ...hold, cost: NanoUsd(7n) }], [minimalLogRow(hold)])).pipe(
      Effect.zipRight(Deferred.succeed(isClosed, undefined)),
      Effect.zipRight(Deferred.await(mayCommit)),
      sql.withTransaction
    )
    const closed = yield* Effect.fork(closing)
    yield* Deferred.await(isClosed)
    const late = yield* Effect.fork(
      Effect.exit(runWith(sql, HoldSql.place(process, [{ ...hold, rateLimit: undefined }])))
    )
    yield* eventually(sql`SELECT FROM pg_locks WHERE NOT granted`, (waiting) => waiting.length > 0)
    yield* Deferred.succeed(mayCommit, undefined)
    yield* Fiber.join(closed)
    yield* Fiber.join(late)
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: NanoUsd(3n * one - 7n), held: NanoUsd(0n) })
    assert.deepInclude(yield* placesOf(hold.id), { states: ["settled"] })
    assert.isTrue(yield* bench.proved)
  })

  it.effect("archives other holds if one was archived already", function* () {
    const { bench, key, ledger, org, sql } = yield* account(one)
    const [first, second] = yield* Effect.all([
      Holds.admit(ledger, { org, key, upTo: NanoUsd(1n) }),
      Holds.admit(ledger, { org, key, upTo: NanoUsd(1n) })
    ])
    yield* Holds.release(ledger, first)
    yield* Holds.release(ledger, second)
    yield* sql`INSERT INTO holds (id, org_id, key_id, amount, state, instance_id, closed_at)
      VALUES (${first.id}, ${org}, ${key}, 0, 'released', gen_random_uuid(), now())`
    yield* archiveNow
    assert.deepInclude(yield* placesOf(first.id), { open: false, states: ["released"] })
    assert.deepInclude(yield* placesOf(second.id), { open: false, states: ["released"] })
    assert.isTrue(yield* bench.proved)
  })

  it.effect("charges a hold of the previous version by its own row", function* () {
    const { admin, bench, ids, key, ledger, org, sql } = yield* account(one)
    const id = ids.uuid()
    yield* sql`INSERT INTO holds (id, org_id, key_id, amount, state, charged, instance_id, created_at, closed_at)
      VALUES (${id}, ${org}, ${key}, 9, 'settled', 4, gen_random_uuid(), now() - interval '2 days', now() - interval '2 days')`
    yield* sql`INSERT INTO ledger_entries (org_id, kind, amount, hold_id, key_id) VALUES (${org}, 'charge', -4, ${id}, ${key})`
    yield* sql`UPDATE organizations SET balance = balance - 4 WHERE id = ${org}`
    yield* sql`INSERT INTO key_spend VALUES (${key}, (now() AT TIME ZONE 'UTC')::date, 4)`
    assert.deepStrictEqual(yield* placesOf(id), { open: false, stored: true, charge: true, states: ["settled"] })
    assert.deepInclude((yield* admin.hold(OrganizationScope.all, id))?.hold, {
      amount: NanoUsd(9n),
      charged: NanoUsd(4n)
    })
    const refund = yield* admin.refund({ row: id, hold: id, amount: undefined, note: "n" })
    assert.strictEqual(refund.amount_usd, 4n)
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: one, held: NanoUsd(0n) })
    const { violations } = yield* admin.verify
    assert.deepStrictEqual(
      violations.filter(({ row }) => row.holdId === id),
      []
    )
    assert.isTrue(yield* bench.proved)
  })
})
