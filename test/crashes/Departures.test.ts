import { Deferred, Effect, Fiber } from "effect"
import type { OrgId } from "../../src/domain/Organization.ts"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { TokenCounter } from "../../src/services/chat/TokenCounter.ts"
import { RequestLog } from "../../src/services/telemetry/RequestLog.ts"
import { openAccount } from "../harness/client/Account.ts"
import { type Answer, ask, type ConnectionBroke, codeOf, openStream } from "../harness/client/ChatClient.ts"
import { draw, editForm, imageOf, isReplay, mediaIn, price } from "../harness/client/MediaClient.ts"
import { assertCharged, copies, eventually, moneyOf } from "../harness/database/Money.ts"
import { Deployment, deploymentTest } from "../harness/gateway/Deployment.ts"
import { assert, describe } from "../harness/It.ts"
import { type Reply, silent, sse } from "../harness/upstream/FakeUpstream.ts"
import { after, charge, completion, delta, either, painting, paints } from "../harness/upstream/Replies.ts"

/** More than open a circuit, were a departure a failure. */
const many = Array.from({ length: 6 })

const logged = (org: OrgId, count: number) =>
  Effect.flatMap(RequestLog, (log) =>
    eventually(log.list(OrganizationScope.all, { org, limit: 100 }), (rows) => rows.length === count)
  )

/** The only route serves the next request: its circuit is closed. */
const assertServed = Effect.fnUntraced(function* (url: string) {
  const { upstream } = yield* Deployment
  const { secret } = yield* openAccount({})
  yield* upstream.script(either)
  assert.strictEqual((yield* ask({ url, secret })).status, 200)
})

/** All clients leave while the provider works for them; it is asked on, and answers after `meanwhile`. */
const leaveAll = <E, R>(
  org: OrgId,
  requests: ReadonlyArray<Effect.Effect<Answer, ConnectionBroke>>,
  reply: Reply,
  meanwhile: Effect.Effect<unknown, E, R>
) =>
  Effect.gen(function* () {
    const { upstream } = yield* Deployment
    const gone = yield* Deferred.make<void>()
    yield* upstream.script(...requests.map(() => after(Deferred.await(gone), reply)))
    const waiting = yield* Effect.forEach(requests, (request) => Effect.fork(request))
    const calls = yield* Effect.replicateEffect(upstream.received, requests.length)
    yield* Fiber.interruptAll(waiting)
    const cut = Effect.raceAll(calls.map(({ closed }) => closed))
    assert.strictEqual((yield* Effect.timeoutOption(cut, "500 millis"))._tag, "None", "the provider's call goes on")
    assert.strictEqual((yield* moneyOf(org)).openHolds, requests.length)
    yield* meanwhile
    yield* Deferred.succeed(gone, undefined)
  })

