/**
 * A provider without a provider, for trying the gateway offline. Its answers depend on nothing but the request.
 *
 * - Chat keeps to max_tokens, stop, tools, tool_choice and response_format, shows reasoning for a reasoning_effort, and
 *   says how many pictures it sees. With tools and no tool_choice it calls those that the last user message names, or
 *   else the first one, and answers in text once results have come back. JSON satisfies its schema, except that
 *   `pattern` is ignored and that what takes too much work is left simple.
 * - An image is a PNG that shows its prompt, and its references beside it.
 * - A video is queued for one second, in progress until the third, and then an mp4 that shows its prompt, its reference
 *   and its seconds. Its handle is all there is of it, so any instance can go on with it.
 *
 * Faults are asked for in the prompt, in the text of any message. A bracket may hold several switches, and a
 * prompt several brackets; what is unknown or malformed is ignored.
 *
 * - `[sandbox status=503]` fails with this status, 400 to 599
 * - `[sandbox delay=5000]` waits this many ms before answering or failing
 * - `[sandbox gap=100]` waits this many ms between the deltas of a stream
 * - `[sandbox cut=3]` breaks off after this many deltas; an answer in one piece breaks as well
 * - `[sandbox moderation]` refuses the content
 * - `[sandbox fail]` takes a render that fails after two seconds; it means nothing to chat and images
 * - `[sandbox fail moderation]` takes a render that is refused after two seconds; chat and images refuse at once
 * - `routes=1` in a bracket limits it to the model's first route, `routes=2` to its first two: providers named
 *   `sandbox`, `sandbox-b` and so on
 */
import { Effect } from "effect"
import { TokenCounter } from "../services/chat/TokenCounter.ts"
import type { Provider } from "../services/routing/Provider.ts"
import * as Chat from "./sandbox/Chat.ts"
import * as Drawing from "./sandbox/Drawing.ts"
import * as Image from "./sandbox/Image.ts"
import * as Video from "./sandbox/Video.ts"

export const make: Effect.Effect<Provider, never, TokenCounter> = Effect.gen(function* () {
  const tokens = yield* TokenCounter
  const studio = yield* Drawing.make
  return { adapter: "sandbox", chat: Chat.make(tokens), image: Image.make(studio), video: Video.make(studio) }
})
