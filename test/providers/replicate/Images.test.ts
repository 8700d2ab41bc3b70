import { Effect, Fiber } from "effect"
import { imageAdapterContract } from "../../contracts/ImageAdapter.ts"
import { request } from "../../contracts/ImageHarness.ts"
import { checksOf, secret } from "../../contracts/MediaHarness.ts"
import { assert, describe } from "../../harness/It.ts"
import { drawing } from "../jobs/Hosts.ts"
import { imageHarness, imageHost } from "./Hosts.ts"
import { predictionOf, refusals } from "./ReplicateHost.ts"

imageAdapterContract(imageHarness)

const check = checksOf({ ...imageHarness, host: imageHost }, ({ image }) => image)

describe("a picture of Replicate's", () => {
  check(
    "is waited for, and not asked after where the wait was enough",
    function* (adapter, { answer, replicate, route }) {
      yield* answer(drawing)
      const { bytes } = yield* adapter.generate(route, request())
      assert.deepStrictEqual(Buffer.from(bytes), Buffer.from(drawing.bytes))
      const sent = yield* replicate.heard("submit")
      assert.match(predictionOf(sent).prefer ?? "", /^wait=\d+$/)
      assert.strictEqual(sent.headers["cancel-after"], "5m")
      assert.strictEqual(yield* replicate.unseen("poll"), 0)
      assert.strictEqual(yield* replicate.unseen("cancel"), 0)
    }
  )

  check(
    "that failed while it was waited for is over: it is neither asked after nor cancelled",
    function* (adapter, host) {
      yield* host.replicate.fails("NSFW content detected. Try running it again, or try a different prompt.")
      const failure = yield* Effect.flip(adapter.generate(host.route, request()))
      assert.strictEqual(failure.class, "moderation")
      assert.strictEqual(yield* host.replicate.unseen("poll"), 0)
      assert.strictEqual(yield* host.replicate.unseen("cancel"), 0)
    }
  )

  check("that takes longer is asked after through every state", function* (adapter, { answer, replicate, route }) {
    const waiting = yield* Effect.fork(adapter.generate(route, request()))
    yield* replicate.heard("poll")
    yield* replicate.stands("processing")
    yield* replicate.meets("poll", refusals.server, refusals.page, refusals.limit)
    yield* Effect.replicateEffect(replicate.heard("poll"), 4)
    yield* replicate.stands("whatever")
    yield* replicate.heard("poll")
    yield* answer(drawing)
    const { bytes } = yield* Fiber.join(waiting)
    assert.deepStrictEqual(Buffer.from(bytes), Buffer.from(drawing.bytes))
  })

  for (const status of ["canceled", "aborted"]) {
    check(`that somebody else stopped (${status}) may be made elsewhere`, function* (adapter, { replicate, route }) {
      yield* replicate.stands(status)
      assert.strictEqual((yield* Effect.flip(adapter.generate(route, request()))).class, "retry")
    })
  }

  check("is cancelled at Replicate when it is interrupted", function* (adapter, { replicate, route }) {
    const waiting = yield* Effect.fork(adapter.generate(route, request()))
    const { path } = yield* replicate.heard("poll")
    yield* Fiber.interrupt(waiting)
    const cancelled = yield* replicate.heard("cancel")
    assert.deepStrictEqual([cancelled.method, cancelled.path], ["POST", `${path}/cancel`])
    assert.strictEqual(cancelled.headers.authorization, `Bearer ${secret}`)
  })
})
