import { SqlClient } from "@effect/sql"
import { Context, Effect, Exit, Fiber, Layer, Redacted, Schema, Scope } from "effect"
import { Database, type Options } from "../../../src/database/Database.ts"
import { Idempotency, insertClaim } from "../../../src/services/idempotency/Idempotency.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { productionTimings } from "../../../src/services/runtime/Timings.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import { proxyTo } from "../../harness/database/DatabaseProxy.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { eventually, moneyOf } from "../../harness/database/Money.ts"
import * as MoneyProcess from "../../harness/database/MoneyProcess.ts"
import { one } from "../../harness/database/MoneyProcess.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { first, outcome, result } from "../idempotency/Claims.ts"

const observer = (url: string) =>
  Layer.provideMerge(MoneyProcess.observedProcess(), Layer.orDie(Database.layerUrl(Redacted.make(url))))

/** A process behind a door that can be cut and frozen, and another, which tests look from, that keeps its database. */
const losable = Effect.fnUntraced(function* (options: Options = {}, timings: Layer.Layer<never> = Layer.empty) {
  const url = yield* Postgres.freshUrl
  const outside = yield* Layer.build(observer(url))
  const door = yield* proxyTo(url)
  const memo = yield* Layer.makeMemoMap
  const inside = yield* Layer.buildWithMemoMap(
    MoneyProcess.process.pipe(
      Layer.provide(Layer.orDie(Database.layerUrl(Redacted.make(door.url), options))),
      Layer.provide(timings)
    ),
    memo,
    yield* Effect.scope
  )
  const bench = Context.get(outside, LedgerBench)
  const { key, org } = yield* bench.organization(100n * MoneyProcess.one)
  return {
    door,
    outside,
    bench,
    org,
    key,
    asked: { org, endpoint: "images", key: "k", fingerprint: "f" } as const,
    idempotency: Context.get(inside, Idempotency),
    ledger: Context.get(inside, Ledger)
  }
})

/** A claim and what it is to be paid with, in a process that can lose its database. */
const working = Effect.fnUntraced(function* (...options: Parameters<typeof losable>) {
  const all = yield* losable(...options)
  const { idempotency, key, ledger, org } = all
  const scope = yield* Effect.acquireRelease(Scope.make(), (made) => Scope.close(made, Exit.void))
  const claim = yield* Scope.extend(Effect.flatMap(idempotency.claim(all.asked), first), scope)
  const hold = yield* Scope.extend(Holds.hold(ledger, { org, key, upTo: one }), scope)
  const settle = Effect.suspend(() => ledger.settle(hold, one, { effect: claim.finalize(result, hold.id) }))
  return { ...all, settle, end: Scope.close(scope, Exit.void) }
})

