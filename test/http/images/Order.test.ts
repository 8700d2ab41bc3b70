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
import { edits, generations, ImageServer, layer, post } from "../../harness/gateway/ImageServer.ts"
import { mediaBodyBytes } from "../../harness/gateway/MockedServer.ts"

const asked = { model: "draw", prompt: "a cat" }
const image = "https://a.test/a.png"
const paths = [generations, edits]

const noModel = (id: string): Refusal => ({
  ...refusals.noModel(id),
  message: `The model \`${id}\` does not exist or is not an image model.`
})
const scope: Refusal = { ...refusals.scope, message: "API key lacks scope: images" }
const modelRequired = badRequest("`model` is required.", "model")
const promptRequired = badRequest("`prompt` is required.", "prompt")
const imageRequired = badRequest("`image` is required.", "image")
const n = badRequest("`n` must be 1.", "n")
const noForm = badRequest("The body must be JSON, sent as `Content-Type: application/json`, not a form.")
const compressed = badRequest("A compressed body is not accepted.")
const noEditing = badRequest("Image editing is not available for `plain`.", "image")

const headed = (name: string, value: string): Sent => ({ headers: { [name]: value } })
const form = (...parts: ReadonlyArray<Buffer>) => formOf([...parts, filePart("image", gifBytes)])
const asForm = headed("content-type", formType())
const urlencoded = headed("content-type", "application/x-www-form-urlencoded")

/** Each is wrong in two ways at least; the earlier one is what the client hears of. */
const rows: ReadonlyArray<readonly [what: string, path: string, body: unknown, refusal: Refusal, sent?: Sent]> = [
  ["JSON before the model", generations, "{", badRequest("The body is not valid JSON.")],
  ["an object before the model", edits, "[]", badRequest("The body must be a JSON object.")],
  [
    "a form that is none before the model",
    edits,
    "{}",
    badRequest("The form does not have its own boundary in it."),
    asForm
  ],
  ["the kind of body before the body", generations, form(), noForm, asForm],
  ["the kind of body before the body", edits, "{", noForm, urlencoded],
  ["the encoding before the body", generations, "{", compressed, headed("content-encoding", "gzip")],
  [
    "the encoding before the form",
    edits,
    "{",
    compressed,
    { headers: { ...asForm.headers, "content-encoding": "br" } }
  ],
  ["the model before the prompt", generations, {}, modelRequired],
  ["the model before the prompt", edits, {}, modelRequired],
  ["the model before the prompt", edits, form(), modelRequired, asForm],
  ["the prompt before the image", edits, { model: "nobody" }, promptRequired],
  ["the prompt before an unknown model", generations, { model: "nobody", n: 2 }, promptRequired],
  ["the image before a field", edits, { ...asked, n: 2 }, imageRequired],
  ["the image before an unknown model", edits, { ...asked, model: "nobody", image: [] }, imageRequired],
  ["a field before an unknown model", generations, { ...asked, model: "nobody", n: 2 }, n],
  ["a field before the model's rules", generations, { ...asked, model: "plain", image, n: 2 }, n],
  [
    "an unknown model before its rules",
    edits,
    { ...asked, model: "nobody", image, resolution: "4K" },
    noModel("nobody")
  ],
  [
    "an unknown model before a resolution that none has",
    generations,
    { ...asked, model: "nobody", resolution: "8K" },
    noModel("nobody")
  ],
  ["a chat model", generations, { ...asked, model: "talk", image }, noModel("talk")],
  ["a video model", edits, { ...asked, model: "film", image }, noModel("film")],
  ["a chat model in a form", edits, form(textPart("model", "talk"), textPart("prompt", "p")), noModel("talk"), asForm],
  ["editing before the resolution", generations, { ...asked, model: "plain", image, resolution: "4K" }, noEditing],
  ["editing", edits, { ...asked, model: "plain", image }, noEditing],
  [
    "the resolution",
    generations,
    { ...asked, resolution: "2k" },
    badRequest("Resolution 2k is not available for `draw`.", "resolution")
  ],
  [
    "a resolution that no model has",
    generations,
    { ...asked, resolution: "8K" },
    badRequest("Resolution 8k is not available for `draw`.", "resolution")
  ],
  ["a resolution by quality", edits, { ...asked, model: "plain", image: [], quality: "hd" }, imageRequired],
  [
    "a resolution by quality of a model without",
    generations,
    { ...asked, model: "plain", quality: "hd" },
    badRequest("Resolution 4k is not available for `plain`.", "resolution")
  ]
]

