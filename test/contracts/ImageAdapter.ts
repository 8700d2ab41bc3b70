import { Effect, Fiber } from "effect"
import type { FailureClass, ImageAnswer } from "../../src/services/routing/Provider.ts"
import { assert, describe } from "../harness/It.ts"
import { type Fault, type Harness, type Host, type Painting, picture, request } from "./ImageHarness.ts"
import { base64, checksOf, meaning as mediaMeaning, secret } from "./MediaHarness.ts"

const meaning: Readonly<Record<Fault, FailureClass>> = {
  ...mediaMeaning,
  "error inside": "retry",
  "deep error": "retry",
  "no picture": "retry",
  "broken picture": "retry",
  "empty picture": "retry"
}

const same = (answer: ImageAnswer, painting: Painting) =>
  assert.strictEqual(base64(answer.bytes), base64(painting.bytes))

/** What every image adapter owes the gateway, against any host that can be scripted. */
export const imageAdapterContract = (harness: Harness) =>
  describe(`an image adapter: ${harness.name}`, () => {
    const { has } = harness
    const [where] = has.places
    const paint = (over: Partial<Painting> = {}): Painting => {
      return { bytes: picture("image/png", 1).bytes, where, ...over }
    }
    const check = checksOf(harness, ({ image }) => image)

    check("a prompt gives a picture", function* (adapter, host) {
      const prompt = 'Grüße aus Zürich, "你好" 👋\r\nline two\\ & <more>'
      const painting = paint()
      yield* host.answer(painting)
      const answer = yield* adapter.generate(host.route, request({ prompt }))
      same(answer, painting)
      assert.isUndefined(answer.revisedPrompt)
      const sent = yield* host.received
      assert.deepStrictEqual([sent.model, sent.prompt], [host.route.model, prompt])
      if (sent.references !== undefined) assert.deepStrictEqual(sent.references, [])
      if (sent.credential !== undefined) assert.include(sent.credential, secret)
    })

    check("a picture of several megabytes arrives unchanged", function* (adapter, host) {
      const painting = paint({ bytes: picture("image/png", 3, 5_000_001).bytes })
      yield* host.answer(painting)
      same(yield* adapter.generate(host.route, request()), painting)
    })

    if (has.revisedPrompt) {
      check("a prompt that the host rewrote is returned", function* (adapter, host) {
        const revisedPrompt = "A crimson bicycle, studio light"
        yield* host.answer(paint({ revisedPrompt }))
        assert.strictEqual((yield* adapter.generate(host.route, request())).revisedPrompt, revisedPrompt)
      })
    }

    if (has.edits) {
      const references = [picture("image/png", 11), picture("image/jpeg", 12), picture("image/webp", 13)]
      for (const count of [1, references.length]) {
        check(`an edit of ${count}, by the route's own model for edits`, function* (adapter, host) {
          const given = references.slice(0, count)
          const painting = paint()
          yield* host.answer(painting)
          const prompt = 'Make it blue,\r\nand "größer"'
          same(yield* adapter.generate(host.route, request({ prompt, references: given })), painting)
          const sent = yield* host.received
          assert.deepStrictEqual([sent.model, sent.prompt], [host.route.editModel, prompt])
          if (sent.references === undefined) return
          const [theirs, ours] = [sent.references, given].map((all) =>
            all.map(({ bytes, type }) => [type, base64(bytes)])
          )
          assert.deepStrictEqual(theirs, ours)
        })
      }

      check("a route without edits takes none, and does not ask its host", function* (adapter, host) {
        const route = { ...host.route, editModel: undefined }
        const failure = yield* Effect.flip(adapter.generate(route, request({ references })))
        assert.deepStrictEqual([failure.class, failure.status], ["retry", undefined])
      })
    }

    for (const place of has.places) {
      if (place === "inside") continue
      check(`a picture behind a URL, ${place}`, function* (adapter, host) {
        const painting = paint({ where: place })
        yield* host.answer(painting)
        same(yield* adapter.generate(host.route, request()), painting)
        if (host.fetched === undefined) return
        const { credential } = yield* host.fetched
        if (place === "own") assert.include(credential, secret)
        else assert.isUndefined(credential, "the credential stays with the route's own origin")
      })
    }

    for (const fault of harness.faults) {
      check(`meets ${fault}`, function* (adapter, host) {
        yield* host.fail(fault)
        const references = fault === "image" ? [picture("image/png", 1)] : []
        const failure = yield* Effect.flip(adapter.generate(host.route, request({ references })))
        assert.strictEqual(failure.class, meaning[fault])
        if (fault === "limit") assert.deepStrictEqual([failure.status, failure.retryAfterSeconds], [429, 7])
        assert.strictEqual(failure.param, fault === "image" ? "image" : undefined)
        if (fault === "server") assert.isAtLeast(failure.status ?? 0, 500)
        if (fault === "missing") assert.strictEqual(failure.status, 404)
        if (fault === "cut answer") assert.strictEqual(failure.status, 200)
        assert.notInclude(failure.detail, secret)
        assert.notStrictEqual(failure.detail, "")
      })
    }

    check("a failure leaves the next request alone", function* (adapter, host) {
      yield* host.fail("server")
      yield* Effect.flip(adapter.generate(host.route, request()))
      const painting = paint()
      yield* host.answer(painting)
      same(yield* adapter.generate(host.route, request()), painting)
    })

    if (has.waiting) {
      const held = (host: Host, painting: Painting) =>
        host.hold?.(painting) ?? Effect.dieMessage("the host cannot wait")

      check("a slow host is waited for", function* (adapter, host) {
        const painting = paint()
        const { release } = yield* held(host, painting)
        const asking = yield* Effect.fork(adapter.generate(host.route, request()))
        yield* host.received
        yield* release
        same(yield* Fiber.join(asking), painting)
      })

      check("interrupting a call cancels it", function* (adapter, host) {
        const { gone } = yield* held(host, paint())
        const asking = yield* Effect.fork(adapter.generate(host.route, request()))
        yield* host.received
        yield* Fiber.interrupt(asking)
        yield* gone
      })
    }
  })
