import { assert, describe } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { OrgId } from "../../src/domain/Organization.ts"
import { RequestLog } from "../../src/services/telemetry/RequestLog.ts"
import { openAccount } from "../harness/client/Account.ts"
import { codeOf } from "../harness/client/ChatClient.ts"
import { type AskedImage, draw, editForm, imageOf, isReplay, mediaIn, price } from "../harness/client/ImageClient.ts"
import { assertCharged, eventually, moneyOf } from "../harness/database/Money.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { after } from "../harness/upstream/ChatReplies.ts"
import { silent } from "../harness/upstream/FakeUpstream.ts"
import { painting, paints } from "../harness/upstream/ImageReplies.ts"

const logged = (org: OrgId, count: number) =>
  Effect.flatMap(RequestLog, (log) => eventually(log.list({ org, limit: 100 }), (rows) => rows.length === count))

/** The ways of asking, and whether the result is kept for a retry. */
const asks: ReadonlyArray<readonly [what: string, ask: () => Partial<AskedImage>]> = [
  ["link", () => ({ key: "link" })],
  ["bytes", () => ({ key: "bytes", more: { response_format: "b64_json" } })],
  ["edit", () => ({ key: "edit", form: editForm(painting) })],
  ["no key", () => ({})]
]

describe("a client that leaves before its image is made", () => {
  deploymentTest("finds it finished, stored and paid under its key", function* ({ env, gateway, upstream }) {
    const { url } = yield* gateway()
    const { org, secret } = yield* openAccount({})
    const gone = yield* Deferred.make<void>()
    yield* upstream.script(...asks.map(() => after(Deferred.await(gone), paints())))
    const waiting = yield* Effect.forEach(asks, ([, ask]) => Effect.fork(draw({ url, secret, ...ask() })))
    const calls = yield* Effect.replicateEffect(upstream.received, asks.length)
    yield* Fiber.interruptAll(waiting)

    const cut = Effect.raceAll(calls.map(({ closed }) => closed))
    assert.strictEqual((yield* Effect.timeoutOption(cut, "500 millis"))._tag, "None", "the provider's call goes on")
    assert.strictEqual((yield* moneyOf(org)).openHolds, asks.length)
    const early = yield* draw({ url, secret, key: "link" })
    assert.deepStrictEqual([early.status, codeOf(early)], [409, "idempotency_conflict"])
    yield* Deferred.succeed(gone, undefined)

    const rows = (yield* logged(org, asks.length + 1)).filter(({ status }) => status !== 409)
    for (const row of rows) {
      assert.deepStrictEqual([row.status, row.code, row.charge, row.notes], [499, "client_closed", price, []])
      assert.deepStrictEqual([row.route, row.attempts.map(({ outcome }) => outcome)], ["i1@drawer", ["ok"]])
    }
    assert.lengthOf(rows, asks.length)
    yield* assertCharged(
      org,
      asks.map(() => price)
    )
    const stored = yield* mediaIn(env["DATA_DIR"] ?? "")
    assert.lengthOf(
      [...stored.keys()].filter((name) => name.startsWith("public/")),
      3
    )

    const replays = yield* Effect.forEach(
      asks.filter(([what]) => what !== "no key"),
      ([, ask]) => draw({ url, secret, ...ask() })
    )
    for (const replay of replays) {
      const { b64_json, url: link = "" } = imageOf(replay)
      assert.isTrue(isReplay(replay))
      const bytes =
        b64_json === undefined ? stored.get(link.replace(/^.*\/media\//, "")) : Buffer.from(b64_json, "base64")
      assert.isTrue(bytes?.equals(painting))
    }
    yield* assertCharged(
      org,
      asks.map(() => price)
    )
  })
})

describe("a stop", () => {
  deploymentTest(
    "waits for an image, and frees the key of one that outlasts its patience",
    function* ({ env, gateway, upstream }) {
      const [patient, hasty] = yield* Effect.all([gateway(), gateway({ env: { SHUTDOWN_TIMEOUT: "1" } })], {
        concurrency: "unbounded"
      })
      const { org, secret } = yield* openAccount({})
      const more = yield* Deferred.make<void>()
      const ask = (url: string, key: string) => draw({ url, secret, key, more: { response_format: "b64_json" } })
      yield* upstream.script(after(Deferred.await(more), paints()))
      const whole = yield* Effect.fork(ask(patient.url, "whole"))
      yield* upstream.received
      yield* upstream.script(silent)
      const cut = yield* Effect.fork(ask(hasty.url, "cut"))
      const { closed } = yield* upstream.received
      yield* patient.signal("SIGTERM")
      yield* hasty.signal("SIGTERM")

      const refused = yield* Fiber.join(cut)
      assert.deepStrictEqual([refused.status, codeOf(refused)], [503, null])
      yield* Effect.timeout(closed, "5 seconds")
      assert.deepStrictEqual(yield* Effect.timeout(hasty.ended, "15 seconds"), { code: 0, signal: null })
      assert.deepInclude(yield* moneyOf(org), { openHolds: 1, charges: [] })
      yield* Deferred.succeed(more, undefined)
      const made = yield* Fiber.join(whole)
      imageOf(made)
      assert.deepStrictEqual(yield* Effect.timeout(patient.ended, "15 seconds"), { code: 0, signal: null })
      yield* assertCharged(org, [price])

      const { url } = yield* gateway()
      yield* upstream.script(paints())
      const [replay, retry] = [yield* ask(url, "whole"), yield* ask(url, "cut")]
      assert.deepStrictEqual([replay.text, isReplay(replay)], [made.text, true])
      imageOf(retry)
      assert.isFalse(isReplay(retry))
      yield* assertCharged(org, [price, price])
      assert.strictEqual((yield* mediaIn(env["DATA_DIR"] ?? "")).size, 2)
    }
  )
})
