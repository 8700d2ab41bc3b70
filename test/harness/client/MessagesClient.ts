/** `customer` creates an account with Anthropic's official client. */

import Anthropic, {
  APIError,
  AuthenticationError,
  BadRequestError,
  NotFoundError,
  PaymentRequiredError,
  PermissionDeniedError,
  RateLimitError
} from "@anthropic-ai/sdk"
import { Effect } from "effect"
import * as Served from "../gateway/ServedGateway.ts"
import { assert } from "../It.ts"

/** Creates a customer with Anthropic's official client on its default settings, except that it does not retry. */
export const customer = Effect.fnUntraced(function* (options: Parameters<typeof Served.customer>[0] = {}) {
  const account = yield* Served.customer(options)
  const baseURL = account.baseUrl.replace(/\/v1$/, "")
  return { ...account, baseURL, anthropic: new Anthropic({ baseURL, apiKey: account.secret, maxRetries: 0 }) }
})

export type Customer = Effect.Effect.Success<ReturnType<typeof customer>>

/** Requests a message, with or without a stream. Returns the complete message with its request id. */
export const ask = async (
  { anthropic }: Customer,
  body: Anthropic.MessageCreateParamsNonStreaming,
  stream: boolean
): Promise<{ readonly message: Anthropic.Message; readonly requestId: string | null | undefined }> => {
  if (!stream) {
    const message = await anthropic.messages.create(body)
    return { message, requestId: message._request_id }
  }
  const running = anthropic.messages.stream(body)
  return { message: await running.finalMessage(), requestId: running.request_id }
}

const classes: Readonly<Record<number, unknown>> = {
  400: BadRequestError,
  401: AuthenticationError,
  402: PaymentRequiredError,
  403: PermissionDeniedError,
  404: NotFoundError,
  429: RateLimitError
}

/** Asserts that the client threw its own error class with all values of the envelope. */
export const assertThrown = (thrown: unknown, status: number, type: string, message: string, hint?: unknown) => {
  assert.instanceOf(thrown, APIError)
  assert.strictEqual(thrown.constructor, classes[status])
  assert.match(thrown.requestID ?? "", /^req_[0-9a-f]{32}$/)
  assert.deepStrictEqual<unknown>(
    { status: thrown.status, error: thrown.error },
    {
      status,
      error: {
        type: "error",
        error: { type, message, ...(hint === undefined ? {} : { hint }) },
        request_id: thrown.requestID
      }
    }
  )
}
