const textHeader = (description: string) => ({ description, schema: { type: "string" } })
const countHeader = (description: string) => ({ description, schema: { type: "integer" } })

/**
 * The headers that the gateway adds to responses. The API document and docs/api.md take their descriptions from here, and
 * CORS exposes every one of them to browsers.
 */
export const answerHeaders = {
  "x-request-id": textHeader("The request's id: the `x-request-id` that you sent, or a new one."),
  "request-id": textHeader("The same as `x-request-id`."),
  "x-ratelimit-limit": countHeader("Requests per minute that the key may make."),
  "x-ratelimit-remaining": countHeader("Requests left in the current minute."),
  "x-ratelimit-limit-tokens": countHeader(
    "Tokens per minute that the key may use. Present if the key has a token limit."
  ),
  "x-ratelimit-remaining-tokens": countHeader("Tokens left in the current minute."),
  "x-ratelimit-reset-tokens": textHeader("Seconds until the current minute of the token limit ends, such as `42s`."),
  "retry-after": countHeader("Seconds to wait before you retry."),
  "x-should-retry": textHeader("`false`, because official clients would otherwise retry a 409 immediately."),
  "idempotency-replayed": textHeader("`true` if this is the stored result of an earlier request."),
  "x-gateway-sandbox": textHeader("`true` if the response comes from the sandbox instead of a provider."),
  "x-gateway-max-output-tokens": countHeader(
    "The reduced output cap, if the balance does not cover the requested one."
  ),
  "x-gateway-charge-usd": textHeader(
    "The charge in USD, exact to a billionth. It is 0 for a replay. Streams do not have it."
  ),
  location: textHeader("The video's `url`."),
  traceresponse: textHeader("The trace of the request, if the operator collects traces (W3C Trace Context)."),
  "accept-ranges": textHeader("`bytes`: you can fetch parts of a file."),
  "content-range": textHeader("The part of the file in the response."),
  etag: textHeader("The version of a file or page, for `if-none-match`.")
}
export type AnswerHeader = keyof typeof answerHeaders
export type AnswerHeaders = { readonly [Name in AnswerHeader]?: string }

export const requestIdHeader = "x-request-id" satisfies AnswerHeader
export const traceHeader = "traceresponse" satisfies AnswerHeader

export const sandboxHeader: AnswerHeaders = { "x-gateway-sandbox": "true" }
export const replayHeader: AnswerHeaders = { "idempotency-replayed": "true" }
