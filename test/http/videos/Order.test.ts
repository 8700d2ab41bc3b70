import { assert, layer as withLayer } from "@effect/vitest"
import { Effect } from "effect"
import { openAccount } from "../../harness/client/Account.ts"
import { filePart, formOf, formType, textPart } from "../../harness/client/Forms.ts"
import {
  assertRefused,
  badRequest,
  callAt,
  type Refusal,
  rateOf,
  refusals,
  type Sent
} from "../../harness/client/HttpCalls.ts"
import { gif, gifBytes } from "../../harness/fixtures/ImageBodies.ts"
import { mediaBodyBytes } from "../../harness/gateway/MockedServer.ts"
import { get, layer, path, post, VideoServer } from "../../harness/gateway/VideoServer.ts"

const asked = { model: "film", prompt: "a cat runs" }
const image = "https://a.test/a.png"

const noModel = (id: string): Refusal => ({
  ...refusals.noModel(id),
  message: `The model \`${id}\` does not exist or is not a video model.`
})
const scope: Refusal = { ...refusals.scope, message: "API key lacks scope: videos" }
const modelRequired = badRequest("`model` is required.", "model")
const promptRequired = badRequest("`prompt` is required.", "prompt")
const compressed = badRequest("A compressed body is not accepted.")
const unusable = badRequest("Failed to process the reference image.", "image")
const seconds = badRequest("`seconds` must be an integer.", "seconds")
const n = badRequest("`n` must be 1.", "n")
const frameRequired = badRequest("Text-to-video is not available for `framed` - a reference image is required.")
const noFrame = badRequest("Image-to-video is not available for `bare`.", "image")

const headed = (name: string, value: string): Sent => ({ headers: { [name]: value } })
const form = (...parts: ReadonlyArray<Buffer>) => formOf([...parts, filePart("input_reference", gifBytes)])
const asForm = headed("content-type", formType())
const urlencoded = headed("content-type", "application/x-www-form-urlencoded")

/** Each is wrong in two ways at least; the earlier one is what the client hears of. */
const rows: ReadonlyArray<readonly [what: string, body: unknown, refusal: Refusal, sent?: Sent]> = [
  ["JSON before the model", "{", badRequest("The body is not valid JSON.")],
  ["an object before the model", "[]", badRequest("The body must be a JSON object.")],
  ["a form that is none before the model", "{}", badRequest("The form does not have its own boundary in it."), asForm],
  [
    "the kind of body before the body",
    "{",
    badRequest("The body must be JSON, sent as `Content-Type: application/json`, not a form."),
    urlencoded
  ],
  ["the encoding before the body", "{", compressed, headed("content-encoding", "gzip")],
  ["the encoding before the form", "{", compressed, { headers: { ...asForm.headers, "content-encoding": "br" } }],
  ["the model before the prompt", {}, modelRequired],
  ["the model before the prompt of a form", form(), modelRequired, asForm],
  ["the prompt before an unknown model", { model: "nobody", image: 5 }, promptRequired],
  ["the reference before the seconds", { ...asked, input_reference: "", seconds: "8s" }, unusable],
  ["the seconds before another field", { ...asked, seconds: "8s", n: 2 }, seconds],
  ["the seconds before an unknown model", { ...asked, model: "nobody", seconds: 1.5 }, seconds],
  ["a field before an unknown model", { ...asked, model: "nobody", n: 2 }, n],
  ["a field before the model's rules", { ...asked, model: "framed", n: 2 }, n],
  ["an unknown model before what it can do", { ...asked, model: "nobody", image }, noModel("nobody")],
  ["a chat model", { ...asked, model: "talk", image }, noModel("talk")],
  ["an image model", { ...asked, model: "draw" }, noModel("draw")],
  ["a chat model in a form", form(textPart("model", "talk"), textPart("prompt", "p")), noModel("talk"), asForm],
  ["a model that needs a frame", { ...asked, model: "framed" }, frameRequired],
  ["a model that needs a frame, given none", { ...asked, model: "framed", image: [], seconds: 99 }, frameRequired],
  ["a model that takes none", { ...asked, model: "bare", image }, noFrame],
  ["a model that takes none, by the alias", { ...asked, model: "bare", input_reference: gif }, noFrame],
  ["a model that takes none, in a form", form(textPart("model", "bare"), textPart("prompt", "p")), noFrame, asForm]
]

