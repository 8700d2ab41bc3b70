import { existsSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Effect, Exit, Schema } from "effect"
import { NanoUsd } from "../../src/domain/Money.ts"
import { LedgerAdmin } from "../../src/services/ledger/LedgerAdmin.ts"
import { Payments } from "../../src/services/payments/Payments.ts"
import { openAccount } from "../harness/client/Account.ts"
import { moneyOf, times } from "../harness/database/Money.ts"
import { deploymentTest, faultyProgram } from "../harness/gateway/Deployment.ts"
import { assert } from "../harness/It.ts"
import * as FakeStripe from "../harness/stripe/FakeStripe.ts"

const count = 4
const decodeIds = Schema.decodeUnknown(Schema.Array(Schema.Struct({ id: Schema.String })))

deploymentTest(
  "payments are credited and taken back once, though gateways die between receipt and commit",
  function* ({ directory, gateway }) {
    const program = yield* faultyProgram
    const sql = yield* SqlClient.SqlClient
    const stripe = yield* FakeStripe.make
    const env = FakeStripe.environmentFor(stripe)
    const { account } = stripe
    const { org } = yield* openAccount({ nanoUsd: 0n })
    const payments = yield* Payments
    const makePayments = Effect.forEach(times(count), () =>
      Effect.gen(function* () {
        const { id } = yield* payments.begin({ org, amount: NanoUsd(10_000_000_000n) })
        const session = account.createSession({ payment: id, cents: 1000 })
        account.complete(session.id)
        const intent = account.intentOf(session.id)
        account.refund(intent, 400)
        account.withdraw(account.dispute(intent, 1000))
      })
    )
    const deliverAll = (url: string) =>
      Effect.forEach(account.events, (event) => Effect.exit(FakeStripe.deliver(url, event)), { concurrency: 4 })

    for (const turn of [1, 2, 3]) {
      yield* makePayments
      const marker = path.join(directory, `payment-${turn}`)
      const failpoint = { FAILPOINT: "payment_applied", FAILPOINT_TURN: String(turn), FAILPOINT_MARKER: marker }
      yield* Effect.scoped(
        Effect.gen(function* () {
          const dying = yield* gateway({ entry: program, env: { ...env, ...failpoint } })
          const other = yield* gateway({ env })
          yield* Effect.all([deliverAll(dying.url), deliverAll(other.url)], { concurrency: 2 })
        })
      ).pipe(Effect.timeout("80 seconds"))
      assert.isTrue(existsSync(marker), String(turn))
    }
    const { url } = yield* gateway({ env })
    const last = yield* deliverAll(url)
    for (const answer of last) assert.isTrue(Exit.isSuccess(answer) && answer.value.status === 200)
    assert.strictEqual((yield* moneyOf(org)).balance, 0n)
    const known = yield* Effect.flatMap(sql`SELECT id FROM payment_events`, decodeIds)
    assert.sameMembers(
      known.map(({ id }) => id),
      account.events.map(({ id }) => id)
    )
    assert.deepStrictEqual((yield* (yield* LedgerAdmin).verify).violations, [])
  },
  300_000
)
