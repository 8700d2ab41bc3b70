import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Effect, Either, Schema } from "effect"
import { type Caller, mayUseModel } from "../../domain/ApiKey.ts"
import { Anything, describedField, Integer, matching, NonEmptyString, optional } from "../../domain/Constraints.ts"
import type { Failure, InvalidRequest } from "../../domain/Failure.ts"
import { chooseVariant, defaultFormat, type ImageParams } from "../../domain/Image.ts"
import { Resolution } from "../../domain/Model.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import type { ImageTask } from "../../services/images/ImageGenerations.ts"
import { type Admission, requireAllowed } from "../admission/Admission.ts"
import { attribute } from "../admission/RequestContext.ts"
import { isAbsent, isObject, isString, type JsonObject } from "../body/Guards.ts"
import type { Part } from "../body/Multipart.ts"
import { Conflict, GenerationErrors } from "../errors/ErrorMessages.ts"
import { makeBodyDecoder, problem } from "../schema/Decoding.ts"
import { Authenticated, MediaHeaders } from "../schema/Headers.ts"
import {
  allowEmpty,
  constantField,
  endUserFields,
  formToJson,
  modelField,
  mustBeOneOf,
  promptField,
  refusedField,
  toForm,
  withFormText
} from "../schema/SharedFields.ts"
import { Files, imageInBrackets, References, RequiredReferences } from "./ImageReferences.ts"

const model = modelField("an image model")
const prompt = promptField("A description of the image or of the change.")

const resolutions = [...Resolution.literals, "1k", "2k", "4k"] as const
const maxEchoLength = 32

/** Accepts any text, because `domain/Image.ts` checks the resolution against the model. */
const AnyResolution = NonEmptyString.annotations({
  ...problem(mustBeOneOf(Resolution.literals)),
  jsonSchema: { type: "string", enum: [...resolutions] }
})
const ResolutionField = Schema.transform(AnyResolution, Schema.String, {
  strict: true,
  decode: (text) => text.slice(0, maxEchoLength).toUpperCase(),
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
  mask: refusedField("describe the edit in `prompt`"),
  images: refusedField("use `image`"),
  image: optional(References, "Reference images. They turn the request into an edit."),
  n: constantField(1, "must be 1: send one request per image", "Must be 1."),
  response_format: optional(
    Format,
    "The default is `url`: the gateway stores the image and returns a permanent link. For models whose id begins with `gpt-image`, the default is both."
  ).pipe(withFormText(Schema.Literal(...Format.literals, ""))),
  stream: constantField(false, "must be false: images are not streamed", "Must be false: images are not streamed."),
  resolution: optional(ResolutionField, "Determines the price. The model's `params` list its resolutions.").pipe(
    withFormText(Schema.Literal(...resolutions, ""))
  ),
  size: optional(
    Size,
    "Width and height, or `auto`. The nearest size with the same orientation is used, see the model's `params`."
  ).pipe(withFormText(allowEmpty(Size))),
  aspect_ratio: optional(
    AspectRatio,
    "Such as `16:9`, or `auto`. The nearest ratio with the same orientation is used, see the model's `params`."
  ).pipe(withFormText(allowEmpty(AspectRatio))),
  quality: describedField(
    Anything,
    "`hd` means the resolution 4K, unless `resolution` is set. Other values have no effect."
  ),
  ...endUserFields
}).annotations({ identifier: "ImageGenerationRequest" })

export const ImageEditRequest = Schema.Struct({
  ...ImageGenerationRequest.fields,
  image: RequiredReferences.annotations({ description: "The images to edit." })
}).annotations({ identifier: "ImageEditRequest" })

const ImageEditForm = toForm(ImageEditRequest.fields, {
  image: describedField(Files, "The images to edit, as files, URLs or base64. The field name is `image` or `image[]`."),
  "image[]": imageInBrackets
})

const ImageResponse = Schema.Struct({
  created: Integer.annotations({ description: "Unix seconds." }),
  size: describedField(Schema.String, "The image's width and height in pixels, such as `1536x1024`."),
  data: Schema.Array(
    Schema.Struct({
      url: describedField(Schema.String, "A permanent link. Absent with the response format `b64_json`."),
      b64_json: describedField(Schema.String, "The image in base64. Absent with the response format `url`."),
      revised_prompt: describedField(Schema.String, "The prompt that the provider used, if it returns one.")
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
      description: "Generates one image. Reference images in `image` turn the request into an edit."
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
      description: "The same as `/images/generations`, but reference images are required. Send a form or JSON."
    })
  )

export const Images = HttpApiGroup.make("images")
  .annotate(OpenApi.Description, "The response contains the finished image. Its link is permanent.")
  .add(generateImage)
  .add(editImage)
  .addError(GenerationErrors)
  .addError(Conflict)
  .middleware(Authenticated)

const decodeGeneration = makeBodyDecoder(ImageGenerationRequest)
const decodeEdit = makeBodyDecoder(ImageEditRequest)

const isHd = (quality: unknown): boolean => isString(quality) && quality.toLowerCase() === "hd"

const omitAuto = (shape: string | null | undefined): string | undefined =>
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
      size: omitAuto(size),
      aspectRatio: omitAuto(aspect_ratio),
      responseFormat: response_format ?? "url"
    })
  )

export const imageForm = (parts: ReadonlyArray<Part>): JsonObject => formToJson(ImageEditRequest.fields, parts)

const applyModelDefaults = (params: ImageParams, id: string, body: unknown): ImageParams => {
  const usesDefaultFormat = !isObject(body) || isAbsent(body.response_format)
  return { ...params, model: id, responseFormat: usesDefaultFormat ? defaultFormat(id) : params.responseFormat }
}

/**
 * Returns a function that decodes a body, whose references are already decoded, and selects its model and variant. If the
 * model cannot serve the request, the failure is in `selection` and decoding still succeeds, because an idempotent replay
 * must work even without the model.
 */
export const makeImageReader = Effect.gen(function* () {
  const catalog = yield* Catalog

  const select = (
    params: ImageParams,
    caller: Caller,
    at: number
  ): Either.Either<Pick<ImageTask, "model" | "variant" | "shape">, Failure> => {
    const model = catalog.current.findAt(params.model, at, caller.discountPercent)
    if (model?.surface !== "image")
      return Either.left(unknownModel(catalog.current, params.model, "image", ({ id }) => mayUseModel(caller, id)))
    return Either.map(chooseVariant(model, params), (choice) => ({ model, ...choice }))
  }

  return Effect.fnUntraced(function* (admission: Admission, body: unknown, needsReference: boolean) {
    const { record } = admission
    const { at, caller } = record.facts
    const refusal = attribute(admission, body)
    if (refusal !== undefined) return yield* refusal
    const bodyParams = yield* decodeImageBody(body, { needsReference })
    const model = catalog.current.findAt(bodyParams.model, at)
    // A replay must work without the model, so its defaults apply even if it is no longer sold.
    const id = model?.surface === "image" ? model.id : bodyParams.model
    const params = applyModelDefaults(bodyParams, id, body)
    record.add({ type: "resolved", model: model?.id ?? bodyParams.model })
    yield* requireAllowed(caller, "image", model)
    return { params, selection: select(params, caller, at) }
  })
})
