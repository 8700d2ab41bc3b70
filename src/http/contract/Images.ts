import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { mostReferences } from "../../domain/Media.ts"
import { Authenticated } from "./Authenticated.ts"
import { described } from "./Described.ts"
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
} from "./Errors.ts"
import { IdempotencyKey } from "./IdempotencyKey.ts"
import { Integer } from "./Integer.ts"
import { File, Filled, References } from "./Reference.ts"

const model = Filled.annotations({ description: "The catalog id of an image model." })
const prompt = Filled.annotations({ description: "What the image shows, or what is to change." })

const optional = {
  resolution: described(
    Schema.Literal("1K", "2K", "4K"),
    "Decides the price; which ones a model has is in its `params`. Case does not matter."
  ),
  quality: described(Schema.String, "`hd` is the resolution 4K where none is given; others have no effect."),
  response_format: described(
    Schema.Literal("url", "b64_json"),
    "Default `url`: the image is stored and the link is permanent."
  )
}
const n = Schema.Literal(1)

/** What a request for an image may hold. Fields that are not listed are accepted and ignored; null means left out. */
export const ImageGenerationRequest = Schema.Struct({
  model,
  prompt,
  image: described(References, "Reference images; with any of them the request is an edit."),
  ...optional,
  n: described(n, "Only 1.")
}).annotations({ identifier: "ImageGenerationRequest" })

export const ImageEditRequest = Schema.Struct({
  ...ImageGenerationRequest.fields,
  image: References.annotations({ description: "The images to edit." })
}).annotations({ identifier: "ImageEditRequest" })

/** The same as a form. */
const ImageEditForm = Schema.Struct({
  model,
  prompt,
  image: Schema.Union(File, Schema.Array(File).pipe(Schema.maxItems(mostReferences))).annotations({
    description: "The images to edit, as files named `image` or `image[]`."
  }),
  ...optional,
  n: described(Schema.Literal("1"), "Only 1.")
})

export const ImageResponse = Schema.Struct({
  created: Integer,
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
