import { SqlClient } from "@effect/sql"
import { Deferred, Effect } from "effect"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../src/services/access/ApiKeys.ts"
import { BlockList, parseRange } from "../../src/services/access/BlockList.ts"
import { Organizations } from "../../src/services/admin/Organizations.ts"
import { openAccount } from "../harness/client/Account.ts"
import { type Answer, ask, codeOf, get } from "../harness/client/ChatClient.ts"
import { assertCharged, times } from "../harness/database/Money.ts"
import { Deployment, deploymentTest, type GatewayOptions } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { after, charge, completion } from "../harness/upstream/Replies.ts"

const two = (options?: GatewayOptions) =>
  Effect.flatMap(Deployment, ({ gateway }) =>
    Effect.all([gateway(options), gateway(options)], { concurrency: "unbounded" })
  )

const withStatus = (answers: ReadonlyArray<Answer>, status: number) => answers.filter((one) => one.status === status)

describe("two gateways on one database", () => {
  deploymentTest("never sell the same cent twice", function* ({ upstream }) {
    const [left, right] = yield* two()
    const credits = 50n * charge
    const { org, secret } = yield* openAccount({ nanoUsd: credits })
    const decided = yield* Deferred.make<void>()
    let asked = 0
    let open = 200
    const decide = () => {
      open -= 1
      if (open === 0) Deferred.unsafeDone(decided, Effect.void)
    }
    yield* upstream.script(
      ...times(200).map(() =>
        after(
          Effect.suspend(() => {
            asked += 1
            decide()
            return Deferred.await(decided)
          }),
          completion
        )
      )
    )
    const answers = yield* Effect.forEach(
      times(200),
      (index) =>
        Effect.tap(ask({ url: index % 2 === 0 ? left.url : right.url, secret }), ({ status }) =>
          Effect.sync(() => status === 200 || decide())
        ),
      { concurrency: "unbounded" }
    ).pipe(Effect.timeout("30 seconds"))
    const refused = withStatus(answers, 402)
    assert.deepStrictEqual(
      { asked, served: withStatus(answers, 200).length, refused: refused.length },
      { asked: 50, served: 50, refused: 150 }
    )
    assert.isTrue(refused.every((answer) => codeOf(answer) === "insufficient_quota"))
    yield* assertCharged(
      org,
      times(50).map(() => charge),
      credits
    )
    assert.strictEqual(codeOf(yield* ask({ url: left.url, secret })), "insufficient_quota")
  })

  deploymentTest("count one key's requests exactly, window by window", function* ({ upstream }) {
    const sql = yield* SqlClient.SqlClient
    const [left, right] = yield* two()
    const { key, secret } = yield* openAccount({ rpm: 20 })
    yield* upstream.script(...times(200).map(() => completion))

    const burst = Effect.fnUntraced(function* (size: number) {
      const answers = yield* Effect.forEach(
        times(size),
        (index) => ask({ url: index % 2 === 0 ? left.url : right.url, secret }),
        { concurrency: "unbounded" }
      )
      const served = withStatus(answers, 200)
      const refused = withStatus(answers, 429)
      assert.strictEqual(served.length + refused.length, size)
      assert.deepStrictEqual(
        served.map(({ headers }) => Number(headers.get("x-ratelimit-remaining"))).toSorted((a, b) => b - a),
        times(20).map((place) => 19 - place)
      )
      assert.isTrue(answers.every(({ headers }) => headers.get("x-ratelimit-limit") === "20"))
      for (const answer of refused) {
        assert.strictEqual(answer.headers.get("x-ratelimit-remaining"), "0")
        assert.strictEqual(answer.headers.get("retry-after"), "60")
        assert.strictEqual(codeOf(answer), "rate_limit_exceeded")
      }
    })

    yield* burst(100)
    const age = (seconds: number) =>
      sql`UPDATE rate_windows SET started_at = started_at - ${seconds} * interval '1 second' WHERE key_id = ${key}`
    yield* age(30)
    assert.strictEqual((yield* ask({ url: right.url, secret })).status, 429)
    yield* age(30)
    yield* burst(40)
  })

  deploymentTest("both refuse within 1 s what was allowed before, while it is in use", function* () {
    const keys = yield* ApiKeys
    const organizations = yield* Organizations
    const blockList = yield* BlockList
    const gateways = yield* two({ env: { TRUST_PROXY: "1" } })
    const visitor = "203.0.113.7"

    const seen = (secret: string) =>
      Effect.forEach(gateways, ({ url }) =>
        Effect.map(
          get(`${url}/v1/models`, { authorization: `Bearer ${secret}`, "x-forwarded-for": visitor }),
          (answer) => (answer.status === 200 ? "ok" : codeOf(answer))
        )
      )
    /** Both see the key often enough to remember it all along; a second after the change they must see that. */
    const turns = Effect.fnUntraced(function* <A, E, R>(
      secret: string,
      change: Effect.Effect<A, E, R>,
      before: string,
      afterwards: string
    ) {
      assert.deepStrictEqual(yield* seen(secret), [before, before])
      const traffic = Effect.forever(Effect.delay(seen(secret), "10 millis"))
      yield* Effect.raceFirst(Effect.zipRight(change, Effect.sleep("1100 millis")), traffic)
      assert.deepStrictEqual(yield* seen(secret), [afterwards, afterwards])
    })

    const first = yield* openAccount({})
    const second = yield* openAccount({})
    const third = yield* openAccount({})
    yield* Effect.all(
      [
        turns(first.secret, keys.revoke(OrganizationScope.all, first.key), "ok", "invalid_api_key"),
        turns(second.secret, keys.reissue(OrganizationScope.all, second.key), "ok", "invalid_api_key"),
        turns(third.secret, organizations.suspend(third.org), "ok", "invalid_api_key")
      ],
      { concurrency: "unbounded" }
    )
    yield* turns(third.secret, organizations.resume(third.org), "invalid_api_key", "ok")
    const range = parseRange("203.0.113.0/24") ?? assert.fail("no range")
    yield* turns(third.secret, blockList.add(range), "ok", "access_denied")
    yield* turns(third.secret, blockList.remove(range), "access_denied", "ok")
  })
})
