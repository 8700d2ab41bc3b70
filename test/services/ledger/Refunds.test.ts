import { randomUUID } from "node:crypto"
import { readdir, writeFile } from "node:fs/promises"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { RefundJournal, Refunds } from "../../../src/services/ledger/Refunds.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { Usage } from "../../../src/services/telemetry/Usage.ts"
import { refundedVideos } from "../../../src/services/videos/VideoViews.ts"
import * as DiskRefundJournal from "../../../src/storage/DiskRefundJournal.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { eventually, lock, moneyOf, waitUntil } from "../../harness/database/Money.ts"
import { account, ledgers, observedProcess, one } from "../../harness/database/MoneyProcess.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { temporaryDirectory } from "../../harness/temporary.ts"

const entry = {
  hold: "5f1c8a51-6a0b-4b7e-9d6c-0e7d7b3f3a11",
  org: OrgId.make("org_1"),
  key: KeyId.make("key_1"),
  video: "vid_1"
}

/** The backends that wait for an organization's lock to give a charge back, once there is one. */
const waiting = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  eventually(
    sql<{ readonly pid: number }>`SELECT pid FROM pg_stat_activity
      WHERE wait_event_type = 'Lock' AND datname = current_database() AND query LIKE '%unnest%'`,
    (rows) => rows.length > 0
  )
)

const charged = Effect.gen(function* () {
  const { key, ledger, org } = yield* account(one)
  const hold = yield* Effect.scoped(
    Effect.tap(Holds.hold(ledger, { org, key, upTo: one }), (made) => ledger.settle(made, one))
  )
  return { key, org, id: hold.id }
})

describe("the refund journal on disk", () => {
  const journalIn = (directory: string) =>
    Effect.map(Layer.build(DiskRefundJournal.layer({ directory })), (context) => Context.get(context, RefundJournal))

  it.scoped("keeps entries for the next process, until they are removed", function* () {
    const directory = path.join(yield* temporaryDirectory, "refunds")
    const first = yield* journalIn(directory)
    assert.deepStrictEqual(yield* first.entries, [])
    yield* first.add(entry)
    yield* first.add(entry)
    const second = yield* journalIn(directory)
    assert.deepStrictEqual(yield* second.entries, [entry])
    yield* second.remove(entry.hold)
    yield* second.remove(entry.hold)
    assert.deepStrictEqual(yield* first.entries, [])
    assert.deepStrictEqual(yield* Effect.promise(() => readdir(directory)), [])
  })

  it.scoped("accepts the same entry from several processes at once", function* () {
    const directory = path.join(yield* temporaryDirectory, "refunds")
    const journals = yield* Effect.all(Array.from({ length: 8 }, () => journalIn(directory)))
    yield* Effect.forEach(journals, (journal) => journal.add(entry), { concurrency: "unbounded" })
    assert.deepStrictEqual(yield* Effect.promise(() => readdir(directory)), [`${entry.hold}.json`])
    yield* Effect.forEach(journals, (journal) => journal.remove(entry.hold), { concurrency: "unbounded" })
    assert.deepStrictEqual(yield* Effect.promise(() => readdir(directory)), [])
  })

  it.scoped("skips files that are not entries", function* () {
    const directory = yield* temporaryDirectory
    const journal = yield* journalIn(directory)
    yield* journal.add(entry)
    for (const [name, text] of [
      ["half.json", '{"hold": "5f'],
      ["other.json", '{"hold": "x"}'],
      [`${entry.hold}.json.part`, "{}"]
    ] as const) {
      yield* Effect.promise(() => writeFile(path.join(directory, name), text))
    }
    assert.deepStrictEqual(yield* journal.entries, [entry])
  })

  it.scoped("fails with the reason if it cannot write", function* () {
    const file = path.join(yield* temporaryDirectory, "file")
    yield* Effect.promise(() => writeFile(file, ""))
    const journal = yield* journalIn(path.join(file, "refunds"))
    assert.match((yield* Effect.flip(journal.add(entry))).message, /ENOTDIR|EEXIST/)
  })
})

