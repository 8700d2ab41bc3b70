import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option, TestClock } from "effect"
import type { FailureClass } from "../../src/services/routing/Provider.ts"
import { blank, plain } from "../harness/fixtures/PictureSamples.ts"
import { download, failureOf, poll, submit, videoRoute } from "../harness/gateway/SandboxMedia.ts"

const states = (handle: string, moments: ReadonlyArray<number>) =>
  Effect.forEach(moments, (until, index) =>
    Effect.zipRight(TestClock.adjust(until - (moments[index - 1] ?? 0)), poll(handle))
  )

describe("a render", () => {
  it.effect("is queued for a second, in progress until the third, and done from then on", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("400 days")
      const handle = yield* submit({})
      const seen = yield* states(handle, [0, 999, 1_000, 2_999, 3_000, 86_400_000])
      assert.deepStrictEqual(
        seen.map(({ state }) => state),
        ["queued", "queued", "in_progress", "in_progress", "done", "done"]
      )
    })
  )

  const fates: ReadonlyArray<readonly [string, FailureClass, number]> = [
    ["[sandbox fail]", "retry", 500],
    ["[sandbox fail moderation]", "moderation", 400],
    ["[sandbox moderation fail delay=0]", "moderation", 400],
    ["[sandbox fail routes=1]", "retry", 500]
  ]
  it.effect.each(fates)("with %s fails in its third second, as %s", ([prompt, kind, status]) =>
    Effect.gen(function* () {
      const handle = yield* submit({ prompt: `A fox ${prompt}` })
      const seen = yield* states(handle, [999, 1_999, 2_000, 3_000, 60_000])
      assert.deepStrictEqual(
        seen.map((progress) =>
          progress.state === "failed" ? [progress.failure.class, progress.failure.status] : progress.state
        ),
        ["queued", "in_progress", [kind, status], [kind, status], [kind, status]]
      )
      assert.strictEqual((yield* failureOf(download(handle))).class, "retry")
    })
  )

  it.effect("fails only on the routes that were named", () =>
    Effect.gen(function* () {
      const handle = yield* submit({ prompt: "[sandbox fail routes=1]" }, videoRoute("sandbox-b"))
      assert.deepStrictEqual(yield* states(handle, [3_000]), [{ state: "done" }])
    })
  )

  it.effect("cannot be downloaded before it is done", () =>
    Effect.gen(function* () {
      const handle = yield* submit({})
      yield* TestClock.adjust(2_999)
      const failure = yield* failureOf(download(handle))
      assert.deepStrictEqual([failure.class, failure.status], ["retry", 404])
      yield* TestClock.adjust(1)
      yield* download(handle)
    })
  )
})

describe("a submit", () => {
  const refused: ReadonlyArray<readonly [string, FailureClass, number]> = [
    ["[sandbox status=503]", "retry", 503],
    ["[sandbox status=429 fail]", "limit", 429],
    ["[sandbox moderation]", "moderation", 400],
    ["[sandbox fail] [sandbox moderation]", "moderation", 400],
    ["[sandbox status=422 routes=1]", "request", 422]
  ]
  it.effect.each(refused)("with %s is refused as %s", ([prompt, kind, status]) =>
    Effect.gen(function* () {
      const failure = yield* failureOf(submit({ prompt: `A fox ${prompt}` }))
      assert.deepStrictEqual([failure.class, failure.status], [kind, status])
    })
  )

  it.effect("waits out a delay, and the render begins after it", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.fork(submit({ prompt: "[sandbox delay=5000]" }))
      yield* TestClock.adjust(4_999)
      assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
      yield* TestClock.adjust(1)
      const handle = yield* Fiber.join(fiber)
      assert.deepStrictEqual(yield* states(handle, [999, 1_000]), [{ state: "queued" }, { state: "in_progress" }])
    })
  )

  it.effect("refuses a reference that cannot be decoded", () =>
    Effect.gen(function* () {
      for (const bytes of [Buffer.from("<html>"), blank(10_100, 10_000), blank(50, 50).subarray(0, 45)]) {
        const failure = yield* failureOf(submit({ reference: { type: "image/png", bytes } }))
        assert.deepStrictEqual([failure.class, failure.status, failure.param], ["request", 400, "image"])
      }
    })
  )
})

describe("a handle", () => {
  it.effect("is small text that any database takes, whatever was asked for", () =>
    Effect.gen(function* () {
      const reference = yield* plain("#abcdef", 4_000, 3_000)
      const handle = yield* submit({ prompt: `\u0000 \ud800 "\n${"long ".repeat(100_000)}`, reference })
      assert.isBelow(handle.length, 32_768)
      assert.notMatch(handle, /\\u0000|\\ud800/)
      yield* TestClock.adjust("3 seconds")
      yield* download(handle)
    })
  )

  it.effect("that is none is no render", () =>
    Effect.gen(function* () {
      const handle = yield* submit({ seconds: 5 })
      yield* TestClock.adjust("3 seconds")
      const changed = (from: string, to: string) => handle.replace(from, to)
      const strange = [
        "",
        "null",
        "{}",
        "[".repeat(100_000),
        changed(`"seconds":5`, `"seconds":1e9`),
        changed(`"seconds":5`, `"seconds":0`),
        changed(`"done"`, `"lost"`),
        changed(`"reference":null`, `"reference":"***"`),
        changed("red", "x".repeat(2_000_000))
      ]
      for (const text of strange) {
        for (const asked of [Effect.asVoid(poll(text)), Effect.asVoid(download(text))]) {
          const failure = yield* failureOf(asked)
          assert.deepStrictEqual([failure.class, failure.status], ["retry", 404])
        }
      }
    })
  )
})
