import { SqlClient } from "@effect/sql"
import { assert, layer as withLayer } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { NanoUsd } from "../../src/domain/Money.ts"
import { Books } from "../../src/services/Books.ts"
import { InFlight } from "../../src/services/InFlight.ts"
import { Instance } from "../../src/services/Instance.ts"
import { Ledger } from "../../src/services/Ledger.ts"
import { ledgerContract } from "../contracts/Ledger.ts"
import { LedgerBench } from "../contracts/LedgerBench.ts"
import * as LedgerFake from "../fakes/LedgerFake.ts"
import * as Bench from "../support/LedgerBench.ts"
import * as Postgres from "../support/Postgres.ts"

const instance = Instance.layer.pipe(Layer.provideMerge(InFlight.layer))
const ledgers = Bench.layer.pipe(
  Layer.provideMerge(Books.layer),
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
      const books = yield* Books
      const { org } = yield* (yield* LedgerBench).organization(one)
      yield* sql`UPDATE organizations SET balance = balance + 1, held = held + 1 WHERE id = ${org}`
      const { violations } = yield* books.verify
      assert.sameMembers(
        violations.map(({ invariant }) => invariant),
        [
          "a balance is the sum of the organization's entries",
          "what is held is the sum of the organization's open holds"
        ]
      )
      assert.isTrue(violations.every(({ row }) => row.orgId === org))
      yield* sql`UPDATE organizations SET balance = balance - 1, held = held - 1 WHERE id = ${org}`
    })
  )

  it.effect("a top-up with a known reference pays once", () =>
    Effect.gen(function* () {
      const books = yield* Books
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
      const books = yield* Books
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
