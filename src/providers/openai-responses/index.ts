import { Either } from "effect"
import { hasImage } from "../../domain/ChatRules.ts"
import { type Adaptation, type ChatCall, makeChatProvider } from "../chat/ChatClient.ts"
import { inlinesImages } from "../chat/Messages.ts"
import { readHostError } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { parseJson } from "../client/Json.ts"
import { answerWithStatedCost, withStatedCost } from "../client/RouteOptions.ts"
import { bearer } from "../client/Upstream.ts"
import { native } from "./NativeResponses.ts"
import { countSearches, decodeAnswer, decodeFailure, decodeUsage, errorIn, makeDecoder } from "./ResponsesAnswer.ts"
import { encodeRequest, features, type Options, options, type Quirks, rulesOf } from "./ResponsesRequest.ts"

/** Below this, no host bills a part of the prompt at its cached price. */
const cacheableCharacters = 4_096

/** An unverified organization gets no summaries, and of some models no streams; reasoning can be read by its own account alone. */
const adapt = (
  { native, quirks }: ChatCall<Options, Quirks>,
  { body }: UpstreamResponse
): Adaptation<Quirks> | undefined => {
  const { param, words = [] } = readHostError(parseJson(body)) ?? {}
  if (words.includes("invalid_encrypted_content") && native !== undefined && quirks.encrypted) {
    return { changes: { encrypted: false }, isLasting: false }
  }
  // A customer's own values say nothing of what the account may do.
  const isLasting = native === undefined
  if (param === "prompt_cache_key" && quirks.cacheKey !== false) return { changes: { cacheKey: false }, isLasting }
  // Models differ in the values that they take.
  if (param === "prompt_cache_retention" && quirks.cacheRetention !== false) {
    return { changes: { cacheRetention: false }, isLasting: false }
  }
  if (!words.includes("unsupported_value") && !words.includes("unsupported_parameter")) return undefined
  if (param === "max_tool_calls" && quirks.callLimit !== false) return { changes: { callLimit: false }, isLasting }
  if (param === "reasoning.effort" && native !== undefined && quirks.noEffort !== false) {
    return { changes: { noEffort: false }, isLasting: false }
  }
  if (param === "reasoning.summary" && quirks.summary) return { changes: { summary: false }, isLasting }
  return param === "stream" && quirks.stream ? { changes: { stream: false }, isLasting: true } : undefined
}

export const make = makeChatProvider<Options, Quirks>("openai-responses", {
  options,
  rules: rulesOf,
  features,
  inlines: inlinesImages,
  endpoint: () => ({ path: "/responses", authorization: bearer }),
  encode: encodeRequest,
  native,
  decode: (body, call) =>
    Either.map(decodeAnswer(body, call.newId, call), (answer) => answerWithStatedCost(answer, body, call.options)),
  decoder: (call, body, failureIn) => {
    const isShort = !hasImage(call.request) && typeof body === "string" && body.length < cacheableCharacters
    return makeDecoder(call, isShort, failureIn)
  },
  errorIn,
  usageIn: (body, { options }) => withStatedCost(decodeUsage(body.usage, countSearches(body.output)), body, options),
  decodeFailure,
  quirks: () => ({ summary: true, stream: true, encrypted: true }),
  adapt,
  ownStops: ({ stop }) => stop
})
