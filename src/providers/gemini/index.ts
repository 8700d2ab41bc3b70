import { Effect } from "effect"
import type { Provider } from "../../services/routing/Provider.ts"
import { type Adaptation, type ChatCall, makeChatAdapter } from "../chat/ChatClient.ts"
import { readHostError } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { parseJson } from "../client/Json.ts"
import type { Upstream } from "../client/Upstream.ts"
import { decodeAnswer, decodeFailure, decodeUsage, errorIn, makeDecoder } from "./GeminiAnswer.ts"
import { image } from "./GeminiImages.ts"
import {
  chatFeatures,
  declinedBy,
  encodeRequest,
  endpoint,
  hasInlineImages,
  type Options,
  options,
  ownStops,
  type Quirks,
  rulesOf
} from "./GeminiRequest.ts"

const noPenalties = /penalty is not enabled/i
/** A tool's schema may have the same words. */
const noSampling =
  /^(?!.*(propert|declaration|schema)).*\b(temperature|top_?p|sampling)\b.*\b(not|un|deprecated|removed)/i

const adapt = (
  { quirks }: ChatCall<Options, Quirks>,
  { body, status }: UpstreamResponse
): Adaptation<Quirks> | undefined => {
  if (status !== 400) return undefined
  const { message = "" } = readHostError(parseJson(body)) ?? {}
  if (quirks.penalties && noPenalties.test(message)) return { changes: { penalties: false }, isLasting: true }
  if (quirks.sampling && noSampling.test(message)) return { changes: { sampling: false }, isLasting: true }
  const isOfSignature = quirks.signatures !== "sentinel" && /thought.?signature/i.test(message)
  // Concerns the conversation, not the route.
  return isOfSignature ? { changes: { signatures: "sentinel" }, isLasting: false } : undefined
}

const chat = makeChatAdapter<Options, Quirks>({
  options,
  rules: rulesOf,
  features: chatFeatures,
  inlines: () => true,
  declines: (route, request) => declinedBy(options.of(route), request),
  unencodable: ({ messages }) => (hasInlineImages(messages) ? undefined : "a picture that is not inline"),
  endpoint: ({ isStream, route: { model } }) =>
    endpoint(model, isStream ? "streamGenerateContent?alt=sse" : "generateContent"),
  encode: encodeRequest,
  decode: decodeAnswer,
  decoder: makeDecoder,
  errorIn,
  usageIn: ({ usageMetadata }) => decodeUsage(usageMetadata, 0),
  decodeFailure,
  quirks: ({ thinking = "level" }) => ({
    signatures: thinking === "level" ? "required" : "optional",
    penalties: true,
    sampling: true
  }),
  adapt,
  ownStops
})

export const make: Effect.Effect<Provider, never, Upstream> = Effect.map(Effect.all({ chat, image }), (surfaces) => ({
  adapter: "gemini",
  options: options.decode,
  ...surfaces
}))
