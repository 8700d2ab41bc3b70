import { Effect } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import type { ImageRoute, RouteBase } from "../../domain/Model.ts"
import { jsonChunks } from "../../services/media/Chunks.ts"
import type { ImageAdapter, Provider } from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { type Adaptation, type ChatCall, makeChatAdapter } from "../chat/ChatClient.ts"
import { readHostError, unsentFailure } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { parseJson } from "../client/Json.ts"
import { Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import { decodeSafely, failWith, isSuccess, parseLargeJson } from "../client/UpstreamResponse.ts"
import { decodeAnswer, decodeFailure, decodeUsage, errorIn, makeDecoder } from "./GeminiAnswer.ts"
import { decodeImage, encodeImage, encodePrediction } from "./GeminiImages.ts"
import {
  chatFeatures,
  declinedBy,
  encodeRequest,
  hasInlineImages,
  imageFeatures,
  type Options,
  options,
  ownStops,
  type Quirks,
  rulesOf
} from "./GeminiRequest.ts"

const endpoint = (model: string, method: string) => ({
  path: `/v1beta/${model.includes("/") ? model : `models/${model}`}:${method}`,
  authorization: (secret: string) => ({ "x-goog-api-key": secret })
})

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

const failImage = failWith((account, response, now) => decodeFailure(account, response, now, "image"))

const image = Effect.gen(function* () {
  const upstream = yield* Upstream
  const ids = yield* Ids

  const post = ({ provider: account }: RouteBase, model: string, method: string, body: UpstreamRequest["body"]) =>
    upstream.post({ account, body, ...endpoint(model, method) })

  const ask = (route: ImageRoute, request: ImageRequest) => {
    const given = options.of(route)
    const isPredicted = given.api === "predict"
    const model = request.references.length === 0 ? route.model : isPredicted ? undefined : route.editModel
    if (model === undefined) return Effect.fail(unsentFailure(route, "the route cannot edit"))
    return isPredicted
      ? post(route, model, "predict", JSON.stringify(encodePrediction(request, given)))
      : post(route, model, "generateContent", jsonChunks(encodeImage(request, given), ids.unguessable()))
  }

  const adapter: ImageAdapter = {
    features: imageFeatures,
    generate: Effect.fn("Gemini.generate")(function* (route, request) {
      const response = yield* ask(route, request)
      if (!isSuccess(response)) return yield* failImage(route, response)
      const body = yield* parseLargeJson(response)
      return yield* decodeSafely(route.provider, response, () => decodeImage(route, options.of(route), body))
    })
  }
  return adapter
})

export const make: Effect.Effect<Provider, never, Upstream> = Effect.map(Effect.all({ chat, image }), (surfaces) => ({
  adapter: "gemini",
  options: options.decode,
  ...surfaces
}))
