import { execFileSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import { readFileSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Exit, Layer, Schedule } from "effect"
import { Database } from "../../../src/database/Database.ts"
import { Migrations } from "../../../src/database/Migrations.ts"
import type { Hold } from "../../../src/domain/Hold.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { Idempotency } from "../../../src/services/idempotency/Idempotency.ts"
import { Prepared } from "../../../src/services/sql/SqlStatement.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { lock } from "../../harness/database/Money.ts"
import { account, ledgers, observedProcess, one } from "../../harness/database/MoneyProcess.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, describe, it, withLayer } from "../../harness/It.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"

const two = NanoUsd(2n * one)

/** What a crash leaves of a hold whose commit had not reached the disk: nothing. */
const lose = ({ amount, id, org }: Hold) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql.withTransaction(
      Effect.all([
        sql`SET LOCAL session_replication_role = replica`,
        sql`DELETE FROM open_holds WHERE id = ${id}`,
        sql`UPDATE organizations SET held = held - ${amount} WHERE id = ${org}`
      ])
    )
  )

/** All that an organization has, held, and the hold lost. */
const lostHold = Effect.gen(function* () {
  const { bench, key, ledger, org } = yield* account(two)
  const hold = yield* Holds.admit(ledger, { org, key, upTo: two })
  yield* lose(hold)
  return { bench, ledger, key, org, hold }
})

/** The statement that restores a hold has another one of its key before it, which takes as much and lacks a place. */
const crowded = Layer.map(Postgres.layer, (context) => {
  const { run } = Context.get(context, Prepared)
  let placements = 0
  return Context.add(context, Prepared, {
    run: (query) => {
      if (!query.text.includes("placed AS") || ++placements !== 2) return run(query)
      const values = query.values.map((value, index) => {
        if (index === 9) return [0, null]
        return Array.isArray(value) ? [index === 0 ? randomUUID() : value[0], ...value] : value
      })
      return Effect.map(run({ ...query, values }), (results) => results.slice(1))
    }
  })
})

withLayer(Layer.provideMerge(observedProcess(), crowded))("a lost hold behind one that is refused", (it) => {
  it.effect("is placed again once that one is resolved, and charged", function* () {
    const { bench, hold, ledger, org } = yield* lostHold
    assert.deepInclude(yield* ledger.settle(hold, one), { charged: one, wasReleased: false })
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: one, held: NanoUsd(0n) })
    assert.isTrue(yield* bench.proved)
  })
})

