import { Predicate } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import type { Picture } from "../../domain/Media.ts"
import type { ImageRoute, Resolution } from "../../domain/Model.ts"
import { fromBase64 } from "../../services/media/Base64.ts"
import { type ImageAnswer, ProviderFailure } from "../../services/routing/Provider.ts"
import { Encoded } from "../../services/runtime/Pieces.ts"
import { malformed } from "../client/Classification.ts"
import { defined } from "../client/Defined.ts"
import { blockIn, failureOf, isFiltered, moderation } from "./Failure.ts"
import type { Options } from "./Options.ts"

type WirePart = { text: string } | { inlineData: { mimeType: string; data: Encoded } }

/** The body of `generateContent` for a picture. */
export interface WireImage {
  contents: [{ role: "user"; parts: Array<WirePart> }]
  generationConfig: {
    responseModalities: Array<"IMAGE">
    imageConfig?: { imageSize?: Resolution; aspectRatio?: string }
  }
}

/** The body of `predict`. */
export interface WirePrediction {
  instances: Array<{ prompt: string }>
  parameters: { sampleCount: 1; includeRaiReason: true; sampleImageSize?: Resolution; aspectRatio?: string }
}

const inline = ({ bytes, type }: Picture): WirePart => ({ inlineData: { mimeType: type, data: new Encoded(bytes) } })

export const wireImage = (request: ImageRequest, options: Options): WireImage => {
  const imageConfig = defined({
    imageSize: options.image_size === false ? undefined : request.resolution,
    aspectRatio: options.aspect_ratio
  })
  return {
    contents: [{ role: "user", parts: [{ text: request.prompt }, ...request.references.map(inline)] }],
    generationConfig: {
      responseModalities: ["IMAGE"],
      ...(Object.keys(imageConfig).length === 0 ? undefined : { imageConfig })
    }
  }
}

export const wirePrediction = (request: ImageRequest, options: Options): WirePrediction => ({
  instances: [{ prompt: request.prompt }],
  parameters: {
    sampleCount: 1,
    includeRaiReason: true,
    ...defined({
      sampleImageSize: options.image_size === false ? undefined : request.resolution,
      aspectRatio: options.aspect_ratio
    })
  }
})

/** A picture that cannot be read is paid for like any other. */
const unreadable = (detail: string) => new ProviderFailure({ class: "retry", status: 200, spent: "whole", detail })

const bytesOf = (text: string): Uint8Array | ProviderFailure => {
  const bytes = fromBase64(text)
  if (bytes === undefined) return unreadable("a picture that is no base64")
  return bytes.length === 0 ? unreadable("an empty picture") : bytes
}

const answerOf = (text: string, prompt: unknown): ImageAnswer | ProviderFailure => {
  const bytes = bytesOf(text)
  if (!(bytes instanceof Uint8Array)) return bytes
  return { bytes, revisedPrompt: typeof prompt === "string" && prompt !== "" ? prompt : undefined }
}

/** What models draw on the way to their picture is marked as a thought. */
const pictureIn = (content: unknown): string | undefined => {
  const parts = Predicate.isRecord(content) && Array.isArray(content.parts) ? content.parts : []
  for (const part of parts) {
    if (!Predicate.isRecord(part) || part.thought === true || !Predicate.isRecord(part.inlineData)) continue
    if (typeof part.inlineData.data === "string") return part.inlineData.data
  }
  return undefined
}

type Body = Record<PropertyKey, unknown>

const drawn = (route: ImageRoute, body: Body): ImageAnswer | ProviderFailure => {
  const candidate: unknown = Array.isArray(body.candidates) ? body.candidates[0] : undefined
  const { content, finishReason } = Predicate.isRecord(candidate) ? candidate : {}
  const text = pictureIn(content)
  if (text !== undefined) return answerOf(text, undefined)
  const reason = typeof finishReason === "string" ? finishReason : (blockIn(body) ?? "")
  if (isFiltered(reason) || (candidate === undefined && reason !== "")) return moderation(200, reason)
  return malformed(route.provider, 200, `an answer without a picture, finishReason ${reason.slice(0, 100)}`)
}

const predicted = (route: ImageRoute, body: Body): ImageAnswer | ProviderFailure => {
  const predictions = Array.isArray(body.predictions) ? body.predictions.filter(Predicate.isRecord) : []
  const [filtered] = predictions.filter(({ raiFilteredReason }) => Boolean(raiFilteredReason))
  for (const { bytesBase64Encoded: text, prompt } of predictions) {
    if (typeof text === "string") return answerOf(text, prompt)
  }
  return filtered === undefined
    ? malformed(route.provider, 200, "an answer without a picture")
    : moderation(200, "raiFilteredReason")
}

/** Reads the body of a good answer, already parsed. */
export const readPicture = (route: ImageRoute, { api }: Options, body: unknown): ImageAnswer | ProviderFailure => {
  if (!Predicate.isRecord(body)) return malformed(route.provider, 200, "an answer that is no JSON object")
  if (body.error) {
    const text = JSON.stringify({ error: body.error })
    return failureOf(route.provider, { status: 200, headers: {}, body: text }, 0, "image")
  }
  return api === "predict" ? predicted(route, body) : drawn(route, body)
}
