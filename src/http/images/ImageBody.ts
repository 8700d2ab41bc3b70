import { Effect, Either } from "effect"
import { mayUseModel } from "../../domain/ApiKey.ts"
import type { Failure, InvalidRequest } from "../../domain/Failure.ts"
import { type ImageParams, usualFormat, variantFor } from "../../domain/Image.ts"
import type { Model } from "../../domain/Model.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import type { ImageTask } from "../../services/images/ImageGenerations.ts"
import { attribute } from "../admission/Attribution.ts"
import type { AdmittedRequest } from "../admission/Endpoint.ts"
import { requireAllowed } from "../admission/ModelAccess.ts"
import { isAbsent, isObject, isString, type JsonObject, modelIn } from "../body/Guards.ts"
import { formObject, type Part } from "../body/Multipart.ts"
import { decoder } from "../schema/Decoding.ts"
import { ImageEditRequest, ImageGenerationRequest } from "./Schema.ts"

const decodeGeneration = decoder(ImageGenerationRequest)
const decodeEdit = decoder(ImageEditRequest)

const isHd = (quality: unknown): boolean => isString(quality) && quality.toLowerCase() === "hd"

const presentShape = (shape: string | null | undefined): string | undefined =>
  shape === "auto" ? undefined : (shape ?? undefined)

export const decodeImageBody = (
  body: unknown,
  { needsReference }: { readonly needsReference: boolean }
): Either.Either<ImageParams, InvalidRequest> =>
  Either.map(
    needsReference ? decodeEdit(body) : decodeGeneration(body),
    ({ aspect_ratio, image, model, prompt, quality, resolution, response_format, size }) => ({
      model,
      prompt,
      references: image ?? [],
      resolution: resolution ?? (isHd(quality) ? "4K" : undefined),
      size: presentShape(size),
      aspectRatio: presentShape(aspect_ratio),
      responseFormat: response_format ?? "url"
    })
  )

const jsonValues: ReadonlyMap<unknown, unknown> = new Map<unknown, unknown>([
  ["1", 1],
  ["false", false]
])

export const imageForm = (parts: ReadonlyArray<Part>): JsonObject => {
  const body = formObject(parts)
  const decode = (value: unknown) => jsonValues.get(value) ?? value
  return { ...body, n: decode(body.n), stream: decode(body.stream) }
}

const ofModel = (params: ImageParams, id: string, body: unknown): ImageParams => {
  const isUsual = !isObject(body) || isAbsent(body.response_format)
  return { ...params, model: id, responseFormat: isUsual ? usualFormat(id) : params.responseFormat }
}

/** Decodes a body whose references are decoded, and finds what it is offered. */
export const makeImageReader = Effect.gen(function* () {
  const catalog = yield* Catalog

  const offerFor = (
    params: ImageParams,
    mayUse: (model: Model) => boolean,
    at: number
  ): Either.Either<Pick<ImageTask, "model" | "variant" | "shape">, Failure> => {
    const model = catalog.current.findAt(params.model, at)
    if (model?.surface !== "image") return Either.left(unknownModel(catalog.current, params.model, "image", mayUse))
    return Either.map(variantFor(model, params), (choice) => ({ model, ...choice }))
  }

  return Effect.fnUntraced(function* (admitted: AdmittedRequest, body: unknown, needsReference: boolean) {
    const { record } = admitted
    record.model = modelIn(body)
    const refusal = attribute(admitted, body)
    if (refusal !== undefined) return yield* refusal
    const decoded = yield* decodeImageBody(body, { needsReference })
    const found = catalog.current.findAt(decoded.model, record.at)
    const params = found?.surface === "image" ? ofModel(decoded, found.id, body) : decoded
    record.model = found?.id ?? decoded.model
    yield* requireAllowed(record.caller, "image", found)
    return { params, offer: offerFor(params, ({ id }) => mayUseModel(record.caller, id), record.at) }
  })
})
