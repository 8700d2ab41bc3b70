import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Effect, Either, Schema } from "effect"
import { mayUseModel } from "../../domain/ApiKey.ts"
import { Anything, described, Filled, Integer, matching, optional } from "../../domain/Constraints.ts"
import type { Failure, InvalidRequest } from "../../domain/Failure.ts"
import { type ImageParams, usualFormat, variantFor } from "../../domain/Image.ts"
import { type Model, Resolution } from "../../domain/Model.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import type { ImageTask } from "../../services/images/ImageGenerations.ts"
import type { Admission } from "../admission/Admission.ts"
import { attribute } from "../admission/Attribution.ts"
import { requireAllowed } from "../admission/ModelAccess.ts"
import { isAbsent, isObject, isString, type JsonObject } from "../body/Guards.ts"
import type { Part } from "../body/Multipart.ts"
import { Conflict, GenerationErrors } from "../errors/Schemas.ts"
import { decoder, problem } from "../schema/Decoding.ts"
import { formOf, inForm, jsonOf, orEmpty } from "../schema/FormFields.ts"
import { Authenticated, MediaHeaders } from "../schema/Headers.ts"
import { constant, endUser, modelOf, mustBeOneOf, promptFor, unsupported } from "../schema/SharedFields.ts"
import { Files, imageInBrackets, References, RequiredReferences } from "./ReferenceImages.ts"

const model = modelOf("an image model")
const prompt = promptFor("What the image shows, or what is to change.")

const resolutions = [...Resolution.literals, "1k", "2k", "4k"] as const
const longestEcho = 32

/** `domain/Image.ts` checks it against the model. */
const AnyResolution = Filled.annotations({
  ...problem(mustBeOneOf(Resolution.literals)),
  jsonSchema: { type: "string", enum: [...resolutions] }
})
const ResolutionInCapitals = Schema.transform(AnyResolution, Schema.String, {
  strict: true,
  decode: (text) => text.slice(0, longestEcho).toUpperCase(),
  encode: (text) => text
})
const Size = matching(/^(?:auto|[1-9]\d{1,4}x[1-9]\d{1,4})$/).annotations(
  problem("must be auto, or a width and a height such as 1024x1536")
)
const AspectRatio = matching(/^(?:auto|[1-9]\d{0,2}:[1-9]\d{0,2})$/).annotations(
  problem("must be auto, or a ratio such as 16:9")
)
const Format = Schema.Literal("url", "b64_json").annotations(problem("must be url or b64_json"))

export const ImageGenerationRequest = Schema.Struct({
  model,
  prompt,
  mask: unsupported("describe the edit in `prompt`"),
  images: unsupported("use `image`"),
  image: optional(References, "Reference images; with any of them the request is an edit."),
  n: constant(1, "must be 1: send one request per image", "Only 1."),
  response_format: optional(
    Format,
    "Default `url`: the image is stored and the link is permanent. Models whose id begins with `gpt-image` answer with both by default."
  ).pipe(inForm(Schema.Literal(...Format.literals, ""))),
  stream: constant(false, "must be false: images are not streamed", "Only false: images are not streamed."),
  resolution: optional(ResolutionInCapitals, "Decides the price; which ones a model has is in its `params`.").pipe(
    inForm(Schema.Literal(...resolutions, ""))
  ),
  size: optional(
    Size,
    "Width and height, or `auto`: the nearest that the model makes of the same orientation; see its `params`."
  ).pipe(inForm(orEmpty(Size))),
  aspect_ratio: optional(
    AspectRatio,
    "Such as `16:9`, or `auto`: the nearest that the model makes of the same orientation; see its `params`."
  ).pipe(inForm(orEmpty(AspectRatio))),
  quality: described(Anything, "`hd` is the resolution 4K where none is given; anything else has no effect."),
  ...endUser
}).annotations({ identifier: "ImageGenerationRequest" })

export const ImageEditRequest = Schema.Struct({
  ...ImageGenerationRequest.fields,
  image: RequiredReferences.annotations({ description: "The images to edit." })
}).annotations({ identifier: "ImageEditRequest" })

const ImageEditForm = formOf(ImageEditRequest.fields, {
  image: described(Files, "The images to edit, as files, URLs or base64; named `image` or `image[]`."),
  "image[]": imageInBrackets
})

const ImageResponse = Schema.Struct({
  created: Integer.annotations({ description: "Unix seconds." }),
  size: described(Schema.String, "The image's width and height in pixels, such as `1536x1024`."),
  data: Schema.Array(
    Schema.Struct({
      url: described(Schema.String, "A permanent link; not with the response format `b64_json`."),
      b64_json: described(Schema.String, "The image's bytes; not with the response format `url`."),
      revised_prompt: described(Schema.String, "What the provider made of the prompt, where it says so.")
    })
  ).annotations({ description: "One image." })
}).annotations({ identifier: "ImageResponse", description: "The image." })

export const generateImage = HttpApiEndpoint.post("generate", "/images/generations")
  .setHeaders(MediaHeaders)
  .setPayload(ImageGenerationRequest)
  .addSuccess(ImageResponse)
  .annotateContext(
    OpenApi.annotations({
      identifier: "createImage",
      summary: "Generate or edit an image",
      description: "Makes one image. With reference images in `image` it is an edit of these."
    })
  )

export const editImage = HttpApiEndpoint.post("edit", "/images/edits")
  .setHeaders(MediaHeaders)
  .setPayload(
    Schema.Union(ImageEditRequest, HttpApiSchema.Multipart(ImageEditForm).annotations({ identifier: "ImageEditForm" }))
  )
  .addSuccess(ImageResponse)
  .annotateContext(
    OpenApi.annotations({
      identifier: "createImageEdit",
      summary: "Edit an image",
      description: "The same as `/images/generations` with the reference images required, as a form or as JSON."
    })
  )

export const Images = HttpApiGroup.make("images")
  .annotate(OpenApi.Description, "An image is made while you wait, and its link is permanent.")
  .add(generateImage)
  .add(editImage)
  .addError(GenerationErrors)
  .addError(Conflict)
  .middleware(Authenticated)

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

export const imageForm = (parts: ReadonlyArray<Part>): JsonObject => jsonOf(ImageEditRequest.fields, parts)

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

  return Effect.fnUntraced(function* (admission: Admission, body: unknown, needsReference: boolean) {
    const { record } = admission
    const { at, caller } = record.facts
    const refusal = attribute(admission, body)
    if (refusal !== undefined) return yield* refusal
    const decoded = yield* decodeImageBody(body, { needsReference })
    const found = catalog.current.findAt(decoded.model, at)
    const params = found?.surface === "image" ? ofModel(decoded, found.id, body) : decoded
    record.add({ type: "resolved", model: found?.id ?? decoded.model })
    yield* requireAllowed(caller, "image", found)
    return { params, offer: offerFor(params, ({ id }) => mayUseModel(caller, id), at) }
  })
})
