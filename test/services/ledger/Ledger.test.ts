import { SqlClient } from "@effect/sql"
import { SqlError } from "@effect/sql/SqlError"
import { Context, Deferred, Duration, Effect, Either, Exit, Fiber, Layer, Scope } from "effect"
import type { Hold } from "../../../src/domain/Hold.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import { sweep } from "../../../src/services/ledger/HoldSweeper.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { Timings } from "../../../src/services/runtime/Timings.ts"
import { Prepared } from "../../../src/services/sql/SqlStatement.ts"
import { ledgerContract } from "../../contracts/Ledger.ts"
import * as LedgerFake from "../../fakes/LedgerFake.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { eventually, lock, moneyOf } from "../../harness/database/Money.ts"
import {
  account,
  anotherProcess,
  impatient,
  ledgers,
  observedProcess,
  one
} from "../../harness/database/MoneyProcess.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { complete } from "../../harness/gateway/ShortTimings.ts"
import { tracked } from "../../harness/InFlight.ts"
import { assert, withLayer } from "../../harness/It.ts"

ledgerContract("in memory", LedgerFake.layer)
ledgerContract("PostgreSQL", ledgers)

withLayer(ledgers)("the ledger in PostgreSQL", (it) => {
  it.scoped("two instances together admit exactly what the balance covers", function* () {
    const { bench, key, ledger: here, org } = yield* account(50n * one)
    const there = Context.get(yield* anotherProcess, Ledger)
    const outcomes = yield* Effect.scoped(
      Effect.forEach(
        Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? here : there)),
        (ledger) => Effect.exit(Holds.hold(ledger, { org, key, upTo: one })),
        { concurrency: "unbounded" }
      )
    )
    assert.strictEqual(outcomes.filter(Exit.isSuccess).length, 50)
    assert.isTrue(yield* bench.proved)
  })

  it.scoped(
    "holds of an instance without heartbeats are released by another, and its settlement is lost",
    function* () {
      const { bench, key, ledger, org, sql } = yield* account(10n * one)
      const dying = yield* anotherProcess
      const scope = yield* Scope.make()
      const victim = Context.get(dying, Ledger)
      const held = yield* Scope.extend(Holds.hold(victim, { org, key, upTo: one }), scope)
      const id = yield* Context.get(dying, Instance).id
      yield* sql`UPDATE instances SET beat_at = now() - interval '46 seconds' WHERE id = ${id}`
      // The dying one sweeps too: whoever marks it dead, the hold goes.
      yield* Effect.repeat(Effect.zipRight(sweep, bench.openHolds(org)), {
        until: (open) => open === 0
      })
      assert.deepInclude(yield* victim.settle(held, one), { wasReleased: true, charged: NanoUsd(0n) })
      assert.strictEqual((yield* ledger.balance(org)).balance, NanoUsd(10n * one))
      // Nor does a heartbeat that comes too late bring it back.
      yield* sql`UPDATE instances SET beat_at = now() WHERE id = ${id}`
      const fenced = yield* Effect.exit(Effect.scoped(Holds.hold(victim, { org, key, upTo: one })))
      assert.isTrue(Exit.isFailure(fenced), "an instance taken for dead may not place holds")
      assert.isTrue(yield* bench.proved)
      yield* Scope.close(scope, Exit.void)
    }
  )

  it.scoped("holds of a new instance and of this one are not released", function* () {
    const { bench, key, ledger, org } = yield* account(one)
    yield* Holds.hold(ledger, { org, key, upTo: one })
    yield* sweep
    assert.strictEqual(yield* bench.openHolds(org), 1)
  })

  it.effect("an old hold of a live process is not released", function* () {
    const { bench, key, org, sql } = yield* account(one)
    const alive = yield* Effect.map(Ids, (ids) => ids.uuid())
    yield* sql`INSERT INTO instances (id) VALUES (${alive})`
    yield* sql`
        INSERT INTO open_holds (id, org_id, key_id, amount, instance_id, created_at)
        VALUES (gen_random_uuid(), ${org}, ${key}, 1, ${alive}, now() - interval '2 days')`
    yield* sql`UPDATE organizations SET held = 1 WHERE id = ${org}`
    yield* sweep
    assert.strictEqual(yield* bench.openHolds(org), 1)
  })

  it.effect("one sweep releases all holds of dead instances, including those of the previous version", function* () {
    const { bench, key, org, sql } = yield* account(one)
    const dead = yield* Effect.map(Ids, (ids) => ids.uuid())
    yield* sql`INSERT INTO instances (id, swept_at) VALUES (${dead}, now())`
    yield* sql`
        WITH placed AS (
          INSERT INTO open_holds (id, org_id, key_id, amount, instance_id)
          SELECT gen_random_uuid(), ${org}, ${key}, 1, ${dead} FROM generate_series(1, 1100) RETURNING amount
        ), placed_before AS (
          INSERT INTO holds (id, org_id, key_id, amount, instance_id)
          SELECT gen_random_uuid(), ${org}, ${key}, 1, ${dead} FROM generate_series(1, 600) RETURNING amount
        )
        UPDATE organizations
        SET held = (SELECT sum(amount) FROM (SELECT * FROM placed UNION ALL SELECT * FROM placed_before) AS holds)
        WHERE id = ${org}`
    yield* sweep
    assert.strictEqual(yield* bench.openHolds(org), 0)
    assert.isTrue(yield* bench.proved)
  })

  it.scoped("an instance considered dead continues at once, even if its old work waits", function* () {
    const sql = yield* SqlClient.SqlClient
    const { inFlight, it } = yield* Effect.provide(
      Effect.all({ inFlight: InFlight, it: Instance }),
      yield* Effect.provideService(anotherProcess, Timings, complete({ heartbeatEvery: Duration.seconds(1) }))
    )
    const read = yield* Deferred.make<void>()
    const unread = yield* Effect.fork(Effect.uninterruptible(tracked(inFlight, Deferred.await(read))))
    const before = yield* it.id
    yield* sql`UPDATE instances SET swept_at = now() WHERE id = ${before}`
    yield* eventually(it.id, (id) => id !== before)
    assert.isNull(unread.unsafePoll())
    yield* Deferred.succeed(read, undefined)
    yield* Fiber.await(unread)
  })

  it.effect("settling and sweeping race without making or losing money", function* () {
    const { bench, key, ledger, org, sql } = yield* account(1000n * one)
    yield* Effect.forEach(
      Array.from({ length: 12 }),
      () =>
        Effect.gen(function* () {
          const dying = yield* anotherProcess
          const victim = Context.get(dying, Ledger)
          const holds = yield* Effect.forEach(Array.from({ length: 5 }), () =>
            Holds.hold(victim, { org, key, upTo: one })
          )
          const id = yield* Context.get(dying, Instance).id
          yield* sql`UPDATE instances SET beat_at = now() - interval '1 hour' WHERE id = ${id}`
          yield* Effect.all([sweep, Effect.forEach(holds, (hold) => victim.settle(hold, one), { concurrency: 5 })], {
            concurrency: 2
          })
        }).pipe(Effect.scoped),
      { concurrency: 3 }
    )
    const charged = (yield* bench.charges(org)).length
    assert.strictEqual<bigint>((yield* ledger.balance(org)).balance, (1000n - BigInt(charged)) * one)
    assert.strictEqual(yield* bench.openHolds(org), 0)
    assert.isTrue(yield* bench.proved)
  })

  it.effect("a top-up with a known reference pays once", function* () {
    const { admin, bench, ledger, org } = yield* account(0n)
    const pay = admin.topUp({ org, amount: one, ref: `invoice-${org}` })
    const results = yield* Effect.forEach(Array.from({ length: 5 }), () => pay, { concurrency: 5 })
    assert.strictEqual(results.filter(({ replayed }) => !replayed).length, 1)
    assert.strictEqual(new Set(results.map(({ entry }) => entry.id)).size, 1)
    assert.strictEqual((yield* ledger.balance(org)).balance, one)
    const other = yield* Effect.flip(admin.topUp({ org, amount: NanoUsd(1n), ref: `invoice-${org}` }))
    assert.strictEqual(other._tag, "RefTaken")
    assert.isTrue(yield* bench.proved)
  })

  it.effect("entries of the same time are listed by id, newest first", function* () {
    const { admin, org } = yield* account(0n)
    const sql = yield* SqlClient.SqlClient
    yield* sql`SELECT setval(pg_get_serial_sequence('ledger_entries', 'id'), 9999997)`
    yield* sql.withTransaction(Effect.replicateEffect(admin.topUp({ org, amount: one }), 4))
    const ids = (yield* admin.entries(org, { limit: 10 })).map(({ id }) => id)
    assert.deepStrictEqual(ids, ["10000001", "10000000", "9999999", "9999998"])
    const listed = yield* admin.page(OrganizationScope.only(org), { limit: 10 })
    const amounts = yield* admin.page(OrganizationScope.only(org), { limit: 10, after: listed[1]?.id })
    assert.deepStrictEqual(amounts, listed.slice(2))
  })

  it.effect("a top-up cannot use the reference of a refund", function* () {
    const { admin, bench, key, ledger, org } = yield* account(2n * one)
    const hold = yield* Holds.admit(ledger, { org, key, upTo: one })
    yield* ledger.settle(hold, one)
    const refused = yield* Effect.flip(admin.topUp({ org, amount: one, ref: `refund:${hold.id}` }))
    assert.strictEqual(refused._tag, "RefReserved")
    yield* admin.refund({ row: hold.id, hold: hold.id, amount: undefined, note: "sorry" })
    assert.strictEqual<bigint>((yield* ledger.balance(org)).balance, 2n * one)
    assert.isTrue(yield* bench.proved)
  })

  it.effect("a charge is refunded once, and an uncharged request is never refunded", function* () {
    const { admin, bench, key, ledger, org } = yield* account(2n * one)
    const charged = yield* Holds.admit(ledger, { org, key, upTo: one })
    yield* ledger.settle(charged, one)
    const released = yield* Holds.admit(ledger, { org, key, upTo: one })
    yield* Holds.release(ledger, released)
    const refund = ({ id }: Hold) =>
      Effect.either(admin.refund({ row: id, hold: id, amount: undefined, note: "sorry" }))
    assert.isTrue(Either.isRight(yield* refund(charged)))
    for (const hold of [charged, released]) assert.isTrue(Either.isLeft(yield* refund(hold)))
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: NanoUsd(2n * one), held: NanoUsd(0n) })
    assert.isTrue(yield* bench.proved)
  })

  it.scoped("an adjustment cannot exceed the available balance unless forced", function* () {
    const { admin, bench, key, ledger, org } = yield* account(one)
    yield* Holds.hold(ledger, { org, key, upTo: NanoUsd(one / 2n) })
    const correction = { org, amount: NanoUsd(0n - one), note: "mistake" }
    const refused = yield* Effect.flip(admin.adjust({ ...correction, force: false }))
    assert.deepInclude(refused, { _tag: "WouldOverdraw", available: one / 2n })
    yield* admin.adjust({ ...correction, force: true })
    assert.strictEqual<bigint>((yield* ledger.balance(org)).balance, 0n)
    assert.isTrue(yield* bench.proved)
  })
})

