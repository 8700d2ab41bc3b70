import { Schema } from "effect"
import { mostReferences } from "../../domain/Media.ts"
import { refuseAt, refused } from "../body/Fields.ts"
import { readReferences } from "../body/References.ts"
import { atMost } from "./Constraints.ts"
import { readWith } from "./Decoding.ts"

/** Only described: `readReferences` takes bytes too, which stand in the place of a form's files and of long texts. */
const Reference = Schema.declare((_value): _value is unknown => true, {
  identifier: "ReferenceImage",
  description: "An http(s) URL, a `data:` URL or bare base64 of a PNG, JPEG, WebP or GIF of at most 20 MiB.",
  jsonSchema: { type: "string", minLength: 1 },
  arbitrary: () => (fc) => fc.string({ minLength: 1 })
})

const Frame = Schema.Union(
  Reference,
  Schema.Struct({
    image_url: Reference,
    file_id: Schema.optional(Schema.Null).annotations({
      description: "Not supported: send the image itself, or its URL as `image_url`."
    })
  })
)

const few = atMost(mostReferences)

export const References = readWith(Schema.Union(Reference, few(Schema.Array(Reference))), (value) =>
  readReferences("image", value)
)

export const RequiredReferences = readWith(Schema.Union(Reference, few(Schema.NonEmptyArray(Reference))), (value) => {
  const references = readReferences("image", value)
  return refused(references) || references.length > 0 ? references : refuseAt("image", "image", "is required")
})

export const Frames = readWith(Schema.Union(Frame, few(Schema.Array(Frame))), (value) =>
  readReferences("input_reference", value)
)

/** A file of a form, or a text that JSON could have in its place. */
const File = Schema.String.annotations({ jsonSchema: { type: "string", format: "binary" } })
export const Files = Schema.Union(File, few(Schema.Array(File)))
