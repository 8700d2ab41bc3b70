import { SqlClient } from "@effect/sql"
import { SqlError } from "@effect/sql/SqlError"
import { assert, layer as withLayer } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { invariants } from "../../../src/services/ledger/Invariants.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { Prepared } from "../../../src/services/ledger/Prepared.ts"
import { VoidJournal } from "../../../src/services/ledger/VoidJournal.ts"
import { Voids } from "../../../src/services/ledger/Voids.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { Instance } from "../../../src/services/runtime/Instance.ts"
import { ledgerContract } from "../../contracts/Ledger.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import * as LedgerFake from "../../fakes/LedgerFake.ts"
import * as Bench from "../../harness/database/LedgerBench.ts"
import { eventually, lock, moneyOf } from "../../harness/database/Money.ts"
import * as Postgres from "../../harness/database/Postgres.ts"

const instance = Layer.provide(Voids.layer, VoidJournal.layerMemory).pipe(
  Layer.provideMerge(Instance.layer),
  Layer.provideMerge(InFlight.layer)
)
const ledgers = Bench.layer.pipe(
  Layer.provideMerge(LedgerAdmin.layer),
  Layer.provideMerge(Ledger.layer),
  Layer.provideMerge(instance),
  Layer.provideMerge(Postgres.layer)
)

ledgerContract("in memory", LedgerFake.layer)
ledgerContract("PostgreSQL", ledgers)

/** Another process of the gateway on the same database. */
const anotherInstance = Effect.gen(function* () {
  const memo = yield* Layer.makeMemoMap
  return yield* Layer.buildWithMemoMap(Ledger.layer.pipe(Layer.provideMerge(instance)), memo, yield* Effect.scope)
})

const one = NanoUsd(1_000_000_000n)

