import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Fiber } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { type Answer, ask, codeOf } from "../harness/client/ChatClient.ts"
import { draw, price } from "../harness/client/MediaClient.ts"
import { assertCharged, copies, lock, times, whileLocked } from "../harness/database/Money.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { after, charge, completion, painting, paints } from "../harness/upstream/Replies.ts"
import { chatUnderWay } from "./ChatsUnderWay.ts"

const statuses = (answers: ReadonlyArray<Answer>) => [...new Set(answers.map(({ status }) => status))]

describe.concurrent("an organization whose row is locked", () => {
  deploymentTest("keeps nobody else waiting for chats, settles or pictures", function* ({ gateway, upstream }) {
    const { url } = yield* gateway()
    const locked = yield* openAccount({})
    const other = yield* openAccount({})
    const { answer, chat: settling } = yield* chatUnderWay({ url, secret: locked.secret })

    const { unlock } = yield* lock(locked.org)
    yield* answer
    yield* upstream.script(...times(100).map(() => completion))
    const waiting = yield* Effect.fork(
      Effect.forEach(times(40), () => ask({ url, secret: locked.secret }), { concurrency: "unbounded" })
    )
    for (const _ of times(5)) {
      const served = yield* Effect.forEach(times(10), () => ask({ url, secret: other.secret }), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(statuses(served), [200])
      assert.isNull(waiting.unsafePoll())
    }
    assert.isNull(settling.unsafePoll())
    const refused = yield* Fiber.join(waiting)
    assert.deepStrictEqual(statuses(refused), [500])
    assert.deepStrictEqual(
      refused.map((one) => [codeOf(one), one.headers.get("retry-after")]),
      refused.map(() => ["internal_error", "5"])
    )
    yield* unlock
    assert.strictEqual((yield* Fiber.join(settling)).status, 200)
    yield* assertCharged(locked.org, [charge])
    yield* assertCharged(other.org, copies(charge, 50))
  })

  deploymentTest("keeps nobody else waiting for pictures with an idempotency key", function* ({ gateway, upstream }) {
    const { url } = yield* gateway()
    const locked = yield* openAccount({})
    const other = yield* openAccount({})
    const answer = yield* Deferred.make<void>()
    const painted = paints(painting)
    const asking = (secret: string, key: string) => draw({ url, secret, key, prompt: "x" })
    yield* upstream.script(...times(8).map(() => after(Deferred.await(answer), painted)))
    const settling = yield* Effect.fork(
      Effect.forEach(times(8), (index) => asking(locked.secret, `k${index}`), { concurrency: "unbounded" })
    )
    yield* Effect.replicateEffect(upstream.received, 8)
    const { unlock } = yield* lock(locked.org)
    yield* Deferred.succeed(answer, undefined)
    yield* upstream.script(...times(8).map(() => painted))
    const served = yield* Effect.forEach(times(8), (index) => asking(other.secret, `k${index}`), {
      concurrency: "unbounded"
    })
    assert.deepStrictEqual([...new Set(served.map(({ status }) => status))], [200])
    assert.isNull(settling.unsafePoll())
    yield* unlock
    yield* Fiber.join(settling)
    for (const { org } of [locked, other]) {
      yield* assertCharged(org, copies(price, 8))
    }
  })
})

describe.concurrent("a key whose window is locked", () => {
  deploymentTest("keeps no other key waiting", function* ({ gateway, upstream }) {
    const sql = yield* SqlClient.SqlClient
    const { url } = yield* gateway()
    const locked = yield* openAccount({})
    const other = yield* openAccount({})
    yield* upstream.script(...times(30).map(() => completion))
    assert.strictEqual((yield* ask({ url, secret: locked.secret })).status, 200)
    const isKept = yield* Deferred.make<void>()
    const over = yield* Deferred.make<void>()
    const keeping = yield* Effect.fork(
      whileLocked(
        sql`SELECT used FROM rate_windows WHERE key_id = ${locked.key} FOR UPDATE`,
        Effect.zipRight(Deferred.succeed(isKept, undefined), Deferred.await(over))
      )
    )
    yield* Deferred.await(isKept)
    const waits = yield* Effect.fork(ask({ url, secret: locked.secret }))
    const served = yield* Effect.forEach(times(10), () => ask({ url, secret: other.secret }), {
      concurrency: "unbounded"
    }).pipe(Effect.timeout("10 seconds"))
    assert.deepStrictEqual(statuses(served), [200])
    assert.isNull(waits.unsafePoll())
    yield* Deferred.succeed(over, undefined)
    yield* Fiber.join(keeping)
    assert.strictEqual((yield* Fiber.join(waits)).status, 200)
  })
})
