import { SqlClient } from "@effect/sql"
import { Effect, Fiber } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { ask, codeOf, get } from "../harness/client/ChatClient.ts"
import { assertCharged, eventually, lock, moneyOf, waitingForLock } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import { earlyDeath, type ShortTimings } from "../harness/gateway/ShortTimings.ts"
import { assert, describe } from "../harness/It.ts"
import { silent } from "../harness/upstream/FakeUpstream.ts"
import { charge, completion } from "../harness/upstream/Replies.ts"
import { chatAndStreamUnderWay, chatUnderWay } from "./ChatsUnderWay.ts"

/** A gateway whose database connections can be told from ours, and can be cut. */
const losable = Effect.fnUntraced(function* (timings?: ShortTimings) {
  const { door, gateway, upstream } = yield* Deployment
  const { url, ...control } = yield* door
  const started = yield* gateway({
    ...(timings === undefined ? {} : { timings }),
    env: { DATABASE_URL: `${url}?application_name=losable` }
  })
  return { ...control, upstream, url: started.url }
})

const terminateAll = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = 'losable' AND datname = current_database()`
)

describe.concurrent("a database that goes away under a running request", () => {
  deploymentTest("every settle goes through once where the database is back at once", function* () {
    const { url } = yield* losable()
    const { org, secret } = yield* openAccount({})
    const { answer, assertServed } = yield* chatAndStreamUnderWay({ url, secret })
    const ended = yield* terminateAll
    assert.isAbove(ended.length, 0)
    yield* answer
    yield* assertServed
    yield* assertCharged(org, [charge, charge])
  })

  deploymentTest("a settle that it interrupts is repeated, and charges once", function* () {
    const { url } = yield* losable()
    const { org, secret } = yield* openAccount({})
    const { answer, chat: asked } = yield* chatUnderWay({ url, secret })
    const { unlock } = yield* lock(org)
    yield* answer
    yield* waitingForLock("losable")
    yield* terminateAll
    yield* unlock
    assert.strictEqual((yield* Fiber.join(asked)).status, 200)
    yield* assertCharged(org, [charge])
  })

  deploymentTest("repeating a settle that was made but never confirmed changes nothing", function* () {
    const { cut, freeze, mend, thaw, url } = yield* losable()
    const { org, secret } = yield* openAccount({})
    const { answer, chat: asked } = yield* chatUnderWay({ url, secret })
    const { unlock } = yield* lock(org)
    yield* answer
    yield* waitingForLock("losable")
    yield* freeze
    yield* unlock
    yield* eventually(moneyOf(org), ({ charges }) => charges.length === 1)
    assert.isNull(asked.unsafePoll(), "the gateway cannot know yet")
    yield* cut
    yield* thaw
    yield* mend
    assert.strictEqual((yield* Fiber.join(asked)).status, 200)
    yield* assertCharged(org, [charge])
  })

  deploymentTest("a settle waits for a database that is back within 10 s", function* () {
    const { cut, mend, url } = yield* losable()
    const { org, secret } = yield* openAccount({})
    const { answer, assertServed, json, sse } = yield* chatAndStreamUnderWay({ url, secret })
    yield* cut
    yield* answer
    yield* Effect.sleep("3 seconds")
    assert.deepStrictEqual([json.unsafePoll(), sse.unsafePoll()], [null, null])
    assert.deepInclude(yield* moneyOf(org), { openHolds: 2, charges: [] })
    yield* mend
    yield* assertServed
    yield* assertCharged(org, [charge, charge])
  })

  deploymentTest("nobody is charged while it stays away, and a known key is not called invalid", function* () {
    const { cut, mend, upstream, url } = yield* losable(earlyDeath)
    const { org, secret } = yield* openAccount({})
    const { answer, json, sse } = yield* chatAndStreamUnderWay({ url, secret })
    yield* upstream.script(silent)
    const endless = yield* Effect.fork(ask({ url, secret }))
    const { closed } = yield* upstream.received
    assert.strictEqual((yield* get(`${url}/readyz`)).status, 200)

    yield* cut
    yield* answer
    for (const presented of [secret, "ggw_unknown"]) {
      const refused = yield* eventually(ask({ url, secret: presented }), ({ status }) => status !== 200)
      assert.deepStrictEqual([refused.status, codeOf(refused)], [500, "internal_error"])
    }
    assert.strictEqual((yield* get(`${url}/readyz`)).status, 503)
    assert.strictEqual((yield* get(`${url}/healthz`)).status, 200)

    const late = yield* Fiber.join(json)
    assert.deepStrictEqual([late.status, codeOf(late)], [500, "internal_error"])
    const broken = yield* Fiber.join(sse)
    assert.strictEqual(codeOf(broken), "internal_error")
    assert.notInclude(broken.text, "[DONE]")
    // Without a heartbeat for `stopAfter` the gateway must not go on spending money that others may give away.
    const aborted = yield* Effect.timeout(Fiber.join(endless), "20 seconds")
    assert.deepStrictEqual([aborted.status, codeOf(aborted)], [503, null])
    yield* Effect.timeout(closed, "5 seconds")
    assert.deepInclude(yield* moneyOf(org), { openHolds: 3, charges: [] })

    yield* mend
    yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0, "20 seconds")
    yield* assertCharged(org, [])
    yield* eventually(get(`${url}/readyz`), ({ status }) => status === 200)
    yield* upstream.script(completion)
    assert.strictEqual((yield* ask({ url, secret })).status, 200)
    yield* assertCharged(org, [charge])
  })

  deploymentTest("a database that stays silent leaves the process alive and not ready", function* () {
    const { freeze, url } = yield* losable()
    yield* freeze
    yield* Effect.sleep("1 second")
    const [alive, ready] = yield* Effect.all([get(`${url}/healthz`), get(`${url}/readyz`)], {
      concurrency: "unbounded"
    }).pipe(Effect.timeout("10 seconds"))
    assert.deepStrictEqual([alive.status, ready.status], [200, 503])
  })
})
