import { Effect, Either, Predicate } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import type { Picture } from "../../domain/Media.ts"
import type { ImageRoute, RouteBase } from "../../domain/Model.ts"
import { Base64Field, fromBase64, jsonChunks } from "../../services/media/Base64.ts"
import { type ImageAdapter, type ImageAnswer, ProviderFailure } from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { protocolFailure, unsentFailure } from "../client/Classification.ts"
import { asFields, asList, asRecords, asText, type Fields, withoutUndefined } from "../client/JsonFields.ts"
import { Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import { decodeSafely, failWith, isSuccess, parseLargeJson } from "../client/UpstreamResponse.ts"
import { decodeFailure, findBlockReason, isFiltered, moderationFailure } from "./GeminiAnswer.ts"
import { endpoint, imageFeatures, type Options, options } from "./GeminiRequest.ts"

const encodeReference = ({ bytes, type }: Picture) => ({ inlineData: { mimeType: type, data: new Base64Field(bytes) } })

export const encodeImage = (request: ImageRequest, options: Options) => {
  const imageConfig = withoutUndefined({
    imageSize: options.image_size === false ? undefined : request.resolution,
    aspectRatio: request.shape?.aspectRatio ?? options.aspect_ratio
  })
  return {
    contents: [{ role: "user", parts: [{ text: request.prompt }, ...request.references.map(encodeReference)] }],
    generationConfig: {
      responseModalities: ["IMAGE"],
      ...(Object.keys(imageConfig).length === 0 ? undefined : { imageConfig })
    }
  }
}

export const encodePrediction = (request: ImageRequest, options: Options) => ({
  instances: [{ prompt: request.prompt }],
  parameters: {
    sampleCount: 1,
    includeRaiReason: true,
    ...withoutUndefined({
      sampleImageSize: options.image_size === false ? undefined : request.resolution,
      aspectRatio: request.shape?.aspectRatio ?? options.aspect_ratio
    })
  }
})

type Decoded = Either.Either<ImageAnswer, ProviderFailure>

/** Returns a billed failure, because the provider charges even if the image cannot be decoded. */
const lostImageFailure = (detail: string) =>
  Either.left(new ProviderFailure({ class: "retry", status: 200, spent: "complete", detail }))

const decodeBytes = (text: string, prompt: unknown): Decoded => {
  const bytes = fromBase64(text)
  if (bytes === undefined) return lostImageFailure("an image that is not base64")
  if (bytes.length === 0) return lostImageFailure("an empty image")
  return Either.right({ bytes, revisedPrompt: asText(prompt) || undefined })
}

/** Intermediate images are marked as thoughts and skipped. */
const findImage = (content: unknown): string | undefined => {
  for (const { inlineData, thought } of asRecords(asFields(content).parts)) {
    const { data } = asFields(inlineData)
    if (thought !== true && typeof data === "string") return data
  }
  return undefined
}

const decodeGeneration = (route: ImageRoute, body: Fields): Decoded => {
  const candidate = asList(body.candidates)[0]
  const { content, finishReason } = asFields(candidate)
  const text = findImage(content)
  if (text !== undefined) return decodeBytes(text, undefined)
  const reason = typeof finishReason === "string" ? finishReason : (findBlockReason(body) ?? "")
  if (isFiltered(reason) || (candidate === undefined && reason !== "")) {
    return Either.left(moderationFailure(200, reason))
  }
  const detail = `a response without an image, finishReason ${reason.slice(0, 100)}`
  return Either.left(protocolFailure(route.provider, 200, detail))
}

const decodePrediction = (route: ImageRoute, body: Fields): Decoded => {
  const predictions = asRecords(body.predictions)
  for (const { bytesBase64Encoded: text, prompt } of predictions) {
    if (typeof text === "string") return decodeBytes(text, prompt)
  }
  const isModerated = predictions.some(({ raiFilteredReason }) => Boolean(raiFilteredReason))
  return Either.left(
    isModerated
      ? moderationFailure(200, "raiFilteredReason")
      : protocolFailure(route.provider, 200, "a response without an image")
  )
}

export const decodeImage = (route: ImageRoute, { api }: Options, body: unknown): Decoded => {
  const { provider } = route
  if (!Predicate.isRecord(body))
    return Either.left(protocolFailure(provider, 200, "a response that is not a JSON object"))
  if (body.error) {
    const text = JSON.stringify({ error: body.error })
    return Either.left(decodeFailure(provider, { status: 200, headers: {}, body: text }, 0, "image"))
  }
  return api === "predict" ? decodePrediction(route, body) : decodeGeneration(route, body)
}

const failImage = failWith((account, response, now) => decodeFailure(account, response, now, "image"))

export const image = Effect.gen(function* () {
  const upstream = yield* Upstream
  const ids = yield* Ids

  const post = ({ provider: account }: RouteBase, model: string, method: string, body: UpstreamRequest["body"]) =>
    upstream.post({ account, body, ...endpoint(model, method) })

  const send = (route: ImageRoute, request: ImageRequest) => {
    const routeOptions = options.of(route)
    const usesPredict = routeOptions.api === "predict"
    const model = request.references.length === 0 ? route.model : usesPredict ? undefined : route.editModel
    if (model === undefined) return Effect.fail(unsentFailure(route, "the route cannot edit"))
    return usesPredict
      ? post(route, model, "predict", JSON.stringify(encodePrediction(request, routeOptions)))
      : post(route, model, "generateContent", jsonChunks(encodeImage(request, routeOptions), ids.unguessable()))
  }

  const adapter: ImageAdapter = {
    features: imageFeatures,
    generate: Effect.fn("Gemini.generate")(function* (route, request) {
      const response = yield* send(route, request)
      if (!isSuccess(response)) return yield* failImage(route, response)
      const body = yield* parseLargeJson(response)
      return yield* decodeSafely(route.provider, response, () => decodeImage(route, options.of(route), body))
    })
  }
  return adapter
})
