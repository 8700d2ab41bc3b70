import { readdir } from "node:fs/promises"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Duration, Effect } from "effect"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { openAccount } from "../harness/client/Account.ts"
import { ask } from "../harness/client/ChatClient.ts"
import { assertCharged, eventually, moneyOf } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { charge, completion } from "../harness/upstream/Replies.ts"

/** Nobody waits for a settlement that cannot succeed longer than it takes to know that. */
const timings = { settleWithin: Duration.seconds(3) }

/** A request whose charge was made while its answer was lost, and which was therefore told that it failed. */
const chargedAndRefused = Effect.gen(function* () {
  const { directory, door, gateway, upstream } = yield* Deployment
  const { url: databaseUrl, ...control } = yield* door
  const first = yield* gateway({ timings, env: { DATABASE_URL: databaseUrl } })
  const { org, secret } = yield* openAccount({})
  yield* upstream.script(completion)
  yield* control.cutAt("closed AS", "after")
  const refused = yield* ask({ url: first.url, secret })
  assert.strictEqual(refused.status, 500)
  assert.deepStrictEqual((yield* moneyOf(org)).charges, [charge])
  const journal = Effect.promise(() => readdir(path.join(directory, ".data/refunds")))
  assert.lengthOf(yield* journal, 1)
  return { ...control, first, org, secret, journal }
})

/** The charge is there, and given back. */
const assertRefunded = Effect.fnUntraced(function* (org: Parameters<typeof moneyOf>[0]) {
  const { balance, charges, openHolds } = yield* eventually(moneyOf(org), (money) => money.balance === 100_000_000_000n)
  assert.deepStrictEqual(
    { balance, charges, openHolds },
    { balance: 100_000_000_000n, charges: [charge], openHolds: 0 }
  )
})

const loggedStatuses = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql<{ readonly status: number }>`SELECT status FROM request_log`
)

describe.concurrent("a request that was charged and yet told that it failed", () => {
  deploymentTest("is not charged after its process was stopped as soon as the database was back", function* () {
    const { first, journal, mend, org } = yield* chargedAndRefused
    yield* mend
    yield* first.signal("SIGTERM")
    yield* first.ended
    yield* assertRefunded(org)
    assert.deepStrictEqual(yield* journal, [])
    assert.deepStrictEqual(yield* loggedStatuses, [{ status: 500 }])
  })

  deploymentTest(
    "is not charged after its process was killed before the database was back",
    function* ({ gateway, upstream }) {
      const { first, journal, org, secret } = yield* chargedAndRefused
      yield* first.signal("SIGKILL")
      yield* first.ended
      assert.deepStrictEqual((yield* moneyOf(org)).charges, [charge])
      const next = yield* gateway()
      yield* assertRefunded(org)
      yield* eventually(journal, (files) => files.length === 0)
      yield* upstream.script(completion)
      assert.strictEqual((yield* ask({ url: next.url, secret })).status, 200)
    }
  )

  deploymentTest(
    "is taken back once, by another process on the directory while its own has no database",
    function* ({ gateway }) {
      const { first, journal, mend, org } = yield* chargedAndRefused
      const other = yield* gateway()
      yield* assertRefunded(org)
      yield* eventually(journal, (files) => files.length === 0)
      yield* mend
      yield* eventually(loggedStatuses, (rows) => rows.length === 1)
      yield* Effect.forEach([first, other], ({ ended, signal }) => Effect.zipRight(signal("SIGTERM"), ended))
      yield* assertRefunded(org)
      assert.deepStrictEqual((yield* (yield* LedgerAdmin).verify).violations, [])
    }
  )

  deploymentTest("is taken back while its process lives, and only then written to the log", function* () {
    const { journal, mend, org } = yield* chargedAndRefused
    yield* mend
    yield* eventually(loggedStatuses, (rows) => rows.length === 1)
    yield* assertRefunded(org)
    yield* eventually(journal, (files) => files.length === 0)
  })
})

describe.concurrent("a request that was told that it failed, and whose charge never came", () => {
  deploymentTest(
    "is not charged by a process that is killed and started again",
    function* ({ door, gateway, upstream }) {
      const { url: databaseUrl, cutAt } = yield* door
      const first = yield* gateway({ timings, env: { DATABASE_URL: databaseUrl } })
      const { org, secret } = yield* openAccount({})
      yield* upstream.script(completion)
      yield* cutAt("closed AS", "before")
      assert.strictEqual((yield* ask({ url: first.url, secret })).status, 500)
      yield* first.signal("SIGKILL")
      yield* first.ended
      yield* gateway()
      yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0, "60 seconds")
      yield* assertCharged(org, [])
    }
  )
})
