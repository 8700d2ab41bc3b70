import { Effect, Exit, Fiber } from "effect"
import type { FailureClass } from "../../../src/services/routing/Provider.ts"
import { imageAdapterContract } from "../../contracts/ImageAdapter.ts"
import { request } from "../../contracts/ImageHarness.ts"
import { checksOf, secret } from "../../contracts/MediaHarness.ts"
import { assert, describe } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { drawing } from "../jobs/Hosts.ts"
import { refusals } from "./FalHost.ts"
import { imageHarness, imageHost } from "./Hosts.ts"

imageAdapterContract(imageHarness)

const check = checksOf({ ...imageHarness, host: imageHost }, ({ image }) => image)

describe("a picture in fal's queue", () => {
  check("waits through every state, and asks again after what may pass", function* (adapter, host) {
    const { fal, route } = host
    const drawing_ = yield* Effect.fork(adapter.generate(route, request()))
    yield* fal.heard("poll")
    yield* fal.stands("IN_PROGRESS")
    yield* fal.heard("poll")
    yield* fal.meets("poll", refusals.server, refusals.page, refusals.limit)
    yield* fal.meets("result", refusals["cut answer"], refusals.garbage, refusals.key)
    yield* fal.stands("WHATEVER")
    yield* Effect.replicateEffect(fal.heard("poll"), 4)
    yield* fal.ends({})
    const failure = yield* Effect.flip(Fiber.join(drawing_))
    assert.strictEqual(failure.class, "account", "what does not pass is not asked again")
    assert.strictEqual((yield* fal.heard("cancel")).headers.authorization, `Key ${secret}`)
  })

  const endings: ReadonlyArray<[string, Fake.Reply, FailureClass, string | undefined]> = [
    ["moderation", refusals.moderation, "moderation", undefined],
    ["flagged", Fake.json(200, { images: [{ url: "data:," }], has_nsfw_concepts: [true] }), "moderation", undefined],
    ["request", refusals.request, "request", undefined],
    ["image", refusals.image, "request", "image"],
    ["runner", refusals.runner, "retry", undefined]
  ]
  check("fails by a result that the host cannot give, after asking again", function* (adapter, { fal, route }) {
    yield* fal.ends({})
    yield* fal.always("result", refusals.server)
    const failure = yield* Effect.flip(adapter.generate(route, request()))
    assert.deepStrictEqual([failure.class, failure.status], ["retry", 500])
    assert.strictEqual(yield* fal.unseen("result"), 3)
    assert.strictEqual(yield* fal.unseen("cancel"), 0)
  })

  check("fails by an error beside its state, and the result is not asked for", function* (adapter, { fal, route }) {
    yield* fal.ends({})
    yield* fal.always(
      "poll",
      Fake.json(200, { status: "COMPLETED", error: "Out of memory", error_type: "internal_error" })
    )
    const failure = yield* Effect.flip(adapter.generate(route, request()))
    assert.strictEqual(failure.class, "retry")
    assert.strictEqual(yield* fal.unseen("result"), 0)
  })

  for (const [name, reply, failureClass, param] of endings) {
    check(`fails by ${name} once it is over, and is not cancelled`, function* (adapter, { fal, route }) {
      yield* fal.ends({})
      yield* fal.meets("result", reply)
      const failure = yield* Effect.flip(adapter.generate(route, request()))
      assert.deepStrictEqual([failure.class, failure.param], [failureClass, param])
      assert.strictEqual(yield* fal.unseen("result"), 1)
      assert.strictEqual(yield* fal.unseen("cancel"), 0)
    })
  }

  check("is given up when nobody can ask after it", function* (adapter, { fal, route }) {
    yield* fal.always("poll", refusals.page)
    const failure = yield* Effect.flip(adapter.generate(route, request()))
    assert.deepStrictEqual([failure.class, failure.status], ["retry", 502])
    assert.strictEqual(yield* fal.unseen("poll"), 4)
    yield* fal.heard("cancel")
  })

  check("is cancelled at fal when it is interrupted", function* (adapter, { fal, route }) {
    const drawing_ = yield* Effect.fork(adapter.generate(route, request()))
    const { path } = yield* fal.heard("poll")
    yield* Fiber.interrupt(drawing_)
    const cancelled = yield* fal.heard("cancel")
    assert.strictEqual(cancelled.path, path.replace(/status$/, "cancel"))
    assert.strictEqual(cancelled.method, "PUT")
    assert.strictEqual(cancelled.headers.authorization, `Key ${secret}`)
  })

  check("does not wait for a host that does not answer its cancellation", function* (adapter, { fal, route }) {
    yield* fal.always("cancel", Fake.silent)
    const drawing_ = yield* Effect.fork(adapter.generate(route, request()))
    yield* fal.heard("poll")
    assert.isTrue(Exit.isInterrupted(yield* Fiber.interrupt(drawing_)))
    const { closed } = yield* fal.heard("cancel")
    yield* closed
  })

  check(
    "is fetched again when its file host fails once, not when it has no such file",
    function* (adapter, { fal, ...host }) {
      yield* host.answer(drawing)
      yield* fal.meets("download", Fake.json(503, {}))
      const { bytes } = yield* adapter.generate(host.route, request())
      assert.deepStrictEqual(Buffer.from(bytes), Buffer.from(drawing.bytes))
      yield* fal.always("download", Fake.json(410, {}))
      const failure = yield* Effect.flip(adapter.generate(host.route, request()))
      assert.deepStrictEqual([failure.class, failure.status], ["retry", 410])
      assert.strictEqual(yield* fal.unseen("download"), 3)
    }
  )
})
