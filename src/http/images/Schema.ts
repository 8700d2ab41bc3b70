import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { longestPrompt, mostReferences } from "../../domain/Media.ts"
import { Authenticated } from "../schema/Authenticated.ts"
import { Anything, atMost, Empty, Filled, Integer, upTo } from "../schema/Constraints.ts"
import { described, optional } from "../schema/Described.ts"
import {
  BadGateway,
  BadRequest,
  Conflict,
  Forbidden,
  Internal,
  NoSuchModel,
  OutOfTime,
  PaymentRequired,
  TooLarge,
  TooManyRequests,
  Unavailable
} from "../schema/Errors.ts"
import { IdempotencyKey } from "../schema/IdempotencyKey.ts"
import { Files, Reference, References } from "../schema/Reference.ts"

const model = Filled.annotations({ description: "The catalog id of an image model." })
const prompt = Filled.pipe(upTo(longestPrompt)).annotations({
  description: "What the image shows, or what is to change."
})

const resolutions = ["1K", "2K", "4K", "1k", "2k", "4k"] as const
const formats = ["url", "b64_json"] as const

const texts = {
  resolution: "Decides the price; which ones a model has is in its `params`.",
  quality: "`hd` is the resolution 4K where none is given; anything else has no effect.",
  responseFormat: "Default `url`: the image is stored and the link is permanent.",
  stream: "Only false: images are not streamed.",
  mask: "Not supported: describe the edit in `prompt`.",
  images: "Not supported: use `image`.",
  n: "Only 1."
}

/** What a request for an image may hold. Fields that are not listed are accepted and ignored; null means left out. */
export const ImageGenerationRequest = Schema.Struct({
  model,
  prompt,
  image: optional(References, "Reference images; with any of them the request is an edit."),
  resolution: optional(Schema.Literal(...resolutions), texts.resolution),
  quality: described(Anything, texts.quality),
  response_format: optional(Schema.Literal(...formats), texts.responseFormat),
  n: optional(Schema.Literal(1), texts.n),
  stream: optional(Schema.Literal(false), texts.stream),
  mask: described(Empty, texts.mask),
  images: described(Empty, texts.images)
}).annotations({ identifier: "ImageGenerationRequest" })

export const ImageEditRequest = Schema.Struct({
  ...ImageGenerationRequest.fields,
  image: Schema.Union(Reference, Schema.NonEmptyArray(Reference).pipe(atMost(mostReferences))).annotations({
    description: "The images to edit."
  })
}).annotations({ identifier: "ImageEditRequest" })

/** The same as a form, where an empty text means left out. */
const ImageEditForm = Schema.Struct({
  model,
  prompt,
  image: described(Files, "The images to edit, as files, URLs or base64; named `image` or `image[]`."),
  "image[]": described(Files, "Another name of `image`."),
  resolution: described(Schema.Literal(...resolutions, ""), texts.resolution),
  quality: described(Anything, texts.quality),
  response_format: described(Schema.Literal(...formats, ""), texts.responseFormat),
  n: described(Schema.Literal("1", ""), texts.n),
  stream: described(Schema.Literal("false", ""), texts.stream),
  mask: described(Schema.Literal(""), texts.mask),
  images: described(Schema.Literal(""), texts.images)
})

export const ImageResponse = Schema.Struct({
  created: Integer.annotations({ description: "Unix seconds." }),
  data: Schema.Array(
    Schema.Struct({
      url: described(Schema.String, "A permanent link; with the response format `url`."),
      b64_json: described(Schema.String, "The image's bytes; with the response format `b64_json`."),
      revised_prompt: described(Schema.String, "What the provider made of the prompt, where it says so.")
    })
  ).annotations({ description: "One image." })
}).annotations({ identifier: "ImageResponse" })

const generate = HttpApiEndpoint.post("generate", "/images/generations")
  .setHeaders(IdempotencyKey)
  .setPayload(ImageGenerationRequest)
  .addSuccess(ImageResponse)
  .annotateContext(
    OpenApi.annotations({
      identifier: "createImage",
      summary: "Generate or edit an image",
      description: "With reference images it is an edit."
    })
  )

const edit = HttpApiEndpoint.post("edit", "/images/edits")
  .setHeaders(IdempotencyKey)
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
  .add(generate)
  .add(edit)
  .addError(BadRequest)
  .addError(PaymentRequired)
  .addError(Forbidden)
  .addError(NoSuchModel)
  .addError(Conflict)
  .addError(TooLarge)
  .addError(TooManyRequests)
  .addError(Internal)
  .addError(BadGateway)
  .addError(Unavailable)
  .addError(OutOfTime)
  .middleware(Authenticated)
