/**
 * Chats of a customer without a client library. `ask` returns the complete answer, and `openStream` returns a stream
 * that the test reads.
 */

import { Data, Effect, Schema } from "effect"
import { type ChatApi, chatCompletions } from "./ChatApis.ts"

/** The connection broke before the answer was complete. */
export class ConnectionBroke extends Data.TaggedError("ConnectionBroke")<{ readonly cause: unknown }> {}

export interface Asked {
  readonly url: string
  readonly secret: string
  readonly stream?: boolean
  readonly headers?: Readonly<Record<string, string>>
  /** The user's message. For two characters the gateway reserves 50 prompt tokens. */
  readonly text?: string
  /** The API to use. The default is chat completions. */
  readonly way?: ChatApi | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

const ErrorBody = Schema.parseJson(
  Schema.Struct({ error: Schema.Struct({ type: Schema.String, code: Schema.NullOr(Schema.String) }) })
)

/** Returns the `error.code` of an answer, or of the last chunk of a stream. */
export const codeOf = ({ text }: Pick<Answer, "text">) =>
  Schema.decodeUnknownSync(ErrorBody)(
    text
      .trim()
      .split("\n")
      .at(-1)
      ?.replace(/^data: /, "")
  ).error.code

const send = (
  { headers, secret, stream = false, text = "hi", url, way = chatCompletions }: Asked,
  signal: AbortSignal
) =>
  fetch(`${url}${way.path}`, {
    method: "POST",
    signal,
    headers: { authorization: `Bearer ${secret}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(way.body({ model: "m1", max_tokens: 10, stream, messages: [{ role: "user", content: text }] }))
  })

export const attempt = <A>(run: (signal: AbortSignal) => Promise<A>) =>
  Effect.tryPromise({ try: run, catch: (cause) => new ConnectionBroke({ cause }) })

/** Sends a chat with `max_tokens` 10 and reads the complete answer. Interruption closes the connection. */
export const ask = (asked: Asked): Effect.Effect<Answer, ConnectionBroke> =>
  attempt(async (signal) => {
    const response = await send(asked, signal)
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

export const get = (
  url: string,
  headers: Readonly<Record<string, string>> = {}
): Effect.Effect<Answer, ConnectionBroke> =>
  attempt(async (signal) => {
    const response = await fetch(url, { headers, signal })
    return { status: response.status, headers: response.headers, text: await response.text() }
  })

/** Opens a stream that the test reads. The connection is closed with the scope. */
export const openStream = Effect.fnUntraced(function* (asked: Asked) {
  const controller = new AbortController()
  yield* Effect.addFinalizer(() => Effect.sync(() => controller.abort()))
  const response = yield* attempt(() => send({ ...asked, stream: true }, controller.signal))
  const reader = (response.body ?? new ReadableStream<Uint8Array>()).getReader()
  const decoder = new TextDecoder()
  let text = ""
  const more = attempt(async () => {
    const { done, value } = await reader.read()
    text += decoder.decode(value, { stream: !done })
    return !done
  })
  return {
    status: response.status,
    /** Reads until the text contains the part. Fails if the stream ends before. */
    until: (part: string) =>
      Effect.repeat(
        Effect.filterOrFail(
          more,
          (isMore) => isMore,
          () => new ConnectionBroke({ cause: `ended without ${part}: ${text}` })
        ),
        { until: () => text.includes(part) }
      ),
    /** Reads the rest of the stream and returns the complete text. */
    rest: Effect.map(Effect.repeat(more, { while: (isMore) => isMore }), () => text),
    leave: Effect.sync(() => controller.abort())
  }
})
