import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Fiber } from "effect"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { Audit } from "../../src/services/admin/AuditLog.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { openAccount } from "../harness/client/Account.ts"
import { adminAt, hire, read, refusals } from "../harness/client/AdminClient.ts"
import { assertRefused } from "../harness/client/HttpCalls.ts"
import { times } from "../harness/database/Money.ts"
import { deploymentTest, faultyProgram } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { after, completion } from "../harness/upstream/Replies.ts"

const payment = (org: string) => ({
  body: { organization: org, type: "top_up", amount_usd: 12.5 },
  headers: { "idempotency-key": "payment-1" }
})

const assertEnteredOnce = Effect.fnUntraced(function* (org: Parameters<typeof LedgerAdmin.Service.entries>[0]) {
  const { entries, verify } = yield* LedgerAdmin
  const { list } = yield* Audit
  const [entry, ...others] = yield* entries(org, { limit: 10 })
  assert.deepStrictEqual([entry?.amount_usd, others], [12_500_000_000n, []])
  const [row, ...more] = yield* list(OrganizationScope.all, { org, limit: 10 })
  assert.deepStrictEqual([row?.action, row?.target, more], ["credits.top_up", entry?.id, []])
  assert.deepStrictEqual((yield* verify).violations, [])
})

describe("an operator's payment", () => {
  deploymentTest("sent to two gateways at once with one key is entered once", function* ({ gateway }) {
    const gateways = yield* Effect.all([gateway(), gateway()], { concurrency: "unbounded" })
    const { token } = yield* hire("write")
    const { org } = yield* openAccount({ nanoUsd: 0n })
    const answers = yield* Effect.forEach(
      times(20),
      (index) => adminAt(gateways[index % 2]?.url ?? "", token)("/credits", payment(org)),
      { concurrency: "unbounded" }
    )
    assert.lengthOf([...new Set(answers.map((answer) => JSON.stringify(read(answer, 201))))], 1)
    assert.lengthOf(
      answers.filter(({ headers }) => headers.get("idempotency-replayed") === null),
      1
    )
    yield* assertEnteredOnce(org)
  })

  deploymentTest("whose answer a kill took is there, and sent again adds nothing", function* ({ directory, gateway }) {
    const marker = path.join(directory, "marker")
    const { token } = yield* hire("write")
    const { org } = yield* openAccount({ nanoUsd: 0n })
    const env = { FAILPOINT: "change_committed", FAILPOINT_MARKER: marker }
    const dying = yield* gateway({ entry: yield* faultyProgram, env })
    const cut = yield* Effect.exit(adminAt(dying.url, token)("/credits", payment(org)))
    assert.strictEqual(cut._tag, "Failure")
    assert.strictEqual((yield* dying.ended).signal, "SIGKILL")
    assert.isTrue(existsSync(marker) && readFileSync(marker, "utf8") === "change_committed")
    yield* assertEnteredOnce(org)
    const { url } = yield* gateway()
    const again = yield* adminAt(url, token)("/credits", payment(org))
    assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
    assert.deepInclude(read(again, 201), { org, amount_usd: 12.5, replayed: false })
    yield* assertEnteredOnce(org)
  })
})

const sendTest = (url: string, token: string) =>
  adminAt(url, token)("/models/m1/test", { method: "POST", headers: { "idempotency-key": "test-1" } })

const unfinished = refusals.conflict(
  "The first request with this `Idempotency-Key` has no result. It still runs, or its gateway was killed. Use another key to try again."
)

const auditedTests = Effect.flatMap(Audit, ({ list }) =>
  list(OrganizationScope.all, { action: "models.test", limit: 10 })
)

describe("an operator's test of a model", () => {
  deploymentTest("sent to two gateways with one key calls the provider once", function* ({ gateway, upstream }) {
    const [first, second] = yield* Effect.all([gateway(), gateway()], { concurrency: "unbounded" })
    const { token } = yield* hire("write")
    const mayAnswer = yield* Deferred.make<void>()
    yield* upstream.script(after(Deferred.await(mayAnswer), completion))
    const running = yield* Effect.fork(sendTest(first.url, token))
    yield* upstream.received
    assertRefused(yield* sendTest(second.url, token), unfinished)
    yield* Deferred.succeed(mayAnswer, undefined)
    const result = read(yield* Fiber.join(running))
    assert.isTrue(result.ok)
    const replay = yield* sendTest(second.url, token)
    assert.strictEqual(replay.headers.get("idempotency-replayed"), "true")
    assert.deepStrictEqual(read(replay), result)
    const [row, ...others] = yield* auditedTests
    assert.deepStrictEqual([row?.target, row?.after, others], ["m1", result, []])
  })

  deploymentTest(
    "is in the audit log although its gateway was killed, and frees its key in time",
    function* ({ gateway, upstream }) {
      const sql = yield* SqlClient.SqlClient
      const { token } = yield* hire("write")
      const dying = yield* gateway()
      yield* upstream.script(after(Effect.never, completion), completion)
      const running = yield* Effect.fork(Effect.exit(sendTest(dying.url, token)))
      yield* upstream.received
      yield* dying.signal("SIGKILL")
      yield* Fiber.join(running)
      const [row, ...others] = yield* auditedTests
      assert.deepStrictEqual([row?.target, row?.after, others], ["m1", null, []])

      const { url } = yield* gateway()
      assertRefused(yield* sendTest(url, token), unfinished)
      yield* sql`UPDATE audit SET at = at - interval '2 minutes'`
      assert.isTrue(read(yield* sendTest(url, token)).ok)
      assert.lengthOf(yield* auditedTests, 2)
    }
  )
})