withLayer(ledgers)("a hold that a crash of the database has lost", (it) => {
  it.effect("is placed again when it is settled, and charged once", function* () {
    const { bench, hold, ledger, org } = yield* lostHold
    assert.deepInclude(yield* ledger.settle(hold, one), { charged: one, wasReleased: false })
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: one, held: NanoUsd(0n) })
    assert.deepStrictEqual(yield* bench.charges(org), [one])
    assert.isTrue(yield* bench.proved)
  })

  it.scoped("is placed again even if a result is stored with its charge", function* () {
    const { bench, hold, ledger, org } = yield* lostHold
    const claim = yield* (yield* Idempotency).claim({ org, endpoint: "images", key: "k", fingerprint: "f" })
    assert.strictEqual(claim._tag, "First")
    if (claim._tag !== "First") return
    const settled = yield* ledger.settle(hold, one, { effect: claim.finalize({ made: true }, hold.id) })
    assert.deepInclude(settled, { charged: one, wasReleased: false })
    assert.deepStrictEqual(yield* bench.charges(org), [one])
    assert.isTrue(yield* bench.proved)
  })

  it.scoped("is placed again and charged even if its organization is locked for 6 s", function* () {
    const { bench, hold, ledger, org } = yield* lostHold
    const claim = yield* (yield* Idempotency).claim({ org, endpoint: "images", key: "locked", fingerprint: "f" })
    assert.strictEqual(claim._tag, "First")
    if (claim._tag !== "First") return
    const { unlock } = yield* lock(org)
    yield* Effect.fork(Effect.delay(unlock, "6 seconds"))
    const settled = yield* ledger.settle(hold, one, { effect: claim.finalize({ made: true }, hold.id) })
    assert.deepInclude(settled, { charged: one, wasReleased: false })
    assert.deepStrictEqual(yield* bench.charges(org), [one])
  })

  it.effect("is not charged if the balance was spent in the meantime", function* () {
    const { bench, hold, key, ledger, org } = yield* lostHold
    const other = yield* Holds.admit(ledger, { org, key, upTo: two })
    yield* ledger.settle(other, two)
    assert.isTrue(Exit.isFailure(yield* Effect.exit(ledger.settle(hold, one))))
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: NanoUsd(0n), held: NanoUsd(0n) })
    assert.isTrue(yield* bench.proved)
  })

  for (const owner of ["key", "organization"] as const) {
    it.effect(`is charged even if the spending cap of its ${owner} was reached in the meantime`, function* () {
      const { bench, key, ledger, org } = yield* account(two)
      const hold = yield* Holds.admit(ledger, { org, key, upTo: one })
      yield* lose(hold)
      const sql = yield* SqlClient.SqlClient
      yield* owner === "key"
        ? sql`UPDATE api_keys SET cap = 1, cap_period = 'total' WHERE id = ${key}`
        : sql`UPDATE organizations SET cap = 1, cap_period = 'total' WHERE id = ${org}`
      const wanted = { org, key, upTo: NanoUsd(1n) }
      yield* ledger.settle(yield* Holds.admit(ledger, wanted), wanted.upTo)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(Holds.admit(ledger, wanted))))
      assert.deepInclude(yield* ledger.settle(hold, one), { charged: one, wasReleased: false })
      assert.isTrue(yield* bench.proved)
    })
  }

  it.effect("is released without a log line", function* () {
    const { bench, hold, ledger, org } = yield* lostHold
    yield* Holds.release(ledger, hold)
    assert.deepStrictEqual(yield* ledger.balance(org), { balance: two, held: NanoUsd(0n) })
    assert.isTrue(yield* bench.proved)
  })
})

/** Ends a server and all its sessions at once, with what they had not written. */
const kill = (dataDir: string) =>
  Effect.sync(() => {
    const postmaster = Number.parseInt(readFileSync(path.join(dataDir, "postgres/data/postmaster.pid"), "utf8"), 10)
    const processes = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" })
      .split("\n")
      .map((line) => line.trim().split(/\s+/).map(Number))
    process.kill(postmaster, "SIGKILL")
    for (const [pid, parent] of processes) {
      if (parent !== postmaster || pid === undefined) continue
      try {
        process.kill(pid, "SIGKILL")
      } catch {
        // It ended by itself.
      }
    }
  })

describe("a database that is killed just after a hold", () => {
  it.scopedLive(
    "has charged what is settled afterwards once, and nothing else",
    function* () {
      const dataDir = yield* temporaryDirectory
      const migrated = Layer.effectDiscard(Effect.flatMap(Migrations, ({ migrate }) => migrate)).pipe(
        Layer.provideMerge(Migrations.layer),
        Layer.provideMerge(Database.layerEmbedded(dataDir, { queryTimeout: "4 seconds", isWatched: true }))
      )
      yield* Effect.gen(function* () {
        const { bench, key, ledger, org } = yield* account(NanoUsd(10n * one))
        for (let round = 1; round <= 3; round += 1) {
          const settled = yield* Holds.admit(ledger, { org, key, upTo: one })
          yield* ledger.settle(settled, one)
          const held = yield* Holds.admit(ledger, { org, key, upTo: one })
          yield* kill(dataDir)
          yield* ledger
            .balance(org)
            .pipe(Effect.sandbox, Effect.retry(Schedule.intersect(Schedule.spaced("100 millis"), Schedule.recurs(300))))
          assert.deepInclude(yield* ledger.settle(held, one), { charged: one, wasReleased: false })
          const { balance } = yield* ledger.balance(org)
          assert.strictEqual<bigint>(balance, (10n - 2n * BigInt(round)) * one)
          assert.isTrue(yield* bench.proved)
        }
      }).pipe(Effect.provide(Layer.provideMerge(observedProcess(), migrated)))
    },
    120_000
  )
})