describe("a client that leaves", () => {
  deploymentTest(
    "a stream pays for what was produced until then, and ends the provider's call",
    function* ({ gateway, upstream }) {
      const { url } = yield* gateway()
      const { org, secret } = yield* openAccount({})
      const replies = many.map(() => sse(delta("Hello"), delta(" there,"), delta(" how are"), Effect.never))
      yield* upstream.script(...replies)
      const calls = yield* Effect.forEach(many, () =>
        Effect.scoped(
          Effect.gen(function* () {
            const { leave, until } = yield* openStream({ url, secret })
            yield* until(" how are")
            yield* leave
            return yield* upstream.received
          })
        )
      )
      for (const { closed } of calls) yield* Effect.timeout(closed, "20 seconds")
      const tokens = yield* Effect.provide(TokenCounter, TokenCounter.layer)
      const output = yield* tokens.count("Hello there, how are")
      for (const row of yield* logged(org, many.length)) {
        assert.deepStrictEqual([row.status, row.code, row.notes], [499, "client_closed", ["usage_estimated"]])
        assert.deepStrictEqual([row.route, row.stream], ["m1@local", true])
        assert.strictEqual(row.completionTokens, output)
        assert.isTrue(row.promptTokens !== null && row.promptTokens >= 1 && row.promptTokens <= 50)
        assert.strictEqual(row.charge, BigInt(row.promptTokens ?? 0) * 1000n + BigInt(output) * 2000n)
        assert.strictEqual(row.attempts.length, 1)
      }
      const { charges } = yield* moneyOf(org)
      const [first = 0n] = charges
      assert.isTrue(first > 0n && first < charge)
      yield* assertCharged(org, copies(first, many.length))
      yield* assertServed(url)
    }
  )

  deploymentTest("a stream on which nothing had come yet costs nothing", function* ({ gateway, upstream }) {
    const { url } = yield* gateway()
    const { org, secret } = yield* openAccount({})
    yield* upstream.script(...many.map((_, index) => (index % 2 === 0 ? silent : sse(": wait\n\n", Effect.never))))
    yield* Effect.forEach(many, () =>
      Effect.gen(function* () {
        const asked = yield* Effect.fork(ask({ url, secret, stream: true }))
        const { closed } = yield* upstream.received
        yield* Fiber.interrupt(asked)
        yield* Effect.timeout(closed, "5 seconds")
      })
    )
    for (const row of yield* logged(org, many.length)) {
      assert.deepStrictEqual([row.status, row.code, row.charge, row.notes], [499, "client_closed", 0n, []])
    }
    yield* eventually(moneyOf(org), ({ openHolds }) => openHolds === 0)
    yield* assertCharged(org, [])
    yield* assertServed(url)
  })

  deploymentTest("an answer that nobody waits for is still made, and paid by what it used", function* ({ gateway }) {
    const { url } = yield* gateway()
    const { org, secret } = yield* openAccount({})
    const requests = many.map(() => ask({ url, secret }))
    yield* leaveAll(org, requests, completion, Effect.void)
    for (const row of yield* logged(org, many.length)) {
      assert.deepStrictEqual([row.status, row.code, row.charge, row.notes], [499, "client_closed", charge, []])
      assert.deepStrictEqual([row.promptTokens, row.completionTokens], [50, 10])
    }
    yield* assertCharged(org, copies(charge, many.length))
    yield* assertServed(url)
  })

  deploymentTest("an image finds it finished, stored and paid under its key", function* ({ env, gateway }) {
    const { url } = yield* gateway()
    const { org, secret } = yield* openAccount({})
    const withKey = [
      draw({ url, secret, key: "link" }),
      draw({ url, secret, key: "bytes", more: { response_format: "b64_json" } }),
      Effect.suspend(() => draw({ url, secret, key: "edit", form: editForm(painting) }))
    ]
    const requests = [...withKey, draw({ url, secret })]
    const conflict = Effect.gen(function* () {
      const early = yield* draw({ url, secret, key: "link" })
      assert.deepStrictEqual([early.status, codeOf(early)], [409, "idempotency_conflict"])
    })
    yield* leaveAll(org, requests, paints(), conflict)

    const rows = (yield* logged(org, requests.length + 1)).filter(({ status }) => status !== 409)
    for (const row of rows) {
      assert.deepStrictEqual([row.status, row.code, row.charge, row.notes], [499, "client_closed", price, []])
      assert.deepStrictEqual([row.route, row.attempts.map(({ outcome }) => outcome)], ["i1@drawer", ["ok"]])
    }
    assert.lengthOf(rows, requests.length)
    const paid = requests.map(() => price)
    yield* assertCharged(org, paid)
    const stored = yield* mediaIn(env["DATA_DIR"] ?? "")
    assert.lengthOf(
      [...stored.keys()].filter((name) => name.startsWith("public/")),
      3
    )
    for (const replay of yield* Effect.all(withKey)) {
      const { b64_json, url: link = "" } = imageOf(replay)
      assert.isTrue(isReplay(replay))
      const bytes =
        b64_json === undefined ? stored.get(link.replace(/^.*\/media\//, "")) : Buffer.from(b64_json, "base64")
      assert.isTrue(bytes?.equals(painting))
    }
    yield* assertCharged(org, paid)
  })
})
