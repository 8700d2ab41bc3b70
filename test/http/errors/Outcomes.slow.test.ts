import { Effect } from "effect"
import { assertRefused, chat, refusals, talk } from "../../harness/client/HttpCalls.ts"
import { assertLinked, imageOf } from "../../harness/client/MediaClient.ts"
import { draw, gateway as ofImages, usualPrice } from "../../harness/gateway/ImageGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { cut, done, event, json, type Reply, sse, steps } from "../../harness/upstream/FakeUpstream.ts"
import { asked, painted, painting, paints } from "../../harness/upstream/Replies.ts"
import {
  answers,
  completion,
  gateway,
  onFirst,
  onSecond,
  Upstreams,
  usualCharge
} from "../../harness/upstream/Upstreams.ts"
import * as Failures from "./ProviderFailures.ts"

const { error, failing } = Failures
const { allFailed, moderated, rejected, upstream, upstreamAuth } = refusals

const chats = {
  moving: [
    ...Failures.moving,
    ["a spent quota", failing(429, { code: "insufficient_quota" }), upstreamAuth, 429],
    ["no choices", json(200, { ...completion("hush"), choices: [] }), upstream, 200],
    ["an error with its status in a 200", json(200, error({ code: 503 })), upstream, 503]
  ] satisfies ReadonlyArray<Failures.MovingFailure>,
  final: [
    ...Failures.final,
    ["a 400 that names a field", failing(400, { param: "hush" }), rejected],
    ["too long a context", failing(400, { code: "context_length_exceeded" }), rejected],
    ["moderation by another word", failing(400, { code: "content_filter" }), moderated],
    [
      "an image that cannot be read",
      failing(400, { code: "invalid_image_url" }),
      refusals.unusable("The image could not be used by the provider.", "messages")
    ]
  ] satisfies ReadonlyArray<Failures.FinalFailure>
}

/** Failures that only a stream has, all of them before its first delta. */
const ofStreams: ReadonlyArray<Failures.MovingFailure> = [
  ["a stream of nothing", sse(), upstream, 200],
  ["a stream of its end alone", sse(done), upstream, 200],
  ["a stream that begins with an error", sse(event(error()), done), upstream, 200],
  ["a stream of garbage", sse("data: {hush\n\n"), upstream, 200],
  ["a stream cut before its first delta", steps({}, ": hush\n\n", cut), upstream, 200]
]

const linking = (url: string): Reply => json(200, { created: 1, data: [{ url }] })
const drawing = '<svg xmlns="http://www.w3.org/2000/svg"/>'

const images = {
  moving: [
    ...Failures.moving,
    ["a hard limit", failing(400, { code: "billing_hard_limit_reached" }), upstreamAuth, 400],
    ["half a picture's text", steps({ type: "application/json" }, '{"data":[{"b64_json":"iVBO', cut), upstream, 200],
    ["no picture", json(200, { ...painted(), data: [] }), upstream, 200],
    ["a page for a picture", paints(Buffer.from("<html>hush</html>")), upstream, 200],
    ["a drawing in a text", paints(Buffer.from(drawing)), upstream, 200],
    ["garbage for a picture", paints(Buffer.alloc(4_096, 7)), upstream, 200],
    ["half a picture", paints(painting.subarray(0, painting.length - 12)), upstream, 200],
    ["a picture that is no base64", json(200, { data: [{ b64_json: "not base64!" }] }), upstream, 200],
    ["a link into this network", linking("http://169.254.169.254/latest/hush"), upstream, 200],
    ["a link to another port here", linking("http://127.0.0.1:1/hush"), upstream, 200],
    ["an invalid link", linking("file:///etc/passwd"), upstream, 200]
  ] satisfies ReadonlyArray<Failures.MovingFailure>,
  final: [
    ...Failures.final,
    ["a prompt that is too long", failing(400, { param: "prompt", code: "string_above_max_length" }), { ...rejected }],
    ["moderation by another word", failing(400, { code: "moderation_blocked" }), moderated],
    ["moderation of what was drawn", json(200, { data: [], respect_moderation: false }), moderated],
    [
      "a reference that it cannot read",
      failing(400, { code: "invalid_image_file" }),
      refusals.unusable("The image could not be used by the provider.")
    ]
  ] satisfies ReadonlyArray<Failures.FinalFailure>
}

