import { Schema } from "effect"
import { described, Filled, matching, optional } from "../../domain/Constraints.ts"
import { ImageUrl } from "../schema/SharedFields.ts"
import { CacheMark } from "./CacheControl.ts"

export const marked = { cache_control: optional(CacheMark) }

export const TextPart = Schema.Struct({
  type: Schema.Literal("text", "input_text", "output_text"),
  text: Schema.String,
  ...marked
}).annotations({ identifier: "TextPart" })
export const RefusalPart = Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String, ...marked })

const Detail = Schema.Literal("auto", "low", "high", "original")

const noFile = described(Schema.Null, "Not supported: send the picture in `image_url`.")

/** A picture as the Messages API has it. */
export const ImageSource = Schema.Union(
  Schema.Struct({ type: Schema.Literal("base64"), media_type: matching(/^image\/[a-zA-Z0-9.+-]+$/), data: Filled }),
  Schema.Struct({ type: Schema.Literal("url"), url: ImageUrl })
)

/** A picture as clients of each dialect send it; `more` are fields of the part. */
export const imagePart = <Fields extends Schema.Struct.Fields>(more: Fields) =>
  Schema.Union(
    Schema.Struct({
      type: Schema.Literal("image_url", "input_image"),
      image_url: Schema.Struct({ url: ImageUrl, detail: optional(Detail) }),
      file_id: noFile,
      ...more
    }),
    Schema.Struct({
      type: Schema.Literal("image_url", "input_image"),
      image_url: ImageUrl,
      detail: optional(Detail),
      file_id: noFile,
      ...more
    }),
    Schema.Struct({ type: Schema.Literal("image"), source: ImageSource, ...more })
  )

export const ImagePart = imagePart(marked).annotations({ identifier: "ImagePart" })
