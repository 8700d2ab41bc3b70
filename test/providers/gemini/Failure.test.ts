import { assert, describe, it } from "@effect/vitest"
import { decodeFailure } from "../../../src/providers/gemini/Failure.ts"
import type { FailureClass } from "../../../src/services/routing/Provider.ts"
import { routeTo, secret } from "./Wire.ts"

const { provider } = routeTo("http://x")

const said = (code: number, status: string, message = "m", details: ReadonlyArray<object> = []) => ({
  error: { code, status, message, details }
})
const reason = (word: string) => [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: word }]
const delay = (retryDelay: unknown) => [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay }]
const invalid = (message: string) => said(400, "INVALID_ARGUMENT", message)

type Row = readonly [status: number, body: unknown, meaning: FailureClass, param?: string]

const rows: ReadonlyArray<Row> = [
  [400, said(400, "INVALID_ARGUMENT", "API key not valid.", reason("API_KEY_INVALID")), "account"],
  [400, said(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), "account"],
  [401, said(401, "UNAUTHENTICATED"), "account"],
  [402, said(402, "RESOURCE_EXHAUSTED"), "account"],
  [403, said(403, "PERMISSION_DENIED"), "account"],
  [429, said(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, check your plan and billing."), "limit"],
  [429, said(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."), "account"],
  [429, said(429, "RESOURCE_EXHAUSTED", "Your project has exceeded its monthly spending cap."), "account"],
  [500, said(500, "INTERNAL"), "retry"],
  [503, said(503, "UNAVAILABLE"), "retry"],
  [504, said(504, "DEADLINE_EXCEEDED"), "retry"],
  [404, said(404, "NOT_FOUND"), "retry"],
  [200, said(429, "RESOURCE_EXHAUSTED"), "limit"],
  [200, said(503, "UNAVAILABLE"), "retry"],
  [200, said(400, "INVALID_ARGUMENT"), "request"],
  [429, [said(429, "RESOURCE_EXHAUSTED")], "limit"],
  [400, invalid("The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."), "request"],
  [400, invalid("Unable to process input image. Please retry."), "request", "messages"],
  [400, invalid("Unsupported MIME type: image/gif"), "request", "messages"],
  [400, invalid("Requests ending with a model turn are not supported."), "request", "messages"],
  [400, invalid("Thinking level is not supported for this model."), "retry"],
  [400, invalid("Budget 0 is invalid. This model only works in thinking mode."), "retry"],
  [400, invalid("Unknown name \"imageSize\" at 'generation_config': Cannot find field."), "retry"],
  [400, invalid("The prompt violates Google's Responsible AI practices."), "moderation"],
  [400, "<html>no</html>", "retry"],
  [413, "", "request"]
]

describe("what a Gemini host's error means", () => {
  for (const [status, body, meaning, param] of rows) {
    const text = typeof body === "string" ? body : JSON.stringify(body)
    it(`${status} ${text.slice(0, 120)}: ${meaning}`, () => {
      const failure = decodeFailure(provider, { status, headers: {}, body: text }, 0, "messages")
      assert.deepStrictEqual([failure.class, failure.param], [meaning, param])
    })
  }

  const delays: ReadonlyArray<readonly [unknown, number | undefined]> = [
    ["7s", 7],
    ["0.5s", 0.5],
    ["34.074824224s", 34.074824224],
    ["soon", undefined],
    ["-1s", undefined],
    [7, undefined]
  ]
  for (const [given, seconds] of delays) {
    it(`a retryDelay of ${String(given)}`, () => {
      const body = JSON.stringify(said(429, "RESOURCE_EXHAUSTED", "m", delay(given)))
      const failure = decodeFailure(provider, { status: 429, headers: {}, body }, 0, "messages")
      assert.strictEqual(failure.retryAfterSeconds, seconds)
    })
  }

  it("names the surface's own field for pictures, and never the credential", () => {
    const body = JSON.stringify(invalid(`Provided image is not valid, ${secret}`))
    const failure = decodeFailure(provider, { status: 400, headers: {}, body }, 0, "image")
    assert.strictEqual(failure.param, "image")
    assert.notInclude(failure.detail, secret)
  })
})