withLayer(layer, { excludeTestServices: true })("the order of a request for an image", (it) => {
  it.effect.each(rows)("%s", ([, path, body, refusal, sent]) =>
    Effect.gen(function* () {
      const { jobs } = yield* ImageServer
      const before = jobs.length
      // Neither an idempotency key that is none nor an account that cannot pay has been looked at by then.
      const account = yield* openAccount({ nanoUsd: 0n, rpm: 9, cap: { amount: 0n, period: "day" } })
      const answer = yield* post(account, path, body, {
        ...sent,
        headers: { "idempotency-key": "", ...sent?.headers }
      })
      assertRefused(answer, refusal)
      assert.deepStrictEqual(rateOf(answer), { limit: 9, remaining: 8 })
      assert.lengthOf(jobs, before)
    })
  )

  it.effect.each(paths)("%s: another method comes before the key", (path) =>
    Effect.gen(function* () {
      const { url } = yield* ImageServer
      const { secret } = yield* openAccount({})
      for (const method of ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
        for (const headers of [{}, { authorization: `Bearer ${secret}` }]) {
          const answer = yield* callAt(`${url}${path}`, { method, headers })
          assertRefused(answer, refusals.noEndpoint)
          assert.isUndefined(rateOf(answer))
        }
      }
      assertRefused(yield* post({ secret }, `${path}/x`, asked), refusals.noEndpoint)
    })
  )

  it.effect.each(paths)("%s: the key comes before its rate, the rate before the scope", (path) =>
    Effect.gen(function* () {
      const { url } = yield* ImageServer
      for (const [headers, refusal] of [
        [{}, refusals.missingKey],
        [{ authorization: "Bearer ggw_nobody" }, refusals.invalidKey]
      ] as const) {
        const answer = yield* callAt(`${url}${path}`, { headers, body: "{" })
        assertRefused(answer, refusal)
        assert.isUndefined(rateOf(answer))
      }
      const account = yield* openAccount({ rpm: 1, scopes: ["chat", "videos"] })
      const first = yield* post(account, path, asked)
      assertRefused(first, scope)
      assert.deepStrictEqual(rateOf(first), { limit: 1, remaining: 0 })
      const second = yield* post(account, path, asked)
      assertRefused(second, refusals.limited)
      assert.deepStrictEqual(rateOf(second), { limit: 1, remaining: 0 })
    })
  )

  it.effect.each(paths)("%s: the scope comes before the body, the body's size before its content", (path) =>
    Effect.gen(function* () {
      const large = " ".repeat(mediaBodyBytes + 1)
      assertRefused(yield* post(yield* openAccount({ scopes: ["chat"] }), path, large), scope)
      const account = yield* openAccount({ rpm: 9, scopes: ["images"] })
      const answer = yield* post(account, path, large)
      assertRefused(answer, refusals.tooLarge(mediaBodyBytes))
      assert.deepStrictEqual(rateOf(answer), { limit: 9, remaining: 8 })
    })
  )

  it.effect("a form has the same size at most", () =>
    Effect.gen(function* () {
      const account = yield* openAccount({})
      const parts = [textPart("model", "draw"), textPart("prompt", "p")]
      const bare = formOf([...parts, filePart("image", "")])
      const sized = (bytes: number) => formOf([...parts, filePart("image", new Uint8Array(bytes))])
      const most = mediaBodyBytes - bare.length
      assert.strictEqual((yield* post(account, edits, sized(most), asForm)).status, 200)
      assertRefused(yield* post(account, edits, sized(most + 1), asForm), refusals.tooLarge(mediaBodyBytes))
    })
  )

  it.effect("JSON is taken under any type that is no form's", () =>
    Effect.gen(function* () {
      const account = yield* openAccount({ scopes: ["images"] })
      const body = JSON.stringify({ ...asked, image: gif })
      for (const path of paths) {
        for (const type of ["text/plain", "application/octet-stream", "multipart/mixed; boundary=x"]) {
          const { status, text } = yield* post(account, path, body, headed("content-type", type))
          assert.strictEqual(status, 200, text)
        }
      }
    })
  )
})
