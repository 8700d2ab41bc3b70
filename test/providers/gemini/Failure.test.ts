import { decodeFailure } from "../../../src/providers/gemini/GeminiAnswer.ts"
import type { FailureClass } from "../../../src/services/routing/Provider.ts"
import { routeTo, secret } from "../../contracts/ChatHosts.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { gemini } from "./Wire.ts"

const errorOf = (code: number, status: string, message = "m", details: ReadonlyArray<object> = []) => ({
  error: { code, status, message, details }
})
const reason = (word: string) => [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: word }]
const delay = (retryDelay: unknown) => [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay }]
const invalid = (message: string) => errorOf(400, "INVALID_ARGUMENT", message)

type Row = readonly [status: number, body: unknown, meaning: FailureClass, param?: string]

const rows: ReadonlyArray<Row> = [
  [400, errorOf(400, "INVALID_ARGUMENT", "API key not valid.", reason("API_KEY_INVALID")), "account"],
  [400, errorOf(400, "FAILED_PRECONDITION", "User location is not supported for the API use."), "account"],
  [401, errorOf(401, "UNAUTHENTICATED"), "account"],
  [402, errorOf(402, "RESOURCE_EXHAUSTED"), "account"],
  [403, errorOf(403, "PERMISSION_DENIED"), "account"],
  [429, errorOf(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota, check your plan and billing."), "limit"],
  [429, errorOf(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."), "account"],
  [429, errorOf(429, "RESOURCE_EXHAUSTED", "Your project has exceeded its monthly spending cap."), "account"],
  [500, errorOf(500, "INTERNAL"), "retry"],
  [503, errorOf(503, "UNAVAILABLE"), "retry"],
  [504, errorOf(504, "DEADLINE_EXCEEDED"), "retry"],
  [404, errorOf(404, "NOT_FOUND"), "retry"],
  [200, errorOf(429, "RESOURCE_EXHAUSTED"), "limit"],
  [200, errorOf(503, "UNAVAILABLE"), "retry"],
  [200, errorOf(400, "INVALID_ARGUMENT"), "request"],
  [429, [errorOf(429, "RESOURCE_EXHAUSTED")], "limit"],
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

const failure = (status: number, input: unknown, imageParam: "messages" | "image" = "messages") => {
  const body = typeof input === "string" ? input : JSON.stringify(input)
  return decodeFailure(routeTo(gemini).provider, { status, headers: {}, body }, 0, imageParam)
}

describe("an error of a Gemini host", () => {
  for (const [status, body, meaning, param] of rows) {
    it(`of status ${status} with the body ${JSON.stringify(body).slice(0, 120)} is of class ${meaning}`, () => {
      const { class: found, param: field } = failure(status, body)
      assert.deepStrictEqual([found, field], [meaning, param])
    })
  }

  it.each([
    ["7s", 7],
    ["0.5s", 0.5],
    ["34.074824224s", 34.074824224],
    ["soon", undefined],
    ["-1s", undefined],
    [7, undefined]
  ])("with the retryDelay %j says to come back after %j seconds", (input, seconds) => {
    const body = errorOf(429, "RESOURCE_EXHAUSTED", "m", delay(input))
    assert.strictEqual(failure(429, body).retryAfterSeconds, seconds)
  })

  it("names the surface's own field for images, and never the credential", () => {
    const { detail, param } = failure(400, invalid(`Provided image is not valid, ${secret}`), "image")
    assert.strictEqual(param, "image")
    assert.notInclude(detail, secret)
  })
})
