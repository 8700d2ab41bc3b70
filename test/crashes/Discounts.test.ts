import { Duration, Effect } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { adminAt, hire, read } from "../harness/client/AdminClient.ts"
import { ask } from "../harness/client/ChatClient.ts"
import { assertCharged, assertRatesStored, eventually } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { charge, completion } from "../harness/upstream/Replies.ts"

/** Four fifths of the charge without a discount. */
const discountedCharge = (charge * 4n) / 5n

/** A gateway that does not store the rates of a discount before it is killed, and a customer with that discount. */
const chatAndKill = (admin: ReturnType<typeof adminAt>) =>
  Effect.gen(function* () {
    const { gateway, upstream } = yield* Deployment
    const { org, secret } = yield* openAccount({})
    const setDiscount = (discount_percent: number) =>
      Effect.map(admin(`/organizations/${org}`, { method: "PATCH", body: { discount_percent } }), (answer) =>
        read(answer)
      )
    const dying = yield* gateway({ timings: { readControlsEvery: Duration.hours(1) } })
    yield* setDiscount(20)
    yield* upstream.script(completion)
    assert.strictEqual((yield* ask({ url: dying.url, secret })).status, 200)
    yield* dying.signal("SIGKILL")
    yield* dying.ended
    yield* assertCharged(org, [discountedCharge])
    return { org, setDiscount }
  })

describe("a gateway that is killed before it stored the rates of a discount", () => {
  deploymentTest("leaves a charge that the next gateway explains, though the discount has changed", function* () {
    const { gateway } = yield* Deployment
    const { token } = yield* hire("write")
    const first = yield* gateway({ timings: { readControlsEvery: Duration.hours(1) } })
    const { setDiscount } = yield* chatAndKill(adminAt(first.url, token))
    yield* setDiscount(30)
    yield* first.signal("SIGKILL")
    yield* first.ended

    const admin = adminAt((yield* gateway()).url, token)
    yield* assertRatesStored
    const { data } = read(yield* eventually(admin("/requests"), (answer) => read(answer).data.length === 1))
    const { price } = read(yield* admin(`/requests/${data[0].id}`))
    assert.deepInclude(price, {
      price_usd: 0.000056,
      charge_usd: 0.000056,
      why: "Quantity times rate is the charge."
    })
  })

  deploymentTest("leaves the rates to a gateway that runs and had no request at them", function* () {
    const { gateway } = yield* Deployment
    const { token } = yield* hire("write")
    const other = yield* gateway()
    yield* chatAndKill(adminAt(other.url, token))
    yield* assertRatesStored
  })
})
