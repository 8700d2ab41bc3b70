import { FastCheck as fc, Redacted } from "effect"
import type { RouteBase } from "../../../src/domain/Model.ts"
import { cleanReason, decodeFailure, withReason } from "../../../src/providers/client/Classification.ts"
import { assert, describe, it } from "../../harness/It.ts"

const provider = {
  name: "vendor",
  adapter: "anthropic",
  baseUrl: "https://gw.host-7.acme/v1",
  credential: Redacted.make("s3cret.key!"),
  headers: {}
}
const route: RouteBase = {
  id: "ours@vendor",
  provider,
  model: "vendor/claude-9",
  preference: 1,
  weight: 1,
  options: {}
}
const clean = (message: string) => cleanReason(message, route, "claude-nine")

describe("a host's reason for a refusal", () => {
  it.each([
    "prompt is too long: 214000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 214000 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "messages.1.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_01A09q90qw90lq917835lq9.",
    "No tool call found for function call output with call_id call_abcDEF1234567890abcdefgh.",
    "messages.0.content.1.image.source.base64: Could not process image",
    "Unexpected value(s) `context-1m-2025-08-07`, `interleaved-thinking-2025-05-14` for the `anthropic-beta` header.",
    "tools.0: Input tag 'text_editor_code_execution_20250825' found using 'type' does not match any of the expected tags",
    "Invalid value: 'xhigh'. Supported values are: 'low', 'medium', and 'high'.",
    "Unknown parameter: 'tools[0].namespace'.",
    "The project is over, and the account's organization has to user_input.id it at 12:30:45."
  ])("keeps the words that clients act on: %s", (message) => assert.strictEqual(clean(message), message))

  it.each([
    [
      "the upstream's model",
      "model: vendor/claude-9 and Vendor/Claude-9-20260101",
      "model: claude-nine and claude-nine"
    ],
    ["the credential", "key s3cret.key! is wrong", "key [key] is wrong"],
    ["keys", "sk-proj-abc***xyz9 sk-ant-api03-A_b AKIAABCDEFGH12345678 hf_a1b2c3", "[key] [key] [key] [key]"],
    ["tokens", "Bearer abc.def-123= and eyJhbGciOiJIUzI1NiJ9.e30.x", "[key] and [key]"],
    ["the own host", "upstream gw.host-7.acme:8443 said no", "upstream [host] said no"],
    ["URLs", "see https://a.test/x?key=1 and s3://bucket/file, grpc://10.0.0.1", "see [url] and [url] [url]"],
    [
      "names of hosts",
      "help.openai.com/a, vllm-0.vllm.svc.cluster.local gpu-7:9000 vllm.prod:80",
      "[host] [host] [host] [host]"
    ],
    ["loopback", "connect localhost:3000/v1 refused", "connect [host] refused"],
    [
      "addresses",
      "10.0.0.5:8080 192.168.1.0/24 fe80::1 [2001:db8::1] 1:2:3:4:5:6:7:8",
      "[host] [host] [host] [host] [host]"
    ],
    ["pictures", "bad data:image/png;base64,iVBORw0KGgo= here", "bad [data] here"],
    ["mail addresses", "ask bob.smith+x@corp.example or root@localhost", "ask [email] or [email]"],
    [
      "ids of requests",
      "req_011CUdL49e3F (request id: 2026-ab.1) Request-ID=77",
      "[id] (request id: [id]) Request-ID=[id]"
    ],
    ["ids of answers", "Item 'rs_0de7178170ebf7c1' of msg_abcdefghij, resp_1", "Item '[id]' of [id], [id]"],
    ["opaque ids", "0de7178170ebf7c1016932ea 3f2b8c1e-1111-4222-8333-0123456789ab", "[id] [id]"],
    [
      "organizations",
      "organization org-AbCdEfGhIjKl of Organization Acme Inc is",
      "organization [name] of Organization [name] is"
    ],
    [
      "projects",
      "project 'my app', projects/my-app/locations/us, project: x",
      "project [name], projects/[name]/locations/us, project: [name]"
    ],
    ["accounts", "account 123456789012 arn:aws:bedrock:us-east-1:123:model", "account [name] [id]"],
    ["control characters", "a\u0000b\r\n\u202e\u200bc\ud800", "a b c"]
  ])("is cleaned of %s", (_, message, expected) => assert.strictEqual(clean(message), expected))

  it("has at most 300 characters, none of them half of one", () => {
    assert.lengthOf(clean("a ".repeat(500)), 300)
    assert.match(clean(`${"a".repeat(298)}👋👋👋`), /^a{298}…$/)
    assert.match(clean(`${"a".repeat(296)}👋👋👋`), /^a{296}👋…$/u)
  })

  it("never shows the credential, whatever surrounds it, and takes any text", () => {
    fc.assert(
      fc.property(fc.fullUnicodeString(), fc.fullUnicodeString(), (before, after) => {
        const cleaned = clean(`${before}s3cret.key!${after}`)
        assert.notInclude(cleaned, "s3cret.key!")
        assert.isAtMost(cleaned.length, 300)
      })
    )
  })

  it("of 100,000 characters without an end takes no long time", () => {
    for (const unit of ["a", "a.", "a-", "a:", "0:", "@", "[", "sk-", "project ", "//", "1.", "é", " "]) {
      assert.isAtMost(clean(unit.repeat(100_000)).length, 300)
    }
  })
})

describe("a failure of an upstream", () => {
  const failing = (status: number, body: unknown) => {
    const text = JSON.stringify(body)
    return withReason(decodeFailure(provider, { status, headers: {}, body: text }, 0), text, route, "claude-nine")
  }
  const error = (message: string, code?: string) => ({ error: { type: "invalid_request_error", message, code } })
  const exceeded = "context_length_exceeded"

  it.each([
    ["a refusal", 400, error("tools.0: bad"), "tools.0: bad", undefined],
    ["a body too large", 413, error("Request exceeds the maximum size"), "Request exceeds the maximum size", undefined],
    [
      "a prompt too long",
      400,
      error("prompt is too long: 2 tokens > 1 maximum"),
      "prompt is too long: 2 tokens > 1 maximum",
      exceeded
    ],
    ["a code", 400, error("no", exceeded), "no", exceeded],
    [
      "a failed response",
      200,
      { status: "failed", error: { code: exceeded, message: "too much" } },
      "too much",
      exceeded
    ],
    [
      "an error that OpenRouter wraps",
      400,
      {
        error: {
          message: "Provider returned error",
          code: 400,
          metadata: { raw: JSON.stringify(error("prompt is too long: 2")) }
        }
      },
      "prompt is too long: 2",
      exceeded
    ],
    ["an empty refusal", 400, {}, undefined, undefined],
    ["a wrong key", 401, error("Incorrect API key"), undefined, undefined],
    ["an outage", 500, error("internal"), undefined, undefined],
    ["a moderation", 400, error("no", "content_filter"), undefined, undefined]
  ] as const)("tells the client why where it is %s of the request", (_, status, body, reason, code) => {
    const failure = failing(status, body)
    assert.deepStrictEqual([failure.reason, failure.reasonCode], [reason, code])
  })
})
