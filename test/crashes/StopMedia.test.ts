import { Deferred, Duration, Effect, Fiber } from "effect"
import { openAccount } from "../harness/client/Account.ts"
import { codeOf, get } from "../harness/client/ChatClient.ts"
import { draw, film, imageOf, isReplay, mediaIn, price, videoOf } from "../harness/client/MediaClient.ts"
import { assertCharged, eventually, moneyOf } from "../harness/database/Money.ts"
import { deploymentTest } from "../harness/gateway/Deployment.ts"
import { complete } from "../harness/gateway/ShortTimings.ts"
import { assert, describe } from "../harness/It.ts"
import { silent } from "../harness/upstream/FakeUpstream.ts"
import * as RenderFarm from "../harness/upstream/RenderFarm.ts"
import { priceOf, videoEnvironment } from "../harness/upstream/RenderFarm.ts"
import { after, paints } from "../harness/upstream/Replies.ts"
import * as LeaseLog from "./LeaseLog.ts"
import { isOver, videoRows } from "./VideoRows.ts"

/** What the gateway that is stopped waits for with each job; the farm lets it wait. */
const stuck: ReadonlyArray<RenderFarm.Call["step"]> = ["poll", "result", "download", "submit"]

const timings = { answerVideoWithin: Duration.seconds(3), pollVideoAfter: Duration.seconds(1) }

describe.concurrent("a stop of a gateway with renders under way", () => {
  deploymentTest("leaves them to the other one at once, and none is submitted twice", function* ({ env, gateway }) {
    yield* LeaseLog.keep
    const { org, secret } = yield* openAccount({})
    const taken = yield* Deferred.make<void>()
    const farm = yield* RenderFarm.make({
      fate: () => ({ submit: "taken", polls: 1, end: "clip" }),
      before: ({ credential, prompt, step }) => {
        if (credential !== "Key left" || prompt !== step) return Effect.void
        return step === "submit" ? Deferred.await(taken) : Effect.never
      }
    })
    const videos = yield* videoEnvironment(farm.url)
    const left = yield* gateway({ timings, env: { ...videos, FARM_KEY: "left", SHUTDOWN_DELAY: "0" } })
    const asked = yield* Effect.fork(
      Effect.forEach(
        stuck,
        (prompt) => film({ url: left.url, secret, key: prompt, body: { model: "film", prompt, seconds: 4 } }),
        { concurrency: "unbounded" }
      )
    )
    const reached = Effect.sync(() =>
      stuck.filter((step) => farm.calls.some((call) => call.prompt === step && call.step === step))
    )
    yield* eventually(reached, ({ length }) => length === stuck.length, "30 seconds")
    // One was not taken by the farm within the customer's patience: it is queued all the same.
    for (const answer of yield* Fiber.join(asked)) assert.strictEqual(videoOf(answer, 202).status, "queued")
    const right = yield* gateway({ timings, env: { ...videos, FARM_KEY: "right" } })

    yield* left.signal("SIGTERM")
    yield* eventually(Effect.isFailure(get(`${left.url}/healthz`)), (isGone) => isGone)
    assert.isNull(left.process.exitCode, "it did not wait for the farm's answer")
    const waited = (yield* videoRows).find(({ key }) => key === "submit")
    assert.deepInclude(waited, { step: "submitting", isLeased: true })
    yield* Deferred.succeed(taken, undefined)
    assert.deepStrictEqual(yield* Effect.timeout(left.ended, "20 seconds"), { code: 0, signal: null })
    const rows = yield* eventually(videoRows, (all) => all.every(isOver), "60 seconds").pipe(
      Effect.tapError(() => Effect.sync(() => process.stderr.write(right.stderr())))
    )

    for (const { attemptedRoutes, key, status, uncertainSubmits } of rows) {
      assert.deepStrictEqual([status, uncertainSubmits, attemptedRoutes], ["completed", 0, ["film@a"]], key ?? "")
    }
    const takeovers = yield* LeaseLog.takeovers(complete(timings))
    assert.isEmpty(takeovers.filter(({ lapsed }) => lapsed))
    const submits = farm.calls.filter(({ step }) => step === "submit")
    assert.sameMembers(
      submits.map(({ credential, prompt }) => `${credential} ${prompt}`),
      stuck.map((prompt) => `Key left ${prompt}`)
    )
    yield* assertCharged(
      org,
      rows.map(() => priceOf(4))
    )
    const stored = [...(yield* mediaIn(env["DATA_DIR"] ?? "")).keys()]
    assert.deepStrictEqual(
      stored.map((name) => name.split("/")[0]),
      rows.map(() => "public")
    )
  })
})

describe.concurrent("a stop of a gateway with images under way", () => {
  deploymentTest(
    "waits for an image, and frees the key of one that outlasts SHUTDOWN_TIMEOUT",
    function* ({ env, gateway, upstream }) {
      const [patient, hasty] = yield* Effect.all(
        [gateway({ env: { SHUTDOWN_DELAY: "0" } }), gateway({ env: { SHUTDOWN_DELAY: "0", SHUTDOWN_TIMEOUT: "1" } })],
        { concurrency: "unbounded" }
      )
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