const slug = (what: string) => what.replaceAll(/\W+/g, "-")
const pair = { routes: [onFirst, onSecond] }
const refused = { provider: "refusing", model: "x" }

/** One model a row, so that no row meets a circuit that another opened. */
const modelsFor = (rows: ReadonlyArray<readonly [what: string, ...rest: ReadonlyArray<unknown>]>) => ({
  ...Object.fromEntries(rows.map(([what]) => [`${slug(what)}-alone`, {}])),
  ...Object.fromEntries(rows.map(([what]) => [`${slug(what)}-pair`, pair])),
  refused: { routes: [refused] },
  "refused-pair": { routes: [refused, onSecond] }
})

const chatting = (stream: boolean) => {
  const moving = stream ? [...chats.moving, ...ofStreams] : chats.moving
  return {
    ...chats,
    moving,
    name: stream ? "a streamed chat" : "a chat",
    layer: gateway(modelsFor([...moving, ...chats.final])),
    ask: Failures.asking(chat),
    body: (model: string) => ({ ...talk(model), stream }),
    reply: answers(),
    charge: usualCharge,
    served: (answer: Parameters<typeof Failures.assertChatServed>[0], model: string) =>
      Effect.sync(() => Failures.assertChatServed(answer, model))
  }
}

const surfaces = [
  chatting(false),
  chatting(true),
  {
    ...images,
    name: "an image",
    layer: ofImages(modelsFor([...images.moving, ...images.final])),
    ask: Failures.asking(draw),
    body: (model: string) => asked(model),
    reply: paints(),
    charge: usualPrice,
    served: (answer: Parameters<typeof imageOf>[0]) => assertLinked(imageOf(answer).url ?? "", painting)
  }
]

for (const { ask, body, charge, final, layer, moving, name, reply, served } of surfaces) {
  withLayer(layer)(`the outcome of ${name}`, (it) => {
    it.effect.each(moving)("is an error after %s of the only route", function* ([what, failure, alone]) {
      const { answer, asked, spent } = yield* ask(body(`${slug(what)}-alone`), { first: failure })
      assertRefused(answer, alone)
      assert.deepStrictEqual({ asked, spent }, { asked: [1, 0], spent: 0n })
    })

    it.effect.each(moving)(
      "is that of the next route after %s, and an error after the last one's",
      function* ([what, failure, , status]) {
        const model = `${slug(what)}-pair`
        const moved = yield* ask(body(model), { first: failure, second: reply })
        yield* served(moved.answer, model)
        assert.deepStrictEqual([moved.asked, moved.spent], [[1, 1], charge])

        // The first may be closed by now: the provider's account was at fault.
        const { first } = yield* Upstreams
        const open = first.calls.length
        const failed = yield* ask(body(model), { second: failure })
        assertRefused(failed.answer, allFailed("second", status))
        assert.deepStrictEqual([failed.asked[1], failed.spent], [1, 0n])
        assert.isAtMost(first.calls.length - open, 1)
      }
    )

    it.effect.each(final)("is an error without failover after %s", function* ([what, failure, refusal]) {
      for (const kind of ["alone", "pair"]) {
        const { answer, asked, spent } = yield* ask(body(`${slug(what)}-${kind}`), { first: failure })
        assertRefused(answer, refusal)
        assert.deepStrictEqual({ asked, spent }, { asked: [1, 0], spent: 0n })
      }
    })

    it.effect("is that of the next route after a refused connection", function* () {
      const alone = yield* ask(body("refused"))
      assertRefused(alone.answer, allFailed("refusing", "network"))
      const moved = yield* ask(body("refused-pair"), { second: reply })
      yield* served(moved.answer, "refused-pair")
      const both = yield* ask(body("refused-pair"), { second: failing(500) })
      assertRefused(both.answer, allFailed("second", 500))
      assert.deepStrictEqual([alone.spent, moved.spent, both.spent], [0n, charge, 0n])
    })
  })
}
