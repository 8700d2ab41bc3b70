/**
 * Chats of a customer without a client library, by `fetch`: `ask` for one, or `openStream` and read it piece by piece.
 */

import { Data, Effect, Schema } from "effect"
import { type ChatWay, chatCompletions } from "./ChatWays.ts"

/** The connection broke before the answer was whole. */
export class ConnectionBroke extends Data.TaggedError("ConnectionBroke")<{ readonly cause: unknown }> {}

export interface Asked {
  readonly url: string
  readonly secret: string
  readonly stream?: boolean
  readonly headers?: Readonly<Record<string, string>>
  /** The user's message; two characters make a prompt that is held as 50 tokens. */
  readonly text?: string
  /** Chat completions where undefined. */
  readonly way?: ChatWay | undefined
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

const ErrorBody = Schema.parseJson(
  Schema.Struct({ error: Schema.Struct({ type: Schema.String, code: Schema.NullOr(Schema.String) }) })
)

/** The `error.code` of an answer, or of the last chunk of a stream. */
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

/** Asks for a chat with `max_tokens` 10 and reads the whole answer. Interrupting it drops the connection. */
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

/** Asks for a stream and leaves the reading of it to the caller, who drops the connection with the scope. */
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
    /** Reads until the text so far holds the part; fails if the stream ends before. */
    until: (part: string) =>
      Effect.repeat(
        Effect.filterOrFail(
          more,
          (isMore) => isMore,
          () => new ConnectionBroke({ cause: `ended without ${part}: ${text}` })
        ),
        { until: () => text.includes(part) }
      ),
    /** Everything, once it has ended. */
    rest: Effect.map(Effect.repeat(more, { while: (isMore) => isMore }), () => text),
    leave: Effect.sync(() => controller.abort())
  }
})
