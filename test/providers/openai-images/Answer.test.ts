import { Effect, Layer } from "effect"
import { Upstream } from "../../../src/providers/client/Upstream.ts"
import * as OpenAiImages from "../../../src/providers/openai-images/OpenAiImages.ts"
import { Fetcher, FetchFailed } from "../../../src/services/media/Fetcher.ts"
import { picture, request } from "../../contracts/ImageHarness.ts"
import { secret } from "../../contracts/MediaHarness.ts"
import { assert, describe, it } from "../../harness/It.ts"
import * as Fake from "../../harness/upstream/FakeUpstream.ts"
import { routeTo } from "./Hosts.ts"

const upstream = Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 5 })
const nothingToFetch = Layer.succeed(Fetcher, {
  check: () => Effect.dieMessage("nothing to check"),
  bytes: () => Effect.dieMessage("nothing to fetch"),
  stream: () => {
    throw new Error("nothing to stream")
  },
  post: () => Effect.dieMessage("nothing to post")
})

/** Decodes a host's reply. */
const meeting = (reply: Fake.Reply, fetcher: Layer.Layer<Fetcher> = nothingToFetch) =>
  Effect.gen(function* () {
    const fake = yield* Fake.make
    const { image } = yield* OpenAiImages.make
    if (image === undefined) return yield* Effect.dieMessage("no images")
    yield* fake.script(reply)
    return yield* image.generate(routeTo(`${fake.url}/v1`), request())
  }).pipe(Effect.provide([upstream, fetcher]))

const { bytes } = picture("image/png", 5)
const text = Buffer.from(bytes).toString("base64")
const spread = text.replaceAll(/(.{76})/g, "$1\r\n")

