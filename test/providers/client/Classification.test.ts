import { Redacted } from "effect"
import { classify, decodeFailure, retryAfterSeconds } from "../../../src/providers/client/Classification.ts"
import { type FailureClass, mayDependOnRequest } from "../../../src/services/routing/Provider.ts"
import { assert, describe, it } from "../../harness/It.ts"

const now = Date.UTC(2026, 10, 21, 12, 0, 0)
const html = "<!doctype html><html><body>nope</body></html>"
const coded = (code: unknown, type: unknown = "invalid_request_error", more = {}) => ({
  error: { message: "m", type, code, param: null, ...more }
})

type Row = readonly [status: number, body: unknown, meaning: FailureClass, param?: string]

const rows: Readonly<Record<string, ReadonlyArray<Row>>> = {
  "another route may do better": [
    ...[301, 302, 404, 405, 406, 408, 409, 410, 418, 425, 500, 502, 503, 504, 520, 524, 529].map(
      (status): Row => [status, coded(null), "retry"]
    ),
    ...[400, 403, 404, 422, 500, 502, 503].map((status): Row => [status, html, "retry"]),
    [403, "error code: 1020", "retry"],
    [400, "upstream connect error", "retry"],
    [422, "nope", "retry"],
    [500, "", "retry"],
    [502, "null", "retry"],
    [503, "[]", "retry"],
    [404, coded("model_not_found"), "retry"],
    [400, coded("model_not_found"), "retry"],
    [404, { object: "error", message: "m", type: "NotFoundError", code: 404 }, "retry"],
    [500, coded(null, "server_error"), "retry"],
    [200, coded(null, "server_error"), "retry"],
    [200, coded(502, null), "retry"],
    [200, "", "retry"],
    [200, { error: "boom" }, "retry"]
  ],
  "the provider throttles": [
    [429, coded(null), "limit"],
    [429, "", "limit"],
    [429, html, "limit"],
    [429, coded("rate_limit_exceeded", "tokens"), "limit"],
    [429, [{ error: { code: 429, message: "m", status: "RESOURCE_EXHAUSTED" } }], "limit"],
    [503, coded("slow_down", "server_error"), "limit"],
    [429, coded("slow_down"), "limit"],
    [503, coded("server_is_overloaded", "service_unavailable_error"), "limit"],
    [413, coded("rate_limit_exceeded", "tokens"), "limit"],
    [200, coded("rate_limit_exceeded"), "limit"],
    [200, coded(429, null), "limit"],
    [200, coded("429", null), "limit"]
  ],
  "the account is at fault": [
    [401, coded("invalid_api_key"), "account"],
    [401, "", "account"],
    [401, html, "account"],
    [402, coded(null), "account"],
    [
      402,
      { error: { message: "Insufficient Balance", type: "unknown_error", code: "invalid_request_error" } },
      "account"
    ],
    [402, { error: { code: 402, status: "RESOURCE_EXHAUSTED" } }, "account"],
    [403, coded(null), "account"],
    [403, coded("model_not_found"), "account"],
    [403, { error: "Forbidden" }, "account"],
    [403, { detail: "Forbidden" }, "account"],
    [403, "Forbidden", "account"],
    [429, coded("insufficient_quota", "insufficient_quota"), "account"],
    [429, coded(null, "insufficient_quota"), "account"],
    [429, coded("credit_balance_exhausted"), "account"],
    [429, coded("organization_spend_limit_exceeded"), "account"],
    [429, coded("project_spend_limit_exceeded"), "account"],
    [429, coded("organization_usage_limit_exceeded"), "account"],
    [400, coded("billing_hard_limit_reached"), "account"],
    [400, coded("invalid_api_key"), "account"],
    [400, [{ error: { code: 400, status: "INVALID_ARGUMENT", details: [{ reason: "API_KEY_INVALID" }] } }], "account"],
    [400, { error: { code: 400, status: "FAILED_PRECONDITION" } }, "account"],
    [403, { error: { code: 403, status: "PERMISSION_DENIED" } }, "account"],
    [200, coded("insufficient_quota"), "account"],
    [200, coded(401, null), "account"]
  ],
  "the content was refused": [
    [400, coded("content_policy_violation"), "moderation"],
    [400, coded("moderation_blocked", "image_generation_user_error"), "moderation"],
    [400, coded("content_filter", null), "moderation"],
    [400, coded(null, null, { innererror: { code: "ResponsibleAIPolicyViolation" } }), "moderation"],
    [400, coded("invalid_prompt"), "moderation"],
    [400, coded("bio_policy"), "moderation"],
    [400, coded("InputTextSensitiveContentDetected", "BadRequest"), "moderation"],
    [
      403,
      { error: { code: 403, message: "m", metadata: { reasons: ["violence"], flagged_input: "…" } } },
      "moderation"
    ],
    [
      403,
      {
        code: "The caller does not have permission to execute the specified operation",
        error:
          "Content violates usage guidelines. Team: t, API key ID: k, Model: m, Failed check: SAFETY_CHECK_TYPE_BIO"
      },
      "moderation"
    ],
    [500, coded("content_policy_violation"), "moderation"],
    [200, coded("content_policy_violation"), "moderation"],
    [
      400,
      { error: { message: "Content Exists Risk", type: "invalid_request_error", code: "invalid_request_error" } },
      "moderation"
    ],
    [400, { error: { message: "m", code: "data_inspection_failed", type: "data_inspection_failed" } }, "moderation"],
    [400, { code: "DataInspectionFailed", message: "Input data may contain inappropriate content." }, "moderation"],
    [400, { code: "InternalError.Algo.DataInspectionFailed", message: "m" }, "moderation"],
    [
      400,
      { message: "<400> InternalError.Algo.DataInspectionFailed: Input text data may contain", code: 400 },
      "moderation"
    ],
    [400, { error: { message: "Output data may contain inappropriate content." } }, "moderation"],
    [400, { error: { code: "1301", message: "m", contentFilter: [] } }, "moderation"],
    [400, { error: { code: 1301, message: "m" } }, "moderation"],
    [422, { error: { type: "unprocessable_entity_error", message: "input new_sensitive (1026)" } }, "moderation"],
    [200, { base_resp: { status_code: 1026, status_msg: "input new_sensitive" }, choices: null }, "moderation"],
    [200, { base_resp: { status_code: "1027", status_msg: "m" } }, "moderation"]
  ],
  "a host says with a 200 that it has not answered": [
    [200, { base_resp: { status_code: 1004, status_msg: "login fail" } }, "account"],
    [200, { base_resp: { status_code: 1008, status_msg: "insufficient balance" } }, "account"],
    [200, { base_resp: { status_code: 1002, status_msg: "rate limit" } }, "limit"],
    [200, { base_resp: { status_code: 1039, status_msg: "token limit" } }, "limit"],
    [200, { base_resp: { status_code: 2013, status_msg: "invalid params" } }, "request"],
    [200, { base_resp: { status_code: 1000, status_msg: "unknown error" } }, "retry"],
    [200, { base_resp: { status_code: 9999, status_msg: "of tomorrow" } }, "retry"]
  ],
  "the request is at fault": [
    [400, coded(null), "request"],
    // Customer text quoted in a message must not affect the class.
    [400, { error: { message: "Invalid prompt: 'Content Exists Risk'" } }, "request"],
    [400, "", "request"],
    [400, "[]", "request"],
    [400, '"text"', "request"],
    [413, coded(null), "request"],
    [413, html, "request"],
    [413, "", "request"],
    [414, html, "request"],
    [431, "", "request"],
    [431, coded(null), "request"],
    [422, coded(null), "request"],
    [422, { detail: [{ type: "missing", loc: ["body", "messages"], msg: "m" }] }, "request"],
    [400, { object: "error", message: "m", type: "BadRequestError", param: null, code: 400 }, "request"],
    [400, coded("unsupported_parameter", "invalid_request_error", { param: "stop" }), "request"],
    [400, coded("unsupported_value", "invalid_request_error", { param: "reasoning_effort" }), "request"],
    [400, coded("context_length_exceeded"), "request"],
    [500, coded("context_length_exceeded"), "request"],
    [200, coded("context_length_exceeded"), "request"],
    [200, coded(400, "BadRequestError"), "request"],
    [400, coded("invalid_image"), "request", "messages"],
    [400, coded("invalid_image_format"), "request", "messages"],
    [400, coded("invalid_image_url"), "request", "messages"],
    [400, coded("failed_to_download_image"), "request", "messages"],
    [422, coded("image_too_large"), "request", "messages"],
    [400, coded(null, "invalid_image_error"), "request", "messages"]
  ]
}

