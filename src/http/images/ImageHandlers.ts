import { Effect, Either } from "effect"
import { mayUseModel } from "../../domain/ApiKey.ts"
import type { Failure, InvalidRequest } from "../../domain/Failure.ts"
import type { ImageParams } from "../../domain/Image.ts"
import { variantFor } from "../../domain/Image.ts"
import type { Model } from "../../domain/Model.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { ImageGenerations, type ImageResult, type ImageTask } from "../../services/images/ImageGenerations.ts"
import { Encoded, jsonChunks } from "../../services/media/Chunks.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import * as Monotonic from "../../services/runtime/Monotonic.ts"
import { chargeHeader, json, jsonInPieces, resultHeaders } from "../Answer.ts"
import { attribute } from "../admission/Attribution.ts"
import type { AdmittedRequest, Endpoint } from "../admission/Endpoint.ts"
import { requireAllowed } from "../admission/ModelAccess.ts"
import { idempotencyKeyOf } from "../admission/RequestContext.ts"
import { Limits, readJson, readJsonOrForm } from "../body/BodyReader.ts"
import { isString, type JsonObject, modelIn } from "../body/Guards.ts"
import { formObject, type Part } from "../body/Multipart.ts"
import { decodeReferences } from "../body/ReferenceFields.ts"
import { decoder } from "../schema/Decoding.ts"
import { servedPath } from "../schema/ServedPath.ts"
import { editImage, generateImage, ImageEditRequest, ImageGenerationRequest } from "./Schema.ts"

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

const endpoint = { surface: "image", admitsWithHold: false } as const

/** A replay equals the first response to the byte. */
const imageJson = ({ created, image, revisedPrompt, size }: ImageResult) => ({
  created,
  ...(size === undefined ? {} : { size }),
  data: [
    {
      ...("url" in image ? image : { b64_json: new Encoded(image.bytes) }),
      ...(revisedPrompt === undefined ? {} : { revised_prompt: revisedPrompt })
    }
  ]
})

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
    const params = found?.surface === "image" ? { ...decoded, model: found.id } : decoded
    record.model = found?.id ?? decoded.model
    yield* requireAllowed(record.caller, "image", found)
    return { params, offer: offerFor(params, ({ id }) => mayUseModel(record.caller, id), record.at) }
  })
})

export const imageEndpoints = Effect.gen(function* () {
  const ids = yield* Ids
  const images = yield* ImageGenerations
  const limits = yield* Limits
  // A function of its own, so that the body is freed before the picture is made.
  const read = yield* makeImageReader

  const answer = Effect.fnUntraced(function* (
    { headers, record, request }: AdmittedRequest,
    { offer, params }: Effect.Effect.Success<ReturnType<typeof read>>
  ) {
    const repeated = { params, idempotencyKey: idempotencyKeyOf(request), record }
    const result = Either.isRight(offer)
      ? yield* images.generate({ ...repeated, ...offer.right })
      : yield* Effect.flatMap(
          images.replay(repeated),
          Effect.mapError(() => offer.left)
        )
    record.firstByteAt = yield* Monotonic.millis
    const all = { ...headers(), ...resultHeaders(result), ...chargeHeader(result.charge) }
    return "url" in result.image
      ? json(200, imageJson(result), all)
      : jsonInPieces(200, jsonChunks(imageJson(result), ids.unguessable()), all)
  })

  const generate = (admitted: AdmittedRequest) =>
    readJson(admitted, limits.mediaBodyBytes).pipe(
      Effect.flatMap(decodeReferences),
      Effect.flatMap((body) => read(admitted, body, false)),
      Effect.flatMap((decoded) => answer(admitted, decoded))
    )
  const edit = (admitted: AdmittedRequest) =>
    readJsonOrForm(admitted, limits.mediaBodyBytes, imageForm).pipe(
      Effect.flatMap(decodeReferences),
      Effect.flatMap((body) => read(admitted, body, true)),
      Effect.flatMap((decoded) => answer(admitted, decoded))
    )

  return {
    generate: { ...endpoint, path: servedPath(generateImage), answer: generate } satisfies Endpoint,
    edit: { ...endpoint, path: servedPath(editImage), answer: edit } satisfies Endpoint
  }
})