describe.concurrent("a charge with an effect in its transaction, of a process that loses its database", () => {
  for (const when of ["before", "after"] as const) {
    it.scopedLive(`${when} its COMMIT is carried out: both are made, once`, function* () {
      const { asked, bench, door, end, org, outside, settle } = yield* working()
      yield* door.cutAt("COMMIT", when)
      const settling = yield* Effect.fork(settle)
      const seen = Effect.provide(moneyOf(org), outside)
      yield* eventually(door.isCut, (isCut) => isCut)
      assert.lengthOf((yield* seen).charges, when === "before" ? 0 : 1)
      yield* door.mend
      assert.deepStrictEqual(yield* Fiber.join(settling), { charged: one, isExceeded: false, wasReleased: false })
      yield* end
      assert.deepStrictEqual((yield* seen).charges, [one])
      const there = yield* Effect.provide(Idempotency, outside)
      assert.deepStrictEqual(yield* Effect.scoped(there.claim(asked)), { _tag: "Replay", result })
      assert.isTrue(yield* bench.proved)
    })

    it.scopedLive(`${when} its COMMIT is carried out, and for long: nobody pays, and the key is free`, function* () {
      const { asked, bench, door, end, org, outside, settle } = yield* working({}, MoneyProcess.impatient)
      yield* door.cutAt("COMMIT", when)
      const failed = yield* Effect.timeout(Effect.flip(settle), "13 seconds")
      assert.strictEqual(failed._tag, "SettleFailed")
      const seen = Effect.provide(moneyOf(org), outside)
      assert.lengthOf((yield* seen).charges, when === "before" ? 0 : 1)
      yield* Effect.timeout(end, "11 seconds")
      yield* door.mend
      yield* eventually(seen, ({ balance, held }) => balance === 100n * one && held === 0n)
      const there = yield* Effect.provide(Idempotency, outside)
      yield* eventually(outcome(there, asked), (word) => word === "First")
      assert.isTrue(yield* bench.proved)
    })
  }

  it.scopedLive("that never answers: the request ends, and is not charged", function* () {
    const { asked, bench, door, end, org, outside, settle } = yield* working(
      { maxConnections: 2 },
      MoneyProcess.impatient
    )
    yield* door.freeze
    const [failed, also] = yield* Effect.all([Effect.flip(settle), Effect.exit(settle)], {
      concurrency: "unbounded"
    }).pipe(Effect.timeout("13 seconds"))
    assert.strictEqual(failed._tag, "SettleFailed")
    assert.isTrue(Exit.isFailure(also))
    yield* door.thaw
    yield* end
    const seen = Effect.provide(moneyOf(org), outside)
    yield* eventually(seen, ({ balance, held }) => balance === 100n * one && held === 0n, "30 seconds")
    const there = yield* Effect.provide(Idempotency, outside)
    yield* eventually(outcome(there, asked), (word) => word === "First", "30 seconds")
    assert.isTrue(yield* bench.proved)
  })
})

describe.concurrent("a key whose process loses its database", () => {
  it.scopedLive("is released once the database is back", function* () {
    const { asked, door, end, outside } = yield* working()
    const there = yield* Effect.provide(Idempotency, outside)
    yield* door.cut
    yield* Effect.timeout(end, "11 seconds")
    assert.strictEqual(yield* outcome(there, asked), "IdempotencyConflict")
    yield* door.mend
    yield* eventually(outcome(there, asked), (word) => word === "First", "20 seconds")
  })

  it.scopedLive("is released even if the answer to its placement was lost", function* () {
    const { asked, door, idempotency, outside } = yield* losable()
    const there = yield* Effect.provide(Idempotency, outside)
    yield* door.cutAt("INSERT INTO idempotency_keys", "after")
    const failed = yield* Effect.exit(Effect.scoped(idempotency.claim(asked)))
    assert.isTrue(Exit.isFailure(failed))
    assert.strictEqual(yield* outcome(there, asked), "IdempotencyConflict")
    yield* door.mend
    yield* eventually(outcome(there, asked), (word) => word === "First", "20 seconds")
  })

  it.scopedLive("is placed if the answer was lost and the database is back at once", function* () {
    const { asked, door, idempotency, outside } = yield* losable()
    const there = yield* Effect.provide(Idempotency, outside)
    yield* door.cutAt("INSERT INTO idempotency_keys", "after")
    const scope = yield* Scope.make()
    const claiming = yield* Effect.fork(Scope.extend(Effect.flatMap(idempotency.claim(asked), first), scope))
    yield* eventually(door.isCut, (isCut) => isCut)
    yield* door.mend
    yield* Fiber.join(claiming)
    assert.strictEqual(yield* outcome(there, asked), "IdempotencyConflict")
    const sql = yield* Effect.provide(SqlClient.SqlClient, outside)
    const [{ id, instance }] = yield* Effect.flatMap(
      sql`SELECT claim AS id, instance_id AS instance FROM idempotency_keys`,
      Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ id: Schema.String, instance: Schema.String })))
    )
    yield* Scope.close(scope, Exit.void)
    // The first attempt, of which nothing was heard, comes through after all.
    assert.isTrue(
      Exit.isFailure(yield* Effect.exit(insertClaim(sql, { ...asked, id, instance }, productionTimings.deadAfter)))
    )
    assert.strictEqual(yield* outcome(there, asked), "First")
  })
})