withLayer(ledgers, { excludeTestServices: true, timeout: "60 seconds" })("the ledger in PostgreSQL", (it) => {
  it.effect("two instances together admit exactly what the balance covers", () =>
    Effect.gen(function* () {
      const bench = yield* LedgerBench
      const here = yield* Ledger
      const there = yield* Effect.map(anotherInstance, (context) => Effect.provide(Ledger, context)).pipe(
        Effect.flatten
      )
      const { key, org } = yield* bench.organization(50n * one)
      const outcomes = yield* Effect.scoped(
        Effect.forEach(
          Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? here : there)),
          (ledger) => Effect.exit(ledger.hold({ org, key, upTo: one })),
          { concurrency: "unbounded" }
        )
      )
      assert.strictEqual(outcomes.filter(Exit.isSuccess).length, 50)
      assert.isTrue(yield* bench.proved)
    }).pipe(Effect.scoped)
  )

  it.effect("holds of an instance that stopped beating are released by another, and its settlement is lost", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const bench = yield* LedgerBench
      const ledger = yield* Ledger
      const dying = yield* anotherInstance
      const { key, org } = yield* bench.organization(10n * one)
      const scope = yield* Scope.make()
      const victim = yield* Effect.provide(Ledger, dying)
      const held = yield* Scope.extend(victim.hold({ org, key, upTo: one }), scope)
      const id = yield* Effect.flatMap(Effect.provide(Instance, dying), (of) => of.id)
      yield* sql`UPDATE instances SET beat_at = now() - interval '46 seconds' WHERE id = ${id}`
      // The dying one sweeps too: whoever marks it dead, the hold goes.
      yield* Effect.repeat(Effect.zipRight((yield* Instance).sweep, bench.openHolds(org)), {
        until: (open) => open === 0
      })
      assert.deepInclude(yield* victim.settle(held, one), { lost: true, charged: NanoUsd(0n) })
      assert.strictEqual((yield* ledger.balance(org)).balance, NanoUsd(10n * one))
      // Nor does a heartbeat that comes too late bring it back.
      yield* sql`UPDATE instances SET beat_at = now() WHERE id = ${id}`
      const fenced = yield* Effect.exit(Effect.scoped(victim.hold({ org, key, upTo: one })))
      assert.isTrue(Exit.isFailure(fenced), "an instance taken for dead may not place holds")
      assert.isTrue(yield* bench.proved)
      yield* Scope.close(scope, Exit.void)
    }).pipe(Effect.scoped)
  )

  it.effect("holds of a young instance, and those of this one, are left alone", () =>
    Effect.gen(function* () {
      const bench = yield* LedgerBench
      const ledger = yield* Ledger
      const { key, org } = yield* bench.organization(one)
      yield* ledger.hold({ org, key, upTo: one })
      yield* (yield* Instance).sweep
      assert.strictEqual(yield* bench.openHolds(org), 1)
    }).pipe(Effect.scoped)
  )

  it.effect("one sweep releases however many holds the dead left", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const bench = yield* LedgerBench
      const { key, org } = yield* bench.organization(one)
      const dead = yield* Effect.map(Ids, (ids) => ids.uuid())
      yield* sql`INSERT INTO instances (id, swept_at) VALUES (${dead}, now())`
      yield* sql`
        WITH placed AS (
          INSERT INTO holds (id, org_id, key_id, amount, instance_id)
          SELECT gen_random_uuid(), ${org}, ${key}, 1, ${dead} FROM generate_series(1, 1700) RETURNING amount
        )
        UPDATE organizations SET held = (SELECT sum(amount) FROM placed) WHERE id = ${org}`
      yield* (yield* Instance).sweep
      assert.strictEqual(yield* bench.openHolds(org), 0)
      assert.isTrue(yield* bench.proved)
    })
  )

  it.effect("an instance taken for dead goes on at once, whatever its old work waits for", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const { inFlight, it } = yield* Effect.provide(
        Effect.all({ inFlight: InFlight, it: Instance }),
        yield* anotherInstance
      )
      const read = yield* Deferred.make<void>()
      const unread = yield* Effect.fork(Effect.uninterruptible(inFlight.track(Deferred.await(read))))
      const before = yield* it.id
      yield* sql`UPDATE instances SET swept_at = now() WHERE id = ${before}`
      yield* eventually(it.id, (id) => id !== before)
      assert.isNull(unread.unsafePoll())
      yield* Deferred.succeed(read, undefined)
      yield* Fiber.await(unread)
    }).pipe(Effect.scoped)
  )

  it.effect("settling does not wait for a locked database longer than 10 s, and then nothing is charged", () =>
    Effect.gen(function* () {
      const bench = yield* LedgerBench
      const ledger = yield* Ledger
      const { key, org } = yield* bench.organization(one)
      const scope = yield* Scope.make()
      const hold = yield* Scope.extend(ledger.hold({ org, key, upTo: one }), scope)
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
    }).pipe(Effect.scoped)
  )

  it.effect("settling and sweeping race without making or losing money", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const bench = yield* LedgerBench
      const ledger = yield* Ledger
      const sweeper = yield* Instance
      const { key, org } = yield* bench.organization(1000n * one)
      yield* Effect.forEach(
        Array.from({ length: 12 }),
        () =>
          Effect.gen(function* () {
            const dying = yield* anotherInstance
            const victim = yield* Effect.provide(Ledger, dying)
            const holds = yield* Effect.forEach(Array.from({ length: 5 }), () => victim.hold({ org, key, upTo: one }))
            const id = yield* Effect.flatMap(Effect.provide(Instance, dying), (of) => of.id)
            yield* sql`UPDATE instances SET beat_at = now() - interval '1 hour' WHERE id = ${id}`
            yield* Effect.all(
              [sweeper.sweep, Effect.forEach(holds, (hold) => victim.settle(hold, one), { concurrency: 5 })],
              {
                concurrency: 2
              }
            )
          }).pipe(Effect.scoped),
        { concurrency: 3 }
      )
      const charged = (yield* bench.charges(org)).length
      assert.strictEqual<bigint>((yield* ledger.balance(org)).balance, (1000n - BigInt(charged)) * one)
      assert.strictEqual(yield* bench.openHolds(org), 0)
      assert.isTrue(yield* bench.proved)
    })
  )

  it.effect("entries cannot be changed, nor closed holds", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const bench = yield* LedgerBench
      const ledger = yield* Ledger
      const { key, org } = yield* bench.organization(one)
      const hold = yield* ledger.hold({ org, key, upTo: one })
      yield* ledger.settle(hold, one)
      for (const attempt of [
        sql`UPDATE ledger_entries SET amount = 0 WHERE org_id = ${org}`,
        sql`DELETE FROM ledger_entries WHERE org_id = ${org}`,
        sql`TRUNCATE ledger_entries`,
        sql`UPDATE holds SET state = 'released', charged = NULL WHERE id = ${hold.id}`,
        sql`DELETE FROM holds WHERE id = ${hold.id}`
      ]) {
        assert.isTrue(Exit.isFailure(yield* Effect.exit(attempt)))
      }
    }).pipe(Effect.scoped)
  )

  it.effect("verify finds what was tampered with", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const books = yield* LedgerAdmin
      const bench = yield* LedgerBench
      const ledger = yield* Ledger
      const { key, org } = yield* bench.organization(10n * one)
      const settled = yield* Effect.scoped(
        Effect.tap(ledger.hold({ org, key, upTo: one }), (hold) => ledger.settle(hold, one))
      )
      const open = yield* ledger.hold({ org, key, upTo: one })
      yield* books.adjust({ org, amount: NanoUsd(-1n), note: "mistake", force: false })
      assert.isTrue(yield* bench.proved)

      const sums = "a balance is the sum of the organization's entries"
      const held = "what is held is the sum of the organization's open holds"
      const covered = "what is held was covered by the balance"
      const charge = "a settled hold has exactly one charge, of what the hold says was charged"
      const day = "a key's daily spend is the sum of its charges of that day that were not given back"
      const result = "a final result was paid for by a closed hold, or by a job's, of its organization"
      const elsewhere = yield* bench.organization(0n)
      const far = 20n * one
      const tampering = [
        { breaks: [sums], by: [sql`UPDATE organizations SET balance = balance + 1 WHERE id = ${org}`] },
        { breaks: [held], by: [sql`UPDATE organizations SET held = held + 1 WHERE id = ${org}`] },
        { breaks: [held], by: [sql`DELETE FROM holds WHERE id = ${open.id}`] },
        { breaks: [day], by: [sql`DELETE FROM key_spend WHERE key_id = ${key}`] },
        {
          breaks: [day],
          by: [sql`UPDATE ledger_entries SET at = at - interval '2 days' WHERE hold_id = ${settled.id}`]
        },
        {
          breaks: [charge, day],
          by: [
            sql`DELETE FROM ledger_entries WHERE hold_id = ${settled.id}`,
            sql`UPDATE organizations SET balance = balance + ${one} WHERE id = ${org}`
          ]
        },
        {
          breaks: [covered],
          by: [
            sql`UPDATE holds SET amount = ${far} WHERE id = ${open.id}`,
            sql`UPDATE organizations SET held = ${far} WHERE id = ${org}`
          ]
        },
        {
          breaks: [covered, "no charge took a balance below zero"],
          by: [
            sql`UPDATE holds SET amount = ${far}, charged = ${far} WHERE id = ${settled.id}`,
            sql`UPDATE ledger_entries SET amount = ${-far} WHERE hold_id = ${settled.id}`,
            sql`UPDATE organizations SET balance = balance + ${one} - ${far} WHERE id = ${org}`,
            sql`UPDATE key_spend SET spent = ${far} WHERE key_id = ${key}`
          ]
        },
        {
          breaks: [result],
          by: [
            sql`INSERT INTO idempotency_keys (claim, org_id, endpoint, key, fingerprint, state, instance_id, result, hold_id)
              VALUES (gen_random_uuid(), ${org}, 'images', 'k', 'f', 'done', gen_random_uuid(), '{}', ${open.id})`
          ]
        },
        {
          breaks: [result],
          by: [
            sql`INSERT INTO idempotency_keys (claim, org_id, endpoint, key, fingerprint, state, instance_id, result, hold_id)
              VALUES (gen_random_uuid(), ${elsewhere.org}, 'images', 'k', 'f', 'done', gen_random_uuid(), '{}', ${settled.id})`
          ]
        },
        {
          breaks: [day],
          by: [
            sql`INSERT INTO ledger_entries (org_id, kind, amount, ref)
              VALUES (${org}, 'adjustment', ${one}, ${`refund:${settled.id}`})`,
            sql`UPDATE organizations SET balance = balance + ${one} WHERE id = ${org}`
          ]
        },
        {
          breaks: [day, "a refund gives back what its hold was charged"],
          by: [
            sql`INSERT INTO ledger_entries (org_id, kind, amount, ref)
              VALUES (${org}, 'adjustment', ${2n * one}, ${`refund:${settled.id}`})`,
            sql`UPDATE organizations SET balance = balance + ${2n * one} WHERE id = ${org}`
          ]
        }
      ]
      for (const { breaks, by } of tampering) {
        const found = yield* Effect.gen(function* () {
          yield* sql`SET LOCAL session_replication_role = replica`
          yield* Effect.all(by)
          const broken: Array<string> = []
          for (const { check, name } of invariants(sql)) if ((yield* check).length > 0) broken.push(name)
          return yield* Effect.fail(broken)
        }).pipe(sql.withTransaction, Effect.flip)
        assert.deepStrictEqual<unknown>(found, breaks)
      }

      yield* sql`UPDATE organizations SET balance = balance + 1 WHERE id = ${org}`
      const { violations } = yield* books.verify
      assert.deepStrictEqual(
        violations.map(({ invariant, row }) => [invariant, row.orgId]),
        [[sums, org]]
      )
      yield* sql`UPDATE organizations SET balance = balance - 1 WHERE id = ${org}`
    }).pipe(Effect.scoped)
  )

  it.effect("a top-up with a known reference pays once", () =>
    Effect.gen(function* () {
      const books = yield* LedgerAdmin
      const ledger = yield* Ledger
      const bench = yield* LedgerBench
      const { org } = yield* bench.organization(0n)
      const pay = books.topUp({ org, amount: one, ref: `invoice-${org}` })
      const results = yield* Effect.forEach(Array.from({ length: 5 }), () => pay, { concurrency: 5 })
      assert.strictEqual(results.filter(({ replayed }) => !replayed).length, 1)
      assert.strictEqual(new Set(results.map(({ entry }) => entry.id)).size, 1)
      assert.strictEqual((yield* ledger.balance(org)).balance, one)
      const other = yield* Effect.flip(books.topUp({ org, amount: NanoUsd(1n), ref: `invoice-${org}` }))
      assert.strictEqual(other._tag, "RefTaken")
      assert.isTrue(yield* bench.proved)
    })
  )

  it.effect("an adjustment stops at what is available unless forced", () =>
    Effect.gen(function* () {
      const books = yield* LedgerAdmin
      const ledger = yield* Ledger
      const bench = yield* LedgerBench
      const { key, org } = yield* bench.organization(one)
      yield* ledger.hold({ org, key, upTo: NanoUsd(one / 2n) })
      const correction = { org, amount: NanoUsd(0n - one), note: "mistake" }
      const refused = yield* Effect.flip(books.adjust({ ...correction, force: false }))
      assert.deepInclude(refused, { _tag: "WouldOverdraw", available: one / 2n })
      yield* books.adjust({ ...correction, force: true })
      assert.strictEqual<bigint>((yield* ledger.balance(org)).balance, 0n)
      assert.isTrue(yield* bench.proved)
    }).pipe(Effect.scoped)
  )
})

