import { decodeFailure, decodeProgress, predictionFailure } from "../../../src/providers/replicate/Replicate.ts"
import type { FailureClass } from "../../../src/services/routing/Provider.ts"
import { secret } from "../../contracts/MediaHarness.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { replicateAccount } from "./Hosts.ts"

const account = replicateAccount("https://api.replicate.com")

const invalid = (field: string) => ({
  title: "Input validation failed",
  detail: `- ${field}: is wrong\n`,
  status: 422,
  invalid_fields: [{ type: "format", field, description: "is wrong" }]
})

interface Row {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly means: FailureClass
  readonly param?: string
  readonly retryAfter?: number
}

const rows: ReadonlyArray<Row> = [
  {
    status: 429,
    body: { detail: "Request was throttled. Your rate limit resets in ~30s." },
    means: "limit",
    retryAfter: 30
  },
  {
    status: 429,
    body: { detail: "Request was throttled. Your rate limit resets in ~30s." },
    headers: { "retry-after": "7" },
    means: "limit",
    retryAfter: 7
  },
  { status: 429, body: { detail: "Slow down" }, means: "limit" },
  { status: 402, body: { title: "Insufficient credit", detail: "You have insufficient credit" }, means: "account" },
  { status: 401, body: { title: "Unauthenticated", detail: "You did not pass a token" }, means: "account" },
  { status: 403, body: { detail: "You may not run this model" }, means: "account" },
  { status: 404, body: { detail: "The requested resource could not be found." }, means: "retry" },
  { status: 422, body: invalid("input.prompt"), means: "request" },
  { status: 422, body: invalid("input.image"), means: "request", param: "image" },
  { status: 422, body: invalid("input.image_input.0"), means: "request", param: "image" },
  { status: 422, body: invalid("input.input_images"), means: "request", param: "image" },
  { status: 422, body: invalid("input.first_frame_image"), means: "request", param: "image" },
  { status: 422, body: invalid("input.input_image_2"), means: "request", param: "image" },
  { status: 422, body: invalid("input.max_images"), means: "request" },
  { status: 422, body: invalid("input.number_of_images"), means: "request" },
  { status: 422, body: invalid("input.image_size"), means: "request" },
  {
    status: 422,
    body: { detail: "- input.start_image: Does not match format 'uri'" },
    means: "request",
    param: "image"
  },
  { status: 400, body: { detail: "The prompt is too long" }, means: "request" },
  { status: 413, body: "", means: "request" },
  { status: 422, body: { detail: "The input was flagged as sensitive (E005)" }, means: "moderation" },
  {
    status: 422,
    body: { title: "Invalid version or not permitted", detail: "The specified version does not exist" },
    means: "retry"
  },
  { status: 500, body: { detail: "Something went wrong" }, means: "retry" },
  { status: 503, body: {}, means: "retry" },
  { status: 502, body: "<html>Bad gateway</html>", means: "retry" },
  { status: 422, body: "<html>Not yours</html>", means: "retry" }
]

describe("what Replicate's refusals mean", () => {
  for (const { body, headers = {}, means, param, retryAfter, status } of rows) {
    const text = typeof body === "string" ? body : JSON.stringify(body)
    it(`${status} ${text} ${JSON.stringify(headers)}: ${means}`, () => {
      const failure = decodeFailure(account, { status, headers, body: text }, 0)
      assert.deepStrictEqual([failure.class, failure.param, failure.status], [means, param, status])
      assert.strictEqual(failure.retryAfterSeconds, retryAfter)
    })
  }

  it("are in the operator's detail, without the credential", () => {
    const body = JSON.stringify({ title: "Insufficient credit", detail: `for\n${secret}`, request: "abc" })
    const failure = decodeFailure(account, { status: 402, headers: {}, body }, 0)
    assert.strictEqual(failure.detail, "402 Insufficient credit for [credential]")
  })

  it("are there without what they quote of the request", () => {
    const body = JSON.stringify({ title: "Invalid", detail: '- input.prompt: "a\nsecret "boat"" is refused' })
    assert.strictEqual(
      decodeFailure(account, { status: 422, headers: {}, body }, 0).detail,
      '422 Invalid - input.prompt: "…" is refused'
    )
    assert.strictEqual(
      predictionFailure(account, 200, "ValueError: 'a secret boat' is refused").detail,
      "the prediction failed: ValueError: '…' is refused"
    )
  })
})

const refused = [
  "NSFW content detected. Try running it again, or try a different prompt.",
  "The input or output was flagged as sensitive. Please try again with different inputs. (E005) (VYKG0CLfUe)",
  "Failed to generate: E005",
  "Content flagged for: sexual",
  "Your request was rejected by the safety system.",
  "The prompt was blocked by our moderation",
  "It violated Google's Responsible AI practices.",
  "This request violates our content policy",
  "Failure to pass the risk control system"
]
const broken = [
  "Prediction interrupted; please retry (code: PA)",
  "CUDA out of memory. Tried to allocate 2 GiB",
  "Model names are case-sensitive",
  "E1001: the model ran out of memory",
  "E0050",
  "cannot identify image file",
  ""
]

describe("what a failed prediction means", () => {
  for (const said of refused)
    it(`moderation: ${said}`, () => assert.strictEqual(predictionFailure(account, 200, said).class, "moderation"))
  for (const said of broken)
    it(`retry: ${said}`, () => assert.strictEqual(predictionFailure(account, 200, said).class, "retry"))

  for (const error of ["NSFW", { message: "NSFW" }, ["NSFW"]]) {
    it(`is read from an error of any shape: ${JSON.stringify(error)}`, () => {
      const progress = decodeProgress(account, {
        status: 200,
        body: JSON.stringify({ status: "failed", error })
      })
      assert.strictEqual(progress?.state === "failed" && progress.failure.class, "moderation")
    })
  }

  for (const output of [null, undefined, "", [], [null], {}, 7]) {
    it(`is a success without an output: ${JSON.stringify(output)}`, () => {
      const progress = decodeProgress(account, {
        status: 200,
        body: JSON.stringify({ status: "succeeded", output })
      })
      assert.strictEqual(progress?.state === "failed" && progress.failure.class, "retry")
    })
  }

  for (const body of [undefined, null, [], {}, { status: 7 }, { error: "NSFW" }]) {
    it(`is not said by ${JSON.stringify(body)}`, () =>
      assert.isUndefined(decodeProgress(account, { status: 200, body: JSON.stringify(body) ?? "" })))
  }
})
