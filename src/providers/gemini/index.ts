import { Effect } from "effect"
import type { Provider } from "../../services/routing/Provider.ts"
import { type Adaptation, type ChatCall, makeChatAdapter } from "../chat/ChatClient.ts"
import { readProviderError } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { parseJson } from "../client/JsonFields.ts"
import type { Upstream } from "../client/Upstream.ts"
import { decodeAnswer, decodeFailure, decodeUsage, errorIn, makeDecoder } from "./GeminiAnswer.ts"
import { image } from "./GeminiImages.ts"
import {
  chatFeatures,
  encodeRequest,
  endpoint,
  findDeclinedField,
  hasInlineImages,
  localStops,
  type Options,
  options,
  type Quirks,
  rulesOf
} from "./GeminiRequest.ts"

const penaltyMessage = /penalty is not enabled/i
/** Excludes messages about a tool's schema, which may contain the same words. */
const samplingMessage =
  /^(?!.*(propert|declaration|schema)).*\b(temperature|top_?p|sampling)\b.*\b(not|un|deprecated|removed)/i

const adapt = (
  { quirks }: ChatCall<Options, Quirks>,
  { body, status }: UpstreamResponse
): Adaptation<Quirks> | undefined => {
  if (status !== 400) return undefined
  const { message = "" } = readProviderError(parseJson(body)) ?? {}
  if (quirks.penalties && penaltyMessage.test(message)) return { changes: { penalties: false }, isPermanent: true }
  if (quirks.sampling && samplingMessage.test(message)) return { changes: { sampling: false }, isPermanent: true }
  const concernsSignature = quirks.signatures !== "sentinel" && /thought.?signature/i.test(message)
  // The refusal concerns this conversation, so it does not change later requests.
  return concernsSignature ? { changes: { signatures: "sentinel" }, isPermanent: false } : undefined
}

const chat = makeChatAdapter<Options, Quirks>({
  optionsDecoder: options,
  rules: rulesOf,
  features: chatFeatures,
  requiresInlineImages: () => true,
  findUnsupportedField: (route, request) => findDeclinedField(options.of(route), request),
  unsupportedReason: ({ messages }) => (hasInlineImages(messages) ? undefined : "an image that is not inline"),
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
  localStops: localStops
})

export const make: Effect.Effect<Provider, never, Upstream> = Effect.map(Effect.all({ chat, image }), (surfaces) => ({
  adapter: "gemini",
  options: options.decode,
  ...surfaces
}))