/** Every statement that places holds is carried out, and its answer lost. */
const forgetful = Layer.map(Postgres.layer, (context) => {
  const lost = new SqlError({ cause: new Error("connection lost"), message: "connection lost" })
  const { run } = Context.get(context, Prepared)
  return Context.add(context, Prepared, {
    run: (query) => (query.text.includes("placed AS") ? Effect.zipRight(run(query), lost) : run(query))
  })
})

withLayer(
  Bench.layer.pipe(
    Layer.provideMerge(LedgerAdmin.layer),
    Layer.provideMerge(Ledger.layer),
    Layer.provideMerge(instance),
    Layer.provideMerge(forgetful)
  ),
  { excludeTestServices: true, timeout: "60 seconds" }
)("a reservation of which nobody knows whether it was made", (it) => {
  it.effect("is given back", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const bench = yield* LedgerBench
      const ledger = yield* Ledger
      const { key, org } = yield* bench.organization(one)
      const failed = yield* Effect.exit(Effect.scoped(ledger.hold({ org, key, upTo: one })))
      assert.isTrue(Exit.isFailure(failed))
      yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0)
      assert.lengthOf(yield* sql`SELECT id FROM holds WHERE org_id = ${org} AND amount = ${one}`, 1)
      assert.deepStrictEqual(yield* ledger.balance(org), { balance: one, held: NanoUsd(0n) })
      assert.isTrue(yield* bench.proved)
    })
  )
})
