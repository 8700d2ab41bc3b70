import { Effect } from "effect"
import { openAccount } from "../../harness/client/Account.ts"
import {
  assertRefused,
  badRequest,
  bearer,
  callAt,
  type Refusal,
  rateOf,
  refusals,
  type Sent
} from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { filePart, formOf, formType, textPart } from "../body/Forms.ts"
import { gif, gifBytes } from "../images/ImageBodies.ts"
import { edits, generations, get, layer, MediaServer, mediaBodyBytes, post, videos } from "../MediaServer.ts"

const image = "https://a.test/a.png"
const drawing = { model: "draw", prompt: "a cat" }
const film = { model: "film", prompt: "a cat runs" }
const ofImages = { scope: "images", others: ["chat", "videos"], body: drawing, file: "image", status: 200 } as const
const ofVideos = {
  scope: "videos",
  others: ["chat", "images"],
  body: film,
  file: "input_reference",
  status: 202
} as const
const endpoints = [
  { path: generations, ...ofImages },
  { path: edits, ...ofImages, body: { ...drawing, image: gif } },
  { path: videos, ...ofVideos }
]
const takingForms = endpoints.slice(1)

const elsewhere: Readonly<Record<string, string>> = {
  talk: "`talk` is a chat model: use /v1/chat/completions.",
  film: "`film` is a video model: use /v1/videos.",
  draw: "`draw` is an image model: use /v1/images/generations."
}
const noImageModel = (id: string) => refusals.noModel(id, "an image", elsewhere[id])
const noVideoModel = (id: string) => refusals.noModel(id, "a video", elsewhere[id])
const modelRequired = badRequest("`model` is required.", "model")
const promptRequired = badRequest("`prompt` is required.", "prompt")
const imageRequired = badRequest("`image` is required.", "image")
const n = badRequest("`n` must be 1.", "n")
const oneImage = badRequest("`n` must be 1: send one request per image.", "n")
const noForm = badRequest("Send the body as JSON with `Content-Type: application/json`, not as a form.")
const compressed = badRequest("Send the body without compression.")
const noEditing = badRequest("Image editing is not available for `plain`.", "image")
const seconds = badRequest("`seconds` must be an integer.", "seconds")
const frameRequired = badRequest("Text-to-video is not available for `framed` - a reference image is required.")
const noFrame = badRequest("Image-to-video is not available for `bare`.", "image")
const noResolution = (name: string, model: string) =>
  badRequest(`Resolution ${name} is not available for \`${model}\`.`, "resolution")

const headed = (name: string, value: string): Sent => ({ headers: { [name]: value } })
const asForm = headed("content-type", formType())
const urlencoded = headed("content-type", "application/x-www-form-urlencoded")
const form = (file: string, model?: string) =>
  formOf([
    ...(model === undefined ? [] : [textPart("model", model), textPart("prompt", "p")]),
    filePart(file, gifBytes)
  ])

