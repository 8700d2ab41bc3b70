import { Either } from "effect"
import { hasImage } from "../../domain/ChatRules.ts"
import { type Adaptation, type ChatCall, makeChatProvider } from "../chat/ChatClient.ts"
import { inlinesImages } from "../chat/Messages.ts"
import { readProviderError } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { parseJson } from "../client/JsonFields.ts"
import { answerWithStatedCost, withStatedCost } from "../client/RouteOptions.ts"
import { bearer } from "../client/Upstream.ts"
import { native } from "./NativeResponses.ts"
import { countSearches, decodeAnswer, decodeFailure, decodeUsage, errorIn, makeDecoder } from "./ResponsesAnswer.ts"
import { encodeRequest, features, type Options, options, type Quirks, rulesOf } from "./ResponsesRequest.ts"

/** Shorter prompts are never billed at the cached price. */
const cacheableCharacters = 4_096

/**
 * OpenAI refuses summaries, and streams of some models, to unverified organizations. Only the account that encrypted
 * reasoning can decrypt it.
 */
const adapt = (
  { native, quirks }: ChatCall<Options, Quirks>,
  { body }: UpstreamResponse
): Adaptation<Quirks> | undefined => {
  const { param, words = [] } = readProviderError(parseJson(body)) ?? {}
  if (words.includes("invalid_encrypted_content") && native !== undefined && quirks.encrypted) {
    return { changes: { encrypted: false }, isPermanent: false }
  }
  // A refusal of the customer's own values says nothing about the account, so it changes only this request.
  const isLasting = native === undefined
  if (param === "prompt_cache_key" && quirks.cacheKey !== false)
    return { changes: { cacheKey: false }, isPermanent: isLasting }
  // Accepted values differ between models, so the change is not permanent.
  if (param === "prompt_cache_retention" && quirks.cacheRetention !== false) {
    return { changes: { cacheRetention: false }, isPermanent: false }
  }
  if (!words.includes("unsupported_value") && !words.includes("unsupported_parameter")) return undefined
  if (param === "max_tool_calls" && quirks.callLimit !== false)
    return { changes: { callLimit: false }, isPermanent: isLasting }
  if (param === "reasoning.effort" && native !== undefined && quirks.noEffort !== false) {
    return { changes: { noEffort: false }, isPermanent: false }
  }
  if (param === "reasoning.summary" && quirks.summary) return { changes: { summary: false }, isPermanent: isLasting }
  return param === "stream" && quirks.stream ? { changes: { stream: false }, isPermanent: true } : undefined
}

export const make = makeChatProvider<Options, Quirks>("openai-responses", {
  optionsDecoder: options,
  rules: rulesOf,
  features,
  requiresInlineImages: inlinesImages,
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
  localStops: ({ stop }) => stop
})
