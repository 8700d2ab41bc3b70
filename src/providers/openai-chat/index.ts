import { Either, Struct } from "effect"
import { type Adaptation, type ChatCall, makeChatProvider } from "../chat/ChatClient.ts"
import { inlinesImages } from "../chat/Messages.ts"
import { readHostError } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { parseJson } from "../client/Json.ts"
import { answerWithStatedCost, withStatedCost } from "../client/RouteOptions.ts"
import { bearer } from "../client/Upstream.ts"
import { decodeAnswer, decodeUsage, errorIn, makeDecoder } from "./OpenAiChatAnswer.ts"
import {
  cacheKeyHeader,
  encodeRequest,
  features,
  type Options,
  options,
  ownStops,
  type Quirks,
  rulesOf
} from "./OpenAiChatRequest.ts"

const adapt = (
  { adapted, quirks }: ChatCall<Options, Quirks>,
  { body }: UpstreamResponse
): Adaptation<Quirks> | undefined => {
  const { param, words = [] } = readHostError(parseJson(body)) ?? {}
  const isUnknown = words.includes("unsupported_parameter") || words.includes("extra_forbidden")
  if (param === "stream_options" || param?.startsWith("stream_options.") === true) {
    const isRefused = isUnknown || words.includes("unsupported_value")
    return isRefused && quirks.streamOptions ? { changes: { streamOptions: false }, isLasting: true } : undefined
  }
  // Models differ in the values that they take.
  if (param === "prompt_cache_retention" && quirks.cacheRetention !== false) {
    return { changes: { cacheRetention: false }, isLasting: false }
  }
  if (!isUnknown || adapted.maxTokensField !== undefined) return undefined
  if (param !== "max_tokens" && param !== "max_completion_tokens") return undefined
  const other = quirks.maxTokensField === "max_tokens" ? "max_completion_tokens" : "max_tokens"
  return { changes: { maxTokensField: other }, isLasting: true }
}

export const make = makeChatProvider<Options, Quirks>("openai-chat", {
  options,
  rules: rulesOf,
  features,
  inlines: inlinesImages,
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
  // A fee for all searches of a request is not known to be due for one that failed.
  usageIn: (body, { options, request }) =>
    withStatedCost(decodeUsage(body.usage, { options: Struct.omit(options, "search_fee"), request }), body, options),
  quirks: ({ max_tokens_field = "max_tokens" }) => ({ maxTokensField: max_tokens_field, streamOptions: true }),
  adapt,
  ownStops
})