describe("refunds", () => {
  it.live("refund a charge and run waiting effects, with or without a writable journal", () =>
    Effect.gen(function* () {
      const { id, key, org } = yield* charged
      const refunds = yield* Refunds
      const order: Array<string> = []
      yield* refunds.runAfter(
        id,
        Effect.sync(() => void order.push("before"))
      )
      yield* refunds.refund({ id, org, key })
      yield* refunds.runAfter(
        id,
        Effect.sync(() => void order.push("after"))
      )
      assert.deepStrictEqual(order, ["before"])
      yield* eventually(moneyOf(org), ({ balance }) => balance === one)
      yield* waitUntil(() => order.length === 2)
      yield* refunds.refund({ id, org, key })
      yield* Effect.sleep("200 millis")
      assert.strictEqual((yield* moneyOf(org)).balance, one)
      assert.isTrue(yield* (yield* LedgerBench).proved)
    }).pipe(
      Effect.provide(
        Layer.provideMerge(observedProcess(DiskRefundJournal.layer({ directory: "/dev/null/refunds" })), Postgres.layer)
      )
    )
  )

  it.live("of an image that failed after its charge are subtracted from the usage", () =>
    Effect.gen(function* () {
      const { id, key, org } = yield* charged
      const usage = yield* Usage
      yield* (yield* SqlClient.SqlClient)`UPDATE request_log SET surface = 'image', images = 1 WHERE id = ${id}`
      const totals = Effect.map(usage.report(OrganizationScope.all, { by: "surface", org }), (report) => report.totals)
      assert.deepInclude(yield* totals, { images: 1, charge: one })
      yield* (yield* Refunds).refund({ id, org, key })
      yield* eventually(moneyOf(org), ({ balance }) => balance === one)
      assert.deepInclude(yield* totals, { requests: 1, images: 0, charge: NanoUsd(0n) })
    }).pipe(Effect.provide(Layer.provideMerge(Usage.layer, ledgers)))
  )

  it.live("of a locked organization do not block others", () =>
    Effect.gen(function* () {
      const refunds = yield* Refunds
      const [locked, other] = yield* Effect.all([charged, charged])
      const holds = Array.from({ length: 30 }, () => randomUUID())
      const { unlock } = yield* lock(locked.org)
      yield* Effect.forEach(holds, (id) => refunds.release({ ...locked, id }))
      yield* Effect.sleep("500 millis")
      yield* refunds.refund(other)
      yield* eventually(moneyOf(other.org), ({ balance }) => balance === one, "15 seconds")
      yield* unlock
      const closed = (yield* SqlClient.SqlClient)`SELECT id FROM all_holds WHERE org_id = ${locked.org} AND amount = 0`
      yield* eventually(closed, (rows) => rows.length === holds.length)
    }).pipe(Effect.scoped, Effect.provide(ledgers))
  )

  it.live("requested during a release of the hold are made", () =>
    Effect.gen(function* () {
      const refunds = yield* Refunds
      const own = yield* charged
      const { unlock } = yield* lock(own.org)
      yield* refunds.release(own)
      yield* waiting
      yield* refunds.refund(own)
      const done = yield* Effect.makeLatch()
      yield* refunds.runAfter(own.id, Effect.asVoid(done.open))
      yield* unlock
      yield* done.await
      assert.strictEqual((yield* moneyOf(own.org)).balance, one)
    }).pipe(Effect.scoped, Effect.provide(ledgers))
  )

  it.live("are made before the process ends, and those of a dead process by the next one", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      const journal = DiskRefundJournal.layer({ directory })
      const files = Effect.promise(() => readdir(directory))
      const { id, key, org } = yield* charged
      yield* Effect.flatMap(Layer.build(journal), (built) =>
        Context.get(built, RefundJournal).add({ hold: id, org, key })
      )
      const scope = yield* Scope.make()
      const next = yield* Layer.buildWithScope(Layer.provide(Refunds.layer, [journal, refundedVideos]), scope)
      yield* eventually(moneyOf(org), ({ balance }) => balance === one)
      yield* eventually(files, (left) => left.length === 0)
      const other = yield* charged
      const sql = yield* SqlClient.SqlClient
      const { unlock } = yield* lock(other.org)
      yield* Context.get(next, Refunds).refund(other)
      // It would be tried again a second later.
      const [first] = yield* waiting
      yield* sql`SELECT pg_cancel_backend(${first?.pid ?? 0})`
      yield* unlock
      yield* Scope.close(scope, Exit.void)
      assert.strictEqual((yield* moneyOf(other.org)).balance, one)
      assert.deepStrictEqual(yield* files, [])
    }).pipe(Effect.scoped, Effect.provide(ledgers))
  )
})

it.live("verification finds a failed request that was charged", () =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const books = yield* LedgerAdmin
    const ids = yield* Ids
    const { id, key, org } = yield* charged
    const log = (status: number, code: string | null) => sql`
      INSERT INTO request_log (id, request_id, at, surface, status, code, org_id, key_id, hold_id, total_ms)
      VALUES (${ids.uuid()}, ${`req_${status}_${code}`}, now(), 'chat', ${status}, ${code}, ${org}, ${key}, ${id}, 1)`
    yield* log(200, null)
    yield* log(499, "client_closed")
    assert.deepStrictEqual((yield* books.verify).violations, [])
    yield* log(500, "internal_error")
    yield* log(200, "stream_error")
    const { violations } = yield* books.verify
    assert.sameDeepMembers(
      violations.map(({ invariant, row }) => [invariant, row["code"]]),
      ["internal_error", "stream_error"].map((code) => ["a request that failed is not charged", code])
    )
  }).pipe(Effect.provide(ledgers))
)
