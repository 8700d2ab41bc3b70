import { Effect, Schema } from "effect"
import { explainReference, referenceProblems } from "../../../src/domain/Media.ts"
import { assertRefused, bearer, call, refusals } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { earlyPolls } from "../../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../../harness/It.ts"

const suite = Served.layer(Effect.succeed({ env: { SANDBOX: "true" }, timings: earlyPolls }))

const Painted = Schema.parseJson(Schema.Struct({ data: Schema.Tuple(Schema.Struct({ url: Schema.String })) }))
const Video = Schema.parseJson(Schema.Struct({ id: Schema.String, status: Schema.String }))

const begin = Effect.gen(function* () {
  const { secret } = yield* Served.customer()
  const headers = { ...bearer(secret), "content-type": "application/json" }
  const send = (path: string, body: unknown) => call(`/v1${path}`, { body, headers })
  const painted = yield* send("/images/generations", { model: "gpt-image-2", prompt: "a boat", response_format: "url" })
  const { data } = yield* Schema.decode(Painted)(painted.text)
  return { send, headers, url: data[0].url }
})

const seen = (url: string, type: string, image: unknown = { url }) => ({
  model: "gemini-3.6-flash",
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "What is it?" },
        { type, image_url: image }
      ]
    }
  ]
})

withLayer(suite)("a picture that the gateway made", (it) => {
  it.effect("is a reference for images, videos and chats, at its own address", function* () {
    const { headers, send, url } = yield* begin
    assert.include(url, "/media/public/")
    for (const path of ["/images/edits", "/images/generations"]) {
      const edited = yield* send(path, { model: "gpt-image-2", prompt: "at night", image: url })
      assert.strictEqual(edited.status, 200, edited.text)
    }
    const created = yield* send("/videos", { model: "hailuo-2.3", prompt: "it sails", input_reference: url })
    assert.strictEqual(created.status, 202, created.text)
    const { id } = yield* Schema.decode(Video)(created.text)
    const poll = Effect.flatMap(call(`/v1/videos/${id}`, { headers }), ({ text }) => Schema.decode(Video)(text))
    const { status } = yield* Effect.repeat(Effect.delay(poll, "100 millis"), {
      times: 200,
      until: (video) => video.status === "completed" || video.status === "failed"
    })
    assert.strictEqual(status, "completed")
    const chat = yield* send("/chat/completions", seen(url, "image_url"))
    assert.strictEqual(chat.status, 200, chat.text)
    const message = {
      model: "claude-opus-5",
      max_tokens: 50,
      messages: [{ role: "user", content: [{ type: "image", source: { type: "url", url } }] }]
    }
    assert.strictEqual((yield* send("/messages", message)).status, 200)
  })

  it.effect("is refused if the gateway does not have it", function* () {
    const { send, url } = yield* begin
    const unknown = url.replace(/public\/.{32}/, `public/${"x".repeat(32)}`)
    const refused = refusals.unusable(explainReference(referenceProblems.stored))
    assertRefused(yield* send("/images/edits", { model: "gpt-image-2", prompt: "at night", image: unknown }), refused)
  })
})
