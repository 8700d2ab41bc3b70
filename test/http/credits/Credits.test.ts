import { Effect } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { bearer, call, chat, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"

const gateway = Served.layer(Effect.succeed({ env: { SANDBOX: "true" } }))

const cap = NanoUsd(2_500_000_000n)

/** The beginnings of the next UTC day, ISO week and month, in Unix seconds. */
const nextPeriods = () => {
  const now = new Date()
  const at = (month: number, day: number) => Date.UTC(now.getUTCFullYear(), month, day) / 1000
  const [month, day] = [now.getUTCMonth(), now.getUTCDate()]
  return { day: at(month, day + 1), week: at(month, day + 8 - (now.getUTCDay() || 7)), month: at(month + 1, 1) }
}

withLayer(gateway)("GET /credits", (it) => {
  it.effect("tells what an organization may spend in the period, what it has spent, and when that ends", function* () {
    const { update } = yield* Organizations
    const account = yield* openAccount({})
    const credits = Effect.map(call("/v1/credits", { headers: bearer(account.secret) }), ({ text }) => JSON.parse(text))
    const uncapped = { cap_usd: null, cap_spent_usd: null, cap_resets_at: null }
    const before = yield* credits
    assert.deepStrictEqual(before, {
      object: "credits",
      available_usd: 100,
      balance_usd: 100,
      held_usd: 0,
      ...uncapped
    })
    assert.strictEqual((yield* chat(account, talk("gpt-5.2"))).status, 200)
    for (const period of ["day", "week", "month"] as const) {
      const expected = [nextPeriods()[period]]
      yield* update(account.org, { cap_usd: cap, cap_period: period })
      const { balance_usd, cap_resets_at, cap_spent_usd, cap_usd } = yield* credits
      assert.strictEqual(cap_usd, 2.5)
      assert.isAbove(cap_spent_usd, 0)
      assert.closeTo(cap_spent_usd, 100 - balance_usd, 1e-12)
      assert.include([...expected, nextPeriods()[period]], cap_resets_at, period)
    }
    yield* update(account.org, { cap_period: "total" })
    assert.deepInclude(yield* credits, { cap_usd: 2.5, cap_resets_at: null })
    yield* update(account.org, { cap_usd: null, cap_period: null })
    assert.deepInclude(yield* credits, uncapped)
  })
})
