import { decodeFailure, endsJob, isUnfinished } from "../../../src/providers/fal-queue/FalQueue.ts"
import type { FailureClass } from "../../../src/services/routing/Provider.ts"
import { secret } from "../../contracts/MediaHarness.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { account } from "./Hosts.ts"

const detail = (type: string, ...loc: ReadonlyArray<string | number>) => ({
  detail: [{ loc: ["body", ...loc], msg: `it was ${type}`, type }]
})
const flat = (error_type: string) => ({ detail: "it failed", error_type })

interface Row {
  readonly status: number
  readonly body: unknown
  readonly headers?: Readonly<Record<string, string>>
  readonly means: FailureClass
  readonly param?: string
  /** Whether the failure ends the job. */
  readonly ends: boolean
}

const rows: ReadonlyArray<Row> = [
  { status: 422, body: detail("content_policy_violation", "prompt"), means: "moderation", ends: true },
  {
    status: 422,
    body: detail("content_policy_violation"),
    headers: { "x-fal-retryable": "true" },
    means: "moderation",
    ends: true
  },
  { status: 200, body: detail("content_policy_violation"), means: "moderation", ends: true },
  { status: 422, body: detail("image_too_large", "image_url"), means: "request", param: "image", ends: true },
  { status: 422, body: detail("image_load_error"), means: "request", param: "image", ends: true },
  { status: 422, body: detail("file_download_error", "image_urls", 0), means: "request", param: "image", ends: true },
  { status: 422, body: detail("missing", "start_image_url"), means: "request", param: "image", ends: true },
  { status: 422, body: detail("too_long", "image_urls"), means: "request", param: "image", ends: true },
  { status: 422, body: detail("string_too_long", "prompt"), means: "request", ends: true },
  { status: 422, body: detail("literal_error", "image_size"), means: "request", ends: true },
  { status: 422, body: detail("less_than_equal", "num_images"), means: "request", ends: true },
  { status: 422, body: { detail: "Invalid request" }, means: "request", ends: true },
  { status: 400, body: { detail: "Bad prompt" }, means: "request", ends: true },
  { status: 422, body: detail("no_media_generated"), means: "retry", ends: true },
  { status: 400, body: detail("downstream_service_error"), means: "retry", ends: true },
  { status: 500, body: detail("internal_server_error"), means: "retry", ends: true },
  { status: 504, body: detail("generation_timeout"), means: "retry", ends: true },
  {
    status: 422,
    body: detail("value_error", "seed"),
    headers: { "x-fal-retryable": "True" },
    means: "retry",
    ends: true
  },
  { status: 504, body: flat("request_timeout"), means: "retry", ends: true },
  { status: 504, body: flat("startup_timeout"), means: "retry", ends: true },
  { status: 503, body: flat("runner_disconnected"), means: "retry", ends: true },
  { status: 499, body: flat("client_cancelled"), means: "retry", ends: true },
  { status: 503, body: {}, headers: { "x-fal-error-type": "runner_server_error" }, means: "retry", ends: true },
  { status: 500, body: { detail: "Internal Server Error" }, means: "retry", ends: true },
  { status: 503, body: {}, means: "retry", ends: false },
  { status: 404, body: { detail: "Request not found" }, means: "retry", ends: false },
  { status: 429, body: { detail: "Too many" }, headers: { "retry-after": "7" }, means: "limit", ends: false },
  { status: 429, body: flat("rate_limited"), means: "limit", ends: false },
  { status: 401, body: { detail: "Invalid token" }, means: "account", ends: false },
  { status: 403, body: { detail: "User is locked. Reason: Exhausted balance." }, means: "account", ends: false },
  { status: 422, body: { detail: "User is locked. Reason: Exhausted balance." }, means: "account", ends: false },
  {
    status: 422,
    body: { detail: [{ loc: ["body", "prompt"], msg: "not 'exhausted balance'", type: "value_error" }] },
    means: "request",
    ends: true
  },
  { status: 402, body: {}, means: "account", ends: false },
  { status: 502, body: "<html>Bad gateway</html>", means: "retry", ends: false },
  { status: 422, body: "<html>Not yours</html>", means: "retry", ends: false },
  { status: 500, body: "", means: "retry", ends: true }
]

describe("what fal's refusals mean", () => {
  for (const { body, ends, headers = {}, means, param, status } of rows) {
    const text = typeof body === "string" ? body : JSON.stringify(body)
    it(`${status} ${text} ${JSON.stringify(headers)}: ${means}`, () => {
      const answer = { status, headers, body: text }
      const failure = decodeFailure(account("https://queue.fal.run"), answer, 0)
      assert.deepStrictEqual([failure.class, failure.param, failure.status], [means, param, status])
      assert.strictEqual(failure.retryAfterSeconds, headers["retry-after"] === undefined ? undefined : 7)
      assert.strictEqual(endsJob(answer, failure), ends)
      assert.isFalse(isUnfinished(answer))
    })
  }

  it("a result that is asked for early is no refusal", () => {
    const answer = (status: number, said: string) => ({ status, headers: {}, body: JSON.stringify({ detail: said }) })
    assert.isTrue(isUnfinished(answer(400, "Request is still in progress")))
    assert.isFalse(isUnfinished(answer(422, "Request is still in progress")))
    assert.isFalse(isUnfinished(answer(400, "The prompt is too long")))
  })

  it("are in the operator's detail, without the credential", () => {
    const body = JSON.stringify(detail("image_too_small", "image_url")).replace("it was", `${secret} was`)
    const answer = { status: 422, headers: {}, body }
    const failure = decodeFailure(account("https://queue.fal.run"), answer, 0)
    assert.strictEqual(failure.detail, "422 image_too_small at body.image_url [credential] was image_too_small")
  })

  it("are there without what they quote of the request", () => {
    const body = JSON.stringify({
      detail: [{ loc: ["body", "prompt"], msg: "'a secret\nboat' is refused", type: "value_error" }]
    })
    const failure = decodeFailure(account("https://queue.fal.run"), { status: 422, headers: {}, body }, 0)
    assert.strictEqual(failure.detail, "422 value_error at body.prompt '…' is refused")
  })
})