/** Every statement that places holds is carried out, and its answer lost. */
const forgetful = Layer.map(Postgres.layer, (context) => {
  const lost = new SqlError({ cause: new Error("connection lost"), message: "connection lost" })
  const { run } = Context.get(context, Prepared)
  return Context.add(context, Prepared, {
    run: (query) => (query.text.includes("placed AS") ? Effect.zipRight(run(query), lost) : run(query))
  })
})

withLayer(Layer.provideMerge(observedProcess(), forgetful))(
  "a reservation of which nobody knows whether it was made",
  (it) => {
    it.effect("is given back", function* () {
      const { bench, key, ledger, org, sql } = yield* account(one)
      const failed = yield* Effect.exit(Effect.scoped(Holds.hold(ledger, { org, key, upTo: one })))
      assert.isTrue(Exit.isFailure(failed))
      yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0)
      assert.lengthOf(yield* sql`SELECT id FROM all_holds WHERE org_id = ${org} AND amount = ${one}`, 1)
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: one, held: NanoUsd(0n) })
      assert.isTrue(yield* bench.proved)
    })
  }
)

withLayer(Layer.provide(ledgers, impatient))("a settlement with a timeout", (it) => {
  it.scoped("stops waiting for a locked database, and charges nothing", function* () {
    const { bench, key, ledger, org } = yield* account(one)
    const scope = yield* Scope.make()
    const hold = yield* Scope.extend(Holds.hold(ledger, { org, key, upTo: one }), scope)
    const { unlock } = yield* lock(org)
    const failed = yield* Effect.timeout(Effect.flip(ledger.settle(hold, one)), "13 seconds")
    assert.strictEqual(failed._tag, "SettleFailed")
    yield* unlock
    const { entries } = yield* eventually(
      moneyOf(org),
      ({ charges, balance, openHolds }) => openHolds === 0 && (charges.length === 0 || balance === one)
    )
    assert.strictEqual<bigint>(entries, one)
    assert.isTrue(yield* bench.proved)
    yield* Scope.close(scope, Exit.void)
  })
})
