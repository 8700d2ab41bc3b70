import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, type Scope } from "effect"
import type { FailureClass, ImageAdapter, ImageAnswer } from "../../src/services/routing/Provider.ts"
import { type Harness, type Host, type Painting, picture, request, secret, type Weather } from "./ImageHarness.ts"

const meaning: Readonly<Record<Weather, FailureClass>> = {
  limit: "limit",
  funds: "account",
  key: "account",
  request: "request",
  image: "request",
  moderation: "moderation",
  server: "retry",
  missing: "retry",
  page: "retry",
  garbage: "retry",
  empty: "retry",
  "error inside": "retry",
  "no picture": "retry",
  "broken picture": "retry",
  "empty picture": "retry",
  "cut answer": "network"
}

const bytesOf = (answer: ImageAnswer) => Buffer.from(answer.bytes).toString("base64")
const same = (answer: ImageAnswer, painting: Painting) =>
  assert.strictEqual(bytesOf(answer), Buffer.from(painting.bytes).toString("base64"))

/** What every image adapter owes the gateway, against any host that can be scripted. */
export const imageAdapterContract = (harness: Harness) =>
  describe(`an image adapter: ${harness.name}`, () => {
    const { has } = harness
    const [where] = has.places
    const paint = (over: Partial<Painting> = {}): Painting => {
      return { bytes: picture("image/png", 1).bytes, where, ...over }
    }
    const check = (
      name: string,
      body: (adapter: ImageAdapter, host: Host) => Effect.Effect<unknown, unknown, Scope.Scope>
    ) =>
      it.scopedLive(name, () =>
        Effect.gen(function* () {
          const { image } = yield* harness.make
          if (image === undefined) return yield* Effect.dieMessage("the provider has no images")
          return yield* body(image, yield* harness.host)
        }).pipe(Effect.provide(harness.services))
      )

    check("a picture from a prompt", (adapter, host) =>
      Effect.gen(function* () {
        const prompt = 'Grüße aus Zürich, "你好" 👋\r\nline two\\ & <more>'
        const painting = paint()
        yield* host.answers(painting)
        const answer = yield* adapter.generate(host.route, request({ prompt }))
        same(answer, painting)
        assert.isUndefined(answer.revisedPrompt)
        const sent = yield* host.understood
        assert.deepStrictEqual([sent.model, sent.prompt], [host.route.model, prompt])
        if (sent.references !== undefined) assert.deepStrictEqual(sent.references, [])
        if (sent.credential !== undefined) assert.include(sent.credential, secret)
      })
    )

    check("a picture of several megabytes, byte by byte", (adapter, host) =>
      Effect.gen(function* () {
        const painting = paint({ bytes: picture("image/png", 3, 5_000_001).bytes })
        yield* host.answers(painting)
        same(yield* adapter.generate(host.route, request()), painting)
      })
    )

    if (has.revisedPrompt) {
      check("the prompt as the host rewrote it", (adapter, host) =>
        Effect.gen(function* () {
          const revisedPrompt = "A crimson bicycle, studio light"
          yield* host.answers(paint({ revisedPrompt }))
          assert.strictEqual((yield* adapter.generate(host.route, request())).revisedPrompt, revisedPrompt)
        })
      )
    }

    if (has.edits) {
      const references = [picture("image/png", 11), picture("image/jpeg", 12), picture("image/webp", 13)]
      for (const count of [1, references.length]) {
        check(`an edit of ${count}, by the route's own model for edits`, (adapter, host) =>
          Effect.gen(function* () {
            const given = references.slice(0, count)
            const painting = paint()
            yield* host.answers(painting)
            const prompt = 'Make it blue,\r\nand "größer"'
            same(yield* adapter.generate(host.route, request({ prompt, references: given })), painting)
            const sent = yield* host.understood
            assert.deepStrictEqual([sent.model, sent.prompt], [host.route.editModel, prompt])
            const plain = sent.references?.map(({ bytes, type }) => [type, Buffer.from(bytes).toString("base64")])
            if (plain === undefined) return
            assert.deepStrictEqual(
              plain,
              given.map(({ bytes, type }) => [type, Buffer.from(bytes).toString("base64")])
            )
          })
        )
      }

      check("a route without edits takes none, and does not ask its host", (adapter, host) =>
        Effect.gen(function* () {
          const route = { ...host.route, editModel: undefined }
          const failure = yield* Effect.flip(adapter.generate(route, request({ references })))
          assert.deepStrictEqual([failure.class, failure.status], ["retry", undefined])
        })
      )
    }

    for (const place of has.places) {
      if (place === "inside") continue
      check(`a picture behind a URL, ${place}`, (adapter, host) =>
        Effect.gen(function* () {
          const painting = paint({ where: place })
          yield* host.answers(painting)
          same(yield* adapter.generate(host.route, request()), painting)
          if (host.fetched === undefined) return
          const { credential } = yield* host.fetched
          if (place === "own") assert.include(credential, secret)
          else assert.isUndefined(credential, "the credential stays with the route's own origin")
        })
      )
    }

    for (const weather of harness.weathers) {
      check(`meets ${weather}`, (adapter, host) =>
        Effect.gen(function* () {
          yield* host.meets(weather)
          const references = weather === "image" ? [picture("image/png", 1)] : []
          const failure = yield* Effect.flip(adapter.generate(host.route, request({ references })))
          assert.strictEqual(failure.class, meaning[weather])
          if (weather === "limit") assert.deepStrictEqual([failure.status, failure.retryAfterSeconds], [429, 7])
          assert.strictEqual(failure.param, weather === "image" ? "image" : undefined)
          if (weather === "server") assert.isAtLeast(failure.status ?? 0, 500)
          if (weather === "missing") assert.strictEqual(failure.status, 404)
          if (weather === "cut answer") assert.strictEqual(failure.status, 200)
          assert.notInclude(failure.detail, secret)
          assert.notStrictEqual(failure.detail, "")
        })
      )
    }

    check("a failure leaves the next request alone", (adapter, host) =>
      Effect.gen(function* () {
        yield* host.meets("server")
        yield* Effect.flip(adapter.generate(host.route, request()))
        const painting = paint()
        yield* host.answers(painting)
        same(yield* adapter.generate(host.route, request()), painting)
      })
    )

    if (has.waiting) {
      const held = (host: Host, painting: Painting) =>
        host.holds?.(painting) ?? Effect.dieMessage("the host cannot wait")

      check("a host that takes its time", (adapter, host) =>
        Effect.gen(function* () {
          const painting = paint()
          const { release } = yield* held(host, painting)
          const asking = yield* Effect.fork(adapter.generate(host.route, request()))
          yield* host.understood
          yield* release
          same(yield* Fiber.join(asking), painting)
        })
      )

      check("interrupting a call cancels it", (adapter, host) =>
        Effect.gen(function* () {
          const { gone } = yield* held(host, paint())
          const asking = yield* Effect.fork(adapter.generate(host.route, request()))
          yield* host.understood
          yield* Fiber.interrupt(asking)
          yield* gone
        })
      )
    }
  })