withLayer(layer, { excludeTestServices: true })("the order of a request for a video", (it) => {
  it.effect.each(rows)("%s", ([, body, refusal, sent]) =>
    Effect.gen(function* () {
      const { videos } = yield* VideoServer
      const before = videos.jobs.length
      // Neither an idempotency key that is none nor an account that cannot pay has been looked at by then.
      const account = yield* openAccount({ nanoUsd: 0n, rpm: 9, cap: { amount: 0n, period: "day" } })
      const answer = yield* post(account, body, { ...sent, headers: { "idempotency-key": "", ...sent?.headers } })
      assertRefused(answer, refusal)
      assert.deepStrictEqual(rateOf(answer), { limit: 9, remaining: 8 })
      assert.lengthOf(videos.jobs, before)
    })
  )

  it.effect("another method or path comes before the key", () =>
    Effect.gen(function* () {
      const { url, videos } = yield* VideoServer
      const { org, secret } = yield* openAccount({})
      const { id } = videos.put(org)
      const others = [
        ["", ["PUT", "DELETE", "PATCH", "OPTIONS"]],
        [`/${id}`, ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]],
        [`/${id}/content`, ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"]],
        [`/${id}/remix`, ["POST", "GET"]]
      ] as const
      for (const [below, methods] of others) {
        for (const method of methods) {
          for (const headers of [{}, { authorization: `Bearer ${secret}` }]) {
            const answer = yield* callAt(`${url}${path}${below}`, { method, headers })
            assertRefused(answer, refusals.noEndpoint)
            assert.isUndefined(rateOf(answer))
          }
        }
      }
    })
  )

  it.effect("the key comes before its rate, the rate before the scope", () =>
    Effect.gen(function* () {
      const { url, videos } = yield* VideoServer
      for (const [headers, refusal] of [
        [{}, refusals.missingKey],
        [{ authorization: "Bearer ggw_nobody" }, refusals.invalidKey]
      ] as const) {
        const answer = yield* callAt(`${url}${path}`, { headers, body: "{" })
        assertRefused(answer, refusal)
        assert.isUndefined(rateOf(answer))
      }
      const before = videos.jobs.length
      const account = yield* openAccount({ rpm: 1, scopes: ["chat", "images"] })
      const first = yield* post(account, asked)
      assertRefused(first, scope)
      assert.deepStrictEqual(rateOf(first), { limit: 1, remaining: 0 })
      const second = yield* post(account, asked)
      assertRefused(second, refusals.limited)
      assert.deepStrictEqual(rateOf(second), { limit: 1, remaining: 0 })
      assert.lengthOf(videos.jobs, before)
    })
  )

  it.effect("a creation takes a unit of the rate, and reading videos neither takes nor shows one", () =>
    Effect.gen(function* () {
      const { url } = yield* VideoServer
      const account = yield* openAccount({ rpm: 2 })
      const created = yield* post(account, asked)
      assert.strictEqual(created.status, 202, created.text)
      assert.deepStrictEqual(rateOf(created), { limit: 2, remaining: 1 })
      const { id } = JSON.parse(created.text)
      const reads = Effect.forEach(["", `/${id}`, "/vid_none", `/${id}/content`], (below) =>
        Effect.map(get(account, below), (answer) => assert.isUndefined(rateOf(answer), below))
      )
      yield* reads
      const headers = { authorization: `Bearer ${account.secret}` }
      const chat = yield* callAt(`${url}/v1/chat/completions`, { headers, body: "{" })
      assert.deepStrictEqual(rateOf(chat), { limit: 2, remaining: 0 })
      assertRefused(yield* post(account, asked), refusals.limited)
      yield* reads
    })
  )

  it.effect("the scope comes before the body, the body's size before its content", () =>
    Effect.gen(function* () {
      const large = " ".repeat(mediaBodyBytes + 1)
      const unscoped = yield* post(yield* openAccount({ rpm: 9, scopes: ["chat", "images"] }), large)
      assertRefused(unscoped, scope)
      const account = yield* openAccount({ rpm: 9, scopes: ["videos"] })
      const answer = yield* post(account, large)
      assertRefused(answer, refusals.tooLarge(mediaBodyBytes))
      for (const { headers } of [unscoped, answer])
        assert.deepStrictEqual(rateOf({ headers }), { limit: 9, remaining: 8 })
    })
  )

  it.effect("a form has the same size at most", () =>
    Effect.gen(function* () {
      const account = yield* openAccount({})
      const parts = [textPart("model", "film"), textPart("prompt", "p")]
      const bare = formOf([...parts, filePart("input_reference", "")])
      const sized = (bytes: number) => formOf([...parts, filePart("input_reference", new Uint8Array(bytes))])
      const most = mediaBodyBytes - bare.length
      assert.strictEqual((yield* post(account, sized(most), asForm)).status, 202)
      assertRefused(yield* post(account, sized(most + 1), asForm), refusals.tooLarge(mediaBodyBytes))
    })
  )

  it.effect("JSON is taken under any type that is no form's", () =>
    Effect.gen(function* () {
      const account = yield* openAccount({ scopes: ["videos"] })
      for (const type of ["text/plain", "application/octet-stream", "multipart/mixed; boundary=x"]) {
        const { status, text } = yield* post(account, JSON.stringify(asked), headed("content-type", type))
        assert.strictEqual(status, 202, text)
      }
    })
  )
})
