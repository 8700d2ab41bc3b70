/** Replies with OpenAI's chats and images, for the models of `Deployment` and `ImageGateway`. */

import { Effect } from "effect"
import { png } from "../fixtures/TinyMedia.ts"
import { done, event, json, type Reply, type Step, sse } from "./FakeUpstream.ts"

/**
 * The tokens that the gateway reserves for the prompt "hi" and `max_tokens` 10. So the charge equals the hold: 70,000
 * nano-USD.
 */
const usage = { prompt_tokens: 50, completion_tokens: 10, total_tokens: 60 }
export const charge = 70_000n

export const completion: Reply = json(200, {
  choices: [{ index: 0, message: { role: "assistant", content: "Hello there" }, finish_reason: "stop" }],
  usage
})

export const delta = (content: string): string => event({ choices: [{ index: 0, delta: { content } }] })

/** The last visible event, which precedes the usage. */
export const finish = event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })

export const ending = finish + event({ choices: [], usage }) + done

/** A stream that waits for these steps between its first delta and the rest. */
export const stream = (...between: ReadonlyArray<Step>): Reply =>
  sse(delta("Hello"), ...between, delta(" there"), ending)

/** Replies as `reply` does, after the effect has completed. */
export const after =
  (wait: Effect.Effect<unknown>, reply: Reply): Reply =>
  async (response, received) => {
    await Effect.runPromise(wait)
    await reply(response, received)
  }

export const isStream = (body: unknown): boolean =>
  typeof body === "object" && body !== null && "stream" in body && body.stream === true

/** Sends a stream to a request with `stream`, otherwise a complete answer. */
export const either: Reply = (response, received) =>
  (isStream(received.body) ? stream() : completion)(response, received)

/** A complete image. */
export const painting = png

/** A provider's complete answer with an image, and with fields that no client may receive. */
export const painted = (bytes: Uint8Array = painting, more: object = {}) => ({
  created: 1,
  background: "hush",
  model: "vendor/hush-1",
  data: [{ b64_json: Buffer.from(bytes).toString("base64"), ...more }],
  usage: { input_tokens: 9, output_tokens: 272, total_tokens: 281 }
})

export const paints = (bytes?: Uint8Array, more?: object): Reply => json(200, painted(bytes, more))

export const generations = "/v1/images/generations"
export const edits = "/v1/images/edits"

export const asked = (model: string, more: object = {}) => ({ model, prompt: "a cat", ...more })
