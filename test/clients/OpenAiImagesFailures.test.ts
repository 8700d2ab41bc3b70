import { Effect } from "effect"
import OpenAI, { toFile } from "openai"
import { badRequest, refusals } from "../harness/client/HttpCalls.ts"
import { assertClientError, calling, type Told, thrownBy } from "../harness/client/OfficialClients.ts"
import { gateway, usualPrice } from "../harness/gateway/ImageGateway.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { json, type Reply, silent, text } from "../harness/upstream/FakeUpstream.ts"
import { edits, generations, painting, paints } from "../harness/upstream/Replies.ts"
import { hidden, onFirst, onSecond, Upstreams } from "../harness/upstream/Upstreams.ts"
import { refusedAs } from "./Refusal.ts"

const served = gateway(
  {
    art: {},
    plain: { edit: false },
    pair: { routes: [onFirst, onSecond] },
    limited: {},
    locked: {},
    mute: {},
    gone: { routes: [{ ...onFirst, provider: "refusing" }] }
  },
  { REQUEST_TIMEOUT: "5", MAX_BODY_BYTES: "65536", LOG_LEVEL: "none" }
)

const asked = { model: "art", prompt: "a cat" }
const image = painting.toString("base64")
const path = { generations: generations.replace("/v1", ""), edits: edits.replace("/v1", "") }
const their = (code: string) => ({
  error: { message: `hush ${hidden.firstKey}`, type: "hush_error", param: null, code }
})
type Account = Parameters<typeof Served.customer>[0]

const refusedCases: ReadonlyArray<
  readonly [what: string, body: object, told: Told, replies?: ReadonlyArray<Reply>, account?: Account]
> = [
  ["no model", { prompt: "x" }, badRequest("`model` is required.", "model")],
  ["no prompt", { model: "art" }, badRequest("`prompt` is required.", "prompt")],
  ["two images", { ...asked, n: 2 }, badRequest("`n` must be 1: send one request per image.", "n")],
  [
    "a resolution that the model has not",
    { ...asked, resolution: "4K" },
    badRequest("Resolution 4k is not available for `art`.", "resolution")
  ],
  [
    "an edit by a model that cannot",
    { ...asked, model: "plain", image: [image] },
    badRequest("Image editing is not available for `plain`.", "image")
  ],
  [
    "an invalid reference",
    { ...asked, image: [Buffer.from("<html>").toString("base64")] },
    refusals.unusable("The image is not a complete PNG, JPEG, WebP or GIF.")
  ],
  ["moderation", asked, refusals.moderated, [json(400, their("moderation_blocked"))]],
  ["a rejection", asked, refusals.rejected, [json(422, their("hush"))]],
  ["no credits", asked, refusals.shortOf(usualPrice, usualPrice - 1n), [], { nanoUsd: usualPrice - 1n }],
  ["a cap", asked, refusals.capped("month"), [], { cap: { amount: 0n, period: "month" } }],
  ["no scope", asked, refusals.scopeOf("images"), [], { scopes: ["chat", "videos"] }],
  ["an unknown model", { ...asked, model: "nobody" }, refusals.noModel("nobody", "an image")],
  ["too large a body", { ...asked, prompt: "x".repeat(65_536) }, refusals.tooLarge(65_536)],
  ["an error of the only provider", asked, refusals.upstream, [json(500, their("server_error"))]],
  ["a page for a picture", asked, refusals.upstream, [paints(Buffer.from("<html>"))]],
  [
    "a provider that knows us not",
    { ...asked, model: "locked" },
    refusals.upstreamAuth,
    [json(401, their("invalid_api_key"))]
  ],
  [
    "a provider's 429",
    { ...asked, model: "limited" },
    refusals.allFailed("first", 429),
    [json(429, their("rate_limit_exceeded"))]
  ],
  [
    "two providers' errors",
    { ...asked, model: "pair" },
    refusals.allFailed("second", 599),
    [text(502, "text/html", "<html>")]
  ],
  ["a provider out of reach", { ...asked, model: "gone" }, refusals.allFailed("refusing", "network")],
  ["too long a wait", { ...asked, model: "mute" }, refusals.timedOut, [silent]]
]

withLayer(served)("the official client whose image is refused", (it) => {
  it.effect.each(refusedCases)("gets the error of %s", function* ([, body, told, replies = [], account = {}]) {
    const { first } = yield* Upstreams
    const customer = yield* Served.customer(account)
    yield* first.script(...replies)
    yield* refusedAs(customer, body, told, path.generations)
  })

  it.effect("gets errors for an edit without a reference, with a mask, or at an unknown endpoint", function* () {
    const one = yield* Served.customer()
    yield* refusedAs(one, asked, badRequest("`image` is required.", "image"), path.edits)
    const file = yield* Effect.promise(() => toFile(painting, "a.png"))
    const masked = yield* thrownBy(() => one.openai.images.edit({ ...asked, image: file, mask: file }))
    assertClientError(masked, badRequest("`mask` is not supported: describe the edit in `prompt`.", "mask"))
    const varied = yield* thrownBy(() => one.openai.images.createVariation({ image: file }))
    assertClientError(varied, refusals.noEndpoint)
    assert.strictEqual(yield* one.spent, 0n)
  })

  it.effect("gets a 401 without a key and with an unknown one", function* () {
    const { baseUrl } = yield* Served.customer()
    const options = { baseURL: baseUrl, maxRetries: 0 }
    const missing = new OpenAI({ ...options, apiKey: "none", defaultHeaders: { authorization: null } })
    const unknown = new OpenAI({ ...options, apiKey: `ggw_${"x".repeat(43)}` })
    const error = yield* thrownBy(() => missing.images.generate(asked))
    assertClientError(error, refusals.missingKey)
    const other = yield* thrownBy(() => unknown.images.generate(asked))
    assertClientError(other, refusals.invalidKey)
  })

  it.effect("gets a 429 over the rate", function* () {
    const one = yield* Served.customer({ rpm: 1 })
    yield* (yield* Upstreams).first.script(paints())
    yield* calling(() => one.openai.images.generate(asked))
    const told = refusals.limited
    const { error } = yield* refusedAs(one, asked, told, path.generations)
    assert.strictEqual(error.headers?.get("retry-after"), "60")
  })
})
