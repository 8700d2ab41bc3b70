import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option, TestClock } from "effect"
import type { Picture } from "../../src/domain/Media.ts"
import type { FailureClass } from "../../src/services/routing/Provider.ts"
import { blank, plain } from "../harness/fixtures/PictureSamples.ts"
import { draw, failureOf, imageOf, imageRequest, imageRoute } from "../harness/gateway/SandboxMedia.ts"

describe("a fault", () => {
  const failing: ReadonlyArray<readonly [string, FailureClass, number]> = [
    ["[sandbox status=429]", "limit", 429],
    ["[sandbox status=401]", "account", 401],
    ["[sandbox status=400]", "request", 400],
    ["[sandbox status=503 moderation]", "retry", 503],
    ["[sandbox moderation]", "moderation", 400],
    ["[sandbox moderation fail]", "moderation", 400]
  ]
  it.effect.each(failing)("of %s is a failure of class %s with status %i", ([prompt, kind, status]) =>
    Effect.gen(function* () {
      const failure = yield* failureOf(draw({ prompt: `A fox ${prompt}` }))
      assert.deepStrictEqual([failure.class, failure.status], [kind, status])
    })
  )

  it.effect("keeps to its routes", () =>
    Effect.gen(function* () {
      const prompt = "A fox [sandbox status=503 routes=1]"
      assert.strictEqual((yield* failureOf(draw({ prompt }))).status, 503)
      yield* draw({ prompt }, imageRoute("sandbox-b"))
    })
  )

  it.effect("delays", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(failureOf(draw({ prompt: "[sandbox delay=5000 status=500]" })))
      yield* TestClock.adjust(4_999)
      assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Fiber.join(fiber)).status, 500)
    })
  )
})

describe("a reference that cannot be decoded", () => {
  const whole = Effect.map(plain("#123456", 400, 300), ({ bytes }) => Buffer.from(bytes))
  const huge = Effect.sync(() => blank(10_100, 10_000))
  const broken: Readonly<Record<string, Effect.Effect<Uint8Array>>> = {
    "is empty": Effect.succeed(new Uint8Array()),
    "is text": Effect.succeed(Buffer.from("<html>not a picture</html>")),
    "is cut": Effect.map(whole, (bytes) => bytes.subarray(0, bytes.length / 2)),
    "has a header only": Effect.map(whole, (bytes) => bytes.subarray(0, 33)),
    "has more pixels than any camera": huge
  }
  it.effect.each(Object.entries(broken))("because it %s is the request's fault", ([, made]) =>
    Effect.gen(function* () {
      const reference: Picture = { type: "image/png", bytes: yield* made }
      const failure = yield* failureOf(draw({ references: [yield* plain("#fff"), reference] }))
      assert.deepStrictEqual([failure.class, failure.status, failure.param], ["request", 400, "image"])
    })
  )
})

describe("whoever asked", () => {
  it.effect("can leave, drawn or waiting, and takes no one's turn", () =>
    Effect.gen(function* () {
      const reference = yield* plain("#fff", 4_000, 4_000)
      const image = yield* imageOf
      const request = imageRequest({ resolution: "4K", references: [reference] })
      const asked = Array.from({ length: 8 }, () => image.generate(imageRoute(), request))
      const fibers = yield* Effect.forEach(asked, Effect.fork)
      yield* Effect.yieldNow()
      yield* Effect.forEach(fibers, Fiber.interrupt)
      yield* image.generate(imageRoute(), imageRequest())
    })
  )
})