/** Each is wrong in two ways at least; the earlier one is what the client hears of. */
const rows: ReadonlyArray<readonly [what: string, path: string, body: unknown, refusal: Refusal, sent?: Sent]> = [
  ...endpoints.flatMap(({ path }): typeof rows => [
    ["JSON before the model", path, "{", badRequest("The body is not valid JSON.")],
    ["an object before the model", path, "[]", badRequest("The body must be a JSON object.")],
    ["the kind of body before the body", path, "{", noForm, urlencoded],
    ["the encoding before the body", path, "{", compressed, headed("content-encoding", "gzip")],
    ["the model before the prompt", path, {}, modelRequired],
    ["the prompt before an unknown model", path, { model: "nobody", n: 2, image: 5 }, promptRequired]
  ]),
  ...takingForms.flatMap(({ file, path }): typeof rows => [
    ["a malformed form before the model", path, "{}", badRequest("The form does not contain its boundary."), asForm],
    [
      "the encoding before the form",
      path,
      "{",
      compressed,
      { headers: { ...asForm.headers, "content-encoding": "br" } }
    ],
    ["the model before the prompt of a form", path, form(file), modelRequired, asForm]
  ]),
  ["the kind of body before a form", generations, form("image"), noForm, asForm],
  ["the prompt before the image", edits, { model: "nobody" }, promptRequired],
  ["the image before a field", edits, { ...drawing, n: 2 }, imageRequired],
  ["the image before an unknown model", edits, { ...drawing, model: "nobody", image: [] }, imageRequired],
  ["a field before an unknown model", generations, { ...drawing, model: "nobody", n: 2 }, oneImage],
  ["a field before the model's rules", generations, { ...drawing, model: "plain", image, n: 2 }, oneImage],
  [
    "an unknown model before its rules",
    edits,
    { ...drawing, model: "nobody", image, resolution: "4K" },
    noImageModel("nobody")
  ],
  [
    "an unknown model before a resolution that none has",
    generations,
    { ...drawing, model: "nobody", resolution: "8K" },
    noImageModel("nobody")
  ],
  ["a chat model", generations, { ...drawing, model: "talk", image }, noImageModel("talk")],
  ["a video model", edits, { ...drawing, model: "film", image }, noImageModel("film")],
  ["a chat model in a form", edits, form("image", "talk"), noImageModel("talk"), asForm],
  ["editing before the resolution", generations, { ...drawing, model: "plain", image, resolution: "4K" }, noEditing],
  ["editing", edits, { ...drawing, model: "plain", image }, noEditing],
  ["the resolution", generations, { ...drawing, resolution: "2k" }, noResolution("2k", "draw")],
  ["a resolution that no model has", generations, { ...drawing, resolution: "8K" }, noResolution("8k", "draw")],
  ["a resolution by quality", edits, { ...drawing, model: "plain", image: [], quality: "hd" }, imageRequired],
  [
    "a resolution by quality of a model without",
    generations,
    { ...drawing, model: "plain", quality: "hd" },
    noResolution("4k", "plain")
  ],
  [
    "the reference before the seconds",
    videos,
    { ...film, input_reference: "", seconds: "8s" },
    refusals.unusable("The image is empty or not valid base64.")
  ],
  ["the seconds before another field", videos, { ...film, seconds: "8s", n: 2 }, seconds],
  ["the seconds before an unknown model", videos, { ...film, model: "nobody", seconds: 1.5 }, seconds],
  ["a field before an unknown model", videos, { ...film, model: "nobody", n: 2 }, n],
  ["a field before the model's rules", videos, { ...film, model: "framed", n: 2 }, n],
  ["an unknown model before what it can do", videos, { ...film, model: "nobody", image }, noVideoModel("nobody")],
  ["a chat model", videos, { ...film, model: "talk", image }, noVideoModel("talk")],
  ["an image model", videos, { ...film, model: "draw" }, noVideoModel("draw")],
  ["a chat model in a form", videos, form("input_reference", "talk"), noVideoModel("talk"), asForm],
  ["a model that needs a frame", videos, { ...film, model: "framed" }, frameRequired],
  [
    "a model that needs a frame, given none",
    videos,
    { ...film, model: "framed", image: [], seconds: 99 },
    frameRequired
  ],
  ["a model that takes none", videos, { ...film, model: "bare", image }, noFrame],
  ["a model that takes none, by the alias", videos, { ...film, model: "bare", input_reference: gif }, noFrame],
  ["a model that takes none, in a form", videos, form("input_reference", "bare"), noFrame, asForm]
]

const jobs = Effect.map(MediaServer, (media) => media.images.jobs.length + media.videos.jobs.length)

