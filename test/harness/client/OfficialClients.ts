/** Calls of OpenAI's official client as effects, and the errors that it throws. */

import { Data, Effect } from "effect"
import {
  APIError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError
} from "openai"
import type { ChatCompletionChunk } from "openai/resources/chat/completions"
import { assert } from "../It.ts"
import { completeRefusal } from "./HttpCalls.ts"

export class Rejected extends Data.TaggedError("Rejected")<{ readonly cause: unknown }> {}

/** Converts a client's call to an effect, which fails with what the client throws. */
export const calling = <A>(call: (signal: AbortSignal) => PromiseLike<A>) =>
  Effect.tryPromise({ try: call, catch: (cause) => new Rejected({ cause }) })

/** Returns what a client's call throws. */
export const thrownBy = (call: () => PromiseLike<unknown>) =>
  Effect.map(Effect.flip(calling(call)), ({ cause }) => cause)

/** Runs a call that its caller aborts, from outside or inside. Returns what it throws, and the function that aborts it. */
export const leaving = (call: (signal: AbortSignal, leave: () => void) => PromiseLike<unknown>) => {
  const controller = new AbortController()
  const leave = () => controller.abort()
  return { thrown: thrownBy(() => call(controller.signal, leave)), leave: Effect.sync(leave) }
}

/** Returns all items of a stream, and the error with which it ended, if any. */
export const drained = <A>(stream: AsyncIterable<A>) =>
  Effect.promise(async () => {
    const items: Array<A> = []
    try {
      for await (const item of stream) items.push(item)
      return { items, error: undefined }
    } catch (error) {
      return { items, error }
    }
  })

/** Returns a client's object as the JSON that it was parsed from. */
export const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

/** Returns the text of a stream's chunks. */
export const contentOf = (chunks: ReadonlyArray<ChatCompletionChunk>): string =>
  chunks.map(({ choices }) => choices[0]?.delta.content ?? "").join("")

export interface Told {
  readonly status: number | undefined
  readonly type: string
  readonly code: string | null
  readonly param?: string | null
  readonly message: string
  readonly hint?: string | RegExp | undefined
}

const classes: Readonly<Record<number, unknown>> = {
  400: BadRequestError,
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  429: RateLimitError
}

/**
 * Asserts that the client threw its own error class with all values of the envelope. Without a status, the error broke
 * a stream.
 */
export const assertClientError = (error: unknown, told: Told): APIError => {
  assert.instanceOf(error, APIError)
  const complete = completeRefusal(told, Object(error.error).hint)
  const { code, hint, message, param = null, status = 0, type } = complete
  assert.strictEqual(error.constructor, status < 500 ? (classes[status] ?? APIError) : InternalServerError)
  assert.deepStrictEqual(
    { status: error.status, code: error.code, type: error.type, param: error.param, error: error.error },
    {
      status: told.status,
      code,
      type,
      param,
      error: { message, type, param, code, ...(hint === undefined ? {} : { hint }) }
    }
  )
  assert.strictEqual(error.message, status === 0 ? message : `${status} ${message}`)
  if (status !== 0) assert.match(error.requestID ?? "", /^req_[0-9a-f]{32}$/)
  return error
}