describe("the answer of an openai-images host", () => {
  for (const [name, items] of [
    ["base64", [{ b64_json: text }]],
    ["base64 without its padding", [{ b64_json: text.replaceAll("=", "") }]],
    ["base64 for URLs", [{ b64_json: Buffer.from(bytes).toString("base64url") }]],
    ["base64 in lines", [{ b64_json: spread }]],
    ["a data URL where base64 belongs", [{ b64_json: `data:image/png;base64,${text}` }]],
    ["a data URL where a URL belongs", [{ b64_json: null, url: `data:image/png;base64,${text}` }]],
    ["both: the bytes are taken", [{ b64_json: text, url: "http://127.0.0.1:1/never" }]],
    ["an item without a picture first", [{}, null, { b64_json: "" }, { b64_json: text }]],
    ["more pictures than one", [{ b64_json: text }, { b64_json: "BBBB" }]]
  ] as const) {
    it.scopedLive(name, function* () {
      const answer = yield* meeting(Fake.json(200, { created: 1, data: items }))
      assert.strictEqual(Buffer.from(answer.bytes).toString("base64"), text)
    })
  }

  for (const [name, body, expected, status = 200] of [
    ["no list", { created: 1 }, "retry"],
    ["a list of nothing known", { data: [{ id: 1 }, "x", null] }, "retry"],
    ["no object", [], "retry"],
    ["null", null, "retry"],
    ["base64 with other characters in it", { data: [{ b64_json: `${text.slice(0, 40)}*${text.slice(40)}` }] }, "retry"],
    ["base64 cut inside a digit group", { data: [{ b64_json: "AAAAA" }] }, "retry"],
    ["words", { data: [{ b64_json: "sorry, no picture" }] }, "retry"],
    ["a data URL of nothing", { data: [{ url: "data:image/png;base64," }] }, "retry"],
    ["an error beside a picture", { error: { message: "late" }, data: [{ b64_json: text }] }, "retry"],
    ["an error as text", { error: "boom" }, "retry"],
    ["a flat error", { code: "moderation_blocked", message: "no" }, "moderation"],
    ["a moderation inside a 200", { error: { code: "content_policy_violation", message: "no" } }, "moderation"],
    ["an item's own error", { data: [{ error: { code: "OutputImageSensitiveContentDetected" } }] }, "moderation"],
    ["an item's other error", { data: [{ error: { code: "InternalServiceError" } }] }, "retry"],
    ["respect_moderation of the whole", { respect_moderation: false, data: [{ url: "" }] }, "moderation"],
    ["respect_moderation of the picture", { data: [{ respect_moderation: false, b64_json: text }] }, "moderation"],
    ["a status of its own that is a refusal", { data: null, base_resp: { status_code: 1026 } }, "moderation"],
    ["a status of its own that is the account's", { data: null, base_resp: { status_code: 1008 } }, "account"],
    ["a throttle inside a 200", { error: { code: "429", message: "slow" } }, "limit", 429]
  ] as const) {
    it.scopedLive(`${name} is ${expected}`, function* () {
      const failure = yield* Effect.flip(meeting(Fake.json(200, body)))
      assert.deepStrictEqual([failure.class, failure.status], [expected, status])
      assert.notInclude(failure.detail, text.slice(0, 12), "output is never logged")
    })
  }

  for (const [status, code, field, expected, param] of [
    [400, "content_policy_violation", null, "moderation"],
    [400, "content_filter", null, "moderation"],
    [400, "invalid_prompt", null, "moderation"],
    [400, "invalid_image_format", null, "request", "image"],
    [400, "failed_to_download_image", null, "request", "image"],
    [400, "image_too_large", null, "request", "image"],
    [400, null, null, "request"],
    [413, null, null, "request"],
    [422, null, "prompt", "request"],
    [400, "invalid_value", "image[0]", "request"],
    [400, "unknown_parameter", "moderation", "retry"],
    [400, "invalid_value", "size", "retry"],
    [400, "unsupported_value", "quality", "retry"],
    [400, "invalid_value", "model", "retry"],
    [400, "billing_hard_limit_reached", null, "account"],
    [429, "credit_balance_exhausted", null, "account"],
    [403, "permission_denied", null, "account"],
    [402, null, null, "account"],
    [503, "slow_down", null, "limit"],
    [429, null, null, "limit"],
    [307, null, null, "retry"],
    [408, null, null, "retry"],
    [409, null, null, "retry"],
    [425, null, null, "retry"],
    [504, null, null, "retry"],
    [524, null, null, "retry"],
    [529, null, null, "retry"]
  ] as const) {
    it.scopedLive(`${status} ${code ?? ""} ${field ?? ""} is ${expected}`, function* () {
      const error = { message: "said the host", type: "invalid_request_error", param: field, code }
      const failure = yield* Effect.flip(meeting(Fake.json(status, { error }, { location: "http://127.0.0.1:1/" })))
      assert.deepStrictEqual([failure.class, failure.status, failure.param], [expected, status, param])
      assert.include(failure.detail, "said the host")
    })
  }

  it.scopedLive("403 with reasons is moderation", function* () {
    const error = { code: 403, message: "flagged", metadata: { reasons: ["sexual"] } }
    assert.strictEqual((yield* Effect.flip(meeting(Fake.json(403, { error })))).class, "moderation")
  })

  for (const [reason, status, expected] of [
    ["refused", undefined, "retry"],
    ["status", 403, "retry"],
    ["too_large", undefined, "retry"],
    ["timeout", undefined, "timeout"],
    ["network", undefined, "network"]
  ] as const) {
    it.scopedLive(`a picture that cannot be fetched (${reason}) is ${expected}`, function* () {
      const failing = Layer.mock(Fetcher, {
        bytes: (chatRequest) => {
          assert.deepInclude(chatRequest, { url: "https://cdn.test/a.png", from: "provider", limitBytes: 67_108_864 })
          return new FetchFailed({ reason, status, detail: `why, and ${secret}` })
        }
      })
      const reply = Fake.json(200, { data: [{ url: "https://cdn.test/a.png" }] })
      const failure = yield* Effect.flip(meeting(reply, failing))
      assert.deepStrictEqual([failure.class, failure.status], [expected, status ?? 200])
      assert.include(failure.detail, "why, and [credential]")
    })
  }
})
