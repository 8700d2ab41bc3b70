import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { Effect } from "effect"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { Audit } from "../../src/services/admin/AuditLog.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { openAccount } from "../harness/client/Account.ts"
import { adminAt, hire, read } from "../harness/client/AdminClient.ts"
import { times } from "../harness/database/Money.ts"
import { deploymentTest, faultyProgram } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"

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