withLayer(layer)("the order of a request for an image or a video", (it) => {
  it.effect.each(rows)("checks %s at %s", function* ([, path, body, refusal, sent]) {
    const before = yield* jobs
    // Neither an idempotency key that is none nor an account that cannot pay has been looked at by then.
    const account = yield* openAccount({ nanoUsd: 0n, rpm: 9, cap: { amount: 0n, period: "day" } })
    const headers = { "idempotency-key": "", ...sent?.headers }
    const answer = yield* post(account, path, body, { headers })
    assertRefused(answer, refusal)
    assert.deepStrictEqual(rateOf(answer), { limit: 9, remaining: 8 })
    assert.strictEqual(yield* jobs, before)
  })

  it.effect.each(endpoints)("refuses a model that the key may not use between the two, at $path", function* (endpoint) {
    const { body, path, status } = endpoint
    const before = yield* jobs
    const poor = yield* openAccount({ nanoUsd: 0n, models: ["talk", "drawing"] })
    const headers = { "idempotency-key": "" }
    const refusal = refusals.notAllowed(body.model)
    assertRefused(yield* post(poor, path, body, { headers }), refusal)
    assertRefused(yield* post(poor, path, { ...body, resolution: "8K", image: gif }, { headers }), refusal)
    const unknown = path === videos ? noVideoModel("nobody") : noImageModel("nobody")
    assertRefused(yield* post(poor, path, { ...body, model: "nobody" }, { headers }), unknown)
    assert.strictEqual(yield* jobs, before)
    const answer = yield* post(yield* openAccount({ models: [`${body.model.slice(0, 2)}*`] }), path, body)
    assert.strictEqual(answer.status, status, answer.text)
  })

  const methods = ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"]
  const taken: Readonly<Record<string, string>> = {
    [generations]: "POST",
    [edits]: "POST",
    [videos]: "GET and POST",
    [`${videos}/{id}`]: "GET and DELETE",
    [`${videos}/{id}/content`]: "GET"
  }
  const refusalAt = (path: string) => {
    const shown = path.replace("ID", "{id}")
    return taken[shown] === undefined ? refusals.noEndpoint : refusals.wrongMethod(shown, taken[shown])
  }
  it.effect.each<readonly [path: string, methods: ReadonlyArray<string>]>([
    ...[generations, edits].flatMap((path) => [[path, methods] as const, [`${path}/x`, ["POST"]] as const]),
    [videos, methods.slice(1)],
    [`${videos}/ID`, ["POST", "PUT", "PATCH", "OPTIONS"]],
    [`${videos}/ID/content`, ["POST", ...methods.slice(1)]],
    [`${videos}/ID/remix`, ["POST", "GET"]]
  ])("checks the method before the key at %s", function* ([path, wrong]) {
    const media = yield* MediaServer
    const { org, secret } = yield* openAccount({})
    const address = `${media.url}${path.replace("ID", media.videos.put(org).id)}`
    for (const method of wrong) {
      for (const headers of [{}, bearer(secret)]) {
        const answer = yield* callAt(address, { method, headers })
        assertRefused(answer, refusalAt(path))
        assert.isUndefined(rateOf(answer))
      }
    }
  })

  it.effect.each(endpoints)("checks the key before the rate and that before the scope at $path", function* (endpoint) {
    const { body, others, path, scope } = endpoint
    const { url } = yield* MediaServer
    const before = yield* jobs
    for (const [headers, refusal] of [
      [{}, refusals.missingKey],
      [bearer("ggw_nobody"), refusals.invalidKey]
    ] as const) {
      const answer = yield* callAt(`${url}${path}`, { headers, body: "{" })
      assertRefused(answer, refusal)
      assert.isUndefined(rateOf(answer))
    }
    const account = yield* openAccount({ rpm: 1, scopes: others })
    for (const refusal of [refusals.scopeOf(scope), refusals.limited]) {
      const answer = yield* post(account, path, body)
      assertRefused(answer, refusal)
      assert.deepStrictEqual(rateOf(answer), { limit: 1, remaining: 0 })
    }
    assert.strictEqual(yield* jobs, before)
  })

  it.effect.each(endpoints)("checks scope before body, and size before content, at $path", function* (endpoint) {
    const { others, path, scope } = endpoint
    const large = " ".repeat(mediaBodyBytes + 1)
    for (const [scopes, refusal] of [
      [others, refusals.scopeOf(scope)],
      [[scope], refusals.tooLarge(mediaBodyBytes)]
    ] as const) {
      const answer = yield* post(yield* openAccount({ rpm: 9, scopes }), path, large)
      assertRefused(answer, refusal)
      assert.deepStrictEqual(rateOf(answer), { limit: 9, remaining: 8 })
    }
  })

  it.effect.each(takingForms)("limits the size of a form alike at $path", function* ({ body, file, path, status }) {
    const account = yield* openAccount({})
    const sized = (bytes: number) =>
      formOf([textPart("model", body.model), textPart("prompt", "p"), filePart(file, new Uint8Array(bytes))])
    const most = mediaBodyBytes - sized(0).length
    assert.strictEqual((yield* post(account, path, sized(most), asForm)).status, status)
    assertRefused(yield* post(account, path, sized(most + 1), asForm), refusals.tooLarge(mediaBodyBytes))
  })

  it.effect.each(endpoints)("accepts JSON under any type except a form's at $path", function* (endpoint) {
    const { body, path, scope, status } = endpoint
    const account = yield* openAccount({ scopes: [scope] })
    for (const type of ["text/plain", "application/octet-stream", "multipart/mixed; boundary=x"]) {
      const answer = yield* post(account, path, JSON.stringify(body), headed("content-type", type))
      assert.strictEqual(answer.status, status, answer.text)
    }
  })

  it.effect("takes a rate unit for a creation and none for reading videos", function* () {
    const { url } = yield* MediaServer
    const account = yield* openAccount({ rpm: 2 })
    const created = yield* post(account, videos, film)
    assert.strictEqual(created.status, 202, created.text)
    assert.deepStrictEqual(rateOf(created), { limit: 2, remaining: 1 })
    const { id } = JSON.parse(created.text)
    const reads = Effect.forEach(["", `/${id}`, "/vid_none", `/${id}/content`], (below) =>
      Effect.map(get(account, below), (answer) => assert.isUndefined(rateOf(answer), below))
    )
    yield* reads
    const chat = yield* callAt(`${url}/v1/chat/completions`, { headers: bearer(account.secret), body: "{" })
    assert.deepStrictEqual(rateOf(chat), { limit: 2, remaining: 0 })
    assertRefused(yield* post(account, videos, film), refusals.limited)
    yield* reads
  })
})