describe("Classification", () => {
  const account = {
    name: "p",
    adapter: "openai-chat",
    baseUrl: "http://p.test",
    credential: Redacted.make("sk-very-secret"),
    headers: {}
  }

  for (const [meaning, table] of Object.entries(rows)) {
    it(meaning, () => {
      for (const [status, input, expected, param] of table) {
        const body = typeof input === "string" ? input : JSON.stringify(input)
        const verdict = classify({ status, headers: {}, body }, now, "messages")
        assert.deepStrictEqual(
          verdict,
          { class: expected, retryAfterSeconds: undefined, param },
          `${status} ${body.slice(0, 80)}`
        )
      }
    })
  }

  it("blames the request, not the traffic, where it alone is above the limit", () => {
    const said = (message: string) =>
      JSON.stringify({ error: { message, type: "tokens", code: "rate_limit_exceeded" } })
    const tooLarge = said("Request too large for m on tokens per min (TPM): Limit 30000, Requested 36278.")
    const tooMany = said("Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 3082.")
    for (const [status, body, isOfRequest] of [
      [429, tooLarge, true],
      [413, tooLarge, true],
      [429, tooMany, false]
    ] as const) {
      const failure = decodeFailure(account, { status, headers: {}, body }, now)
      assert.deepStrictEqual([failure.class, mayDependOnRequest(failure)], ["limit", isOfRequest])
    }
  })

  it("names the field that carries images on the surface", () => {
    const body = JSON.stringify(coded("invalid_image"))
    assert.strictEqual(classify({ status: 400, headers: {}, body }, now, "image").param, "image")
  })

  it("reads when to come back", () => {
    const cases: ReadonlyArray<readonly [Readonly<Record<string, string>>, number | undefined]> = [
      [{}, undefined],
      [{ "retry-after": "20" }, 20],
      [{ "retry-after": " 1.5 " }, 1.5],
      [{ "retry-after": "0" }, 0],
      [{ "retry-after": "Sat, 21 Nov 2026 12:00:30 GMT" }, 30],
      [{ "retry-after": "Sat, 21 Nov 2026 11:00:00 GMT" }, 0],
      [{ "retry-after": "soon" }, undefined],
      [{ "retry-after": "-5" }, undefined],
      [{ "retry-after-ms": "1500", "retry-after": "20" }, 1.5],
      [{ "retry-after-ms": "soon", "retry-after": "20" }, 20]
    ]
    for (const [headers, seconds] of cases) {
      assert.strictEqual(retryAfterSeconds(headers, now), seconds, JSON.stringify(headers))
    }
    assert.strictEqual(retryAfterSeconds({ "retry-after": ["3", "9"] }, now), 3)
  })

  it("tells the operator what was said, without the credential", () => {
    const body = JSON.stringify({ error: { message: "Incorrect key\nsk-very-secret", code: "invalid_api_key" } })
    const failure = decodeFailure(account, { status: 401, headers: { "retry-after": "9" }, body }, now)
    assert.deepStrictEqual([failure.class, failure.status, failure.retryAfterSeconds], ["account", 401, 9])
    assert.strictEqual(failure.detail, "401 invalid_api_key Incorrect key [credential]")
    const long = decodeFailure(account, { status: 502, headers: {}, body: `${"x".repeat(5_000)}sk-very-secret` }, now)
    assert.isAtMost(long.detail.length, 1_000)
  })

  it("names the address where nothing was found, which may be wrong in the catalog", () => {
    const wrong = { ...account, baseUrl: "https://vendor.example/v1/chat/completions" }
    for (const status of [404, 405]) {
      const failure = decodeFailure(wrong, { status, headers: {}, body: '{"error":{"message":"Not found"}}' }, now)
      assert.strictEqual(failure.detail, `(base_url ${wrong.baseUrl}) ${status} Not found`)
    }
    const other = decodeFailure(wrong, { status: 500, headers: {}, body: '{"error":{"message":"Not found"}}' }, now)
    assert.notInclude(other.detail, "base_url")
  })

  it("shows the status that an error inside a good answer names, and nothing of other good answers", () => {
    const inside = decodeFailure(
      account,
      { status: 200, headers: {}, body: '{"error":{"code":502,"message":"m"}}' },
      now
    )
    assert.strictEqual(inside.status, 502)
    const output = decodeFailure(account, { status: 200, headers: {}, body: "the model's own words" }, now)
    assert.notInclude(output.detail, "words")
  })
})
