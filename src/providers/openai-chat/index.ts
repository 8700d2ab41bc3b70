import { Either, Struct } from "effect"
import { type Adaptation, type ChatCall, makeChatProvider } from "../chat/ChatClient.ts"
import { inlinesImages } from "../chat/Messages.ts"
import { readProviderError } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { parseJson } from "../client/JsonFields.ts"
import { answerWithStatedCost, withStatedCost } from "../client/RouteOptions.ts"
import { bearer } from "../client/Upstream.ts"
import { decodeAnswer, decodeUsage, errorIn, makeDecoder } from "./OpenAiChatAnswer.ts"
import {
  cacheKeyHeader,
  encodeRequest,
  features,
  localStops,
  type Options,
  options,
  type Quirks,
  rulesOf
} from "./OpenAiChatRequest.ts"

const adapt = (
  { discoveredQuirks, quirks }: ChatCall<Options, Quirks>,
  { body }: UpstreamResponse
): Adaptation<Quirks> | undefined => {
  const { param, words = [] } = readProviderError(parseJson(body)) ?? {}
  const isUnknownParameter = words.includes("unsupported_parameter") || words.includes("extra_forbidden")
  if (param === "stream_options" || param?.startsWith("stream_options.") === true) {
    const isRefused = isUnknownParameter || words.includes("unsupported_value")
    return isRefused && quirks.streamOptions ? { changes: { streamOptions: false }, isPermanent: true } : undefined
  }
  // Accepted values differ between models, so the change is not permanent.
  if (param === "prompt_cache_retention" && quirks.cacheRetention !== false) {
    return { changes: { cacheRetention: false }, isPermanent: false }
  }
  if (!isUnknownParameter || discoveredQuirks.maxTokensField !== undefined) return undefined
  if (param !== "max_tokens" && param !== "max_completion_tokens") return undefined
  const otherField = quirks.maxTokensField === "max_tokens" ? "max_completion_tokens" : "max_tokens"
  return { changes: { maxTokensField: otherField }, isPermanent: true }
}

export const make = makeChatProvider<Options, Quirks>("openai-chat", {
  optionsDecoder: options,
  rules: rulesOf,
  features,
  requiresInlineImages: inlinesImages,
  endpoint: ({ options, request }) => ({
    path: "/chat/completions",
    authorization: bearer,
    headers: cacheKeyHeader(options, request)
  }),
  encode: encodeRequest,
  decode: (body, call) =>
    Either.map(decodeAnswer(body, call.newId, call), (answer) => answerWithStatedCost(answer, body, call.options)),
  decoder: makeDecoder,
  errorIn,
  // Omits the search fee, because it is unknown whether providers charge it for a failed request.
  usageIn: (body, { options, request }) =>
    withStatedCost(decodeUsage(body.usage, { options: Struct.omit(options, "search_fee"), request }), body, options),
  quirks: ({ max_tokens_field = "max_tokens" }) => ({ maxTokensField: max_tokens_field, streamOptions: true }),
  adapt,
  localStops: localStops
})
