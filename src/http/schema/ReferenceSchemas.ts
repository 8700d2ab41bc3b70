import { Either, Schema } from "effect"
import { atMost, described } from "../../domain/Constraints.ts"
import { maxReferences } from "../../domain/Media.ts"
import { readReferences } from "../body/ReferenceFields.ts"
import { refuseAt } from "../body/Refusals.ts"
import { readWith } from "./Decoding.ts"
import { urlLimit } from "./SharedFields.ts"

/** Only described: `readReferences` also takes bytes, in place of a form's files and of long texts. */
const Reference = Schema.declare((_value): _value is unknown => true, {
  identifier: "ReferenceImage",
  description:
    "An http(s) URL, a `data:` URL or bare base64 of a PNG, JPEG, WebP or GIF of at most 20 MiB. An http(s) URL has at most 8,192 characters.",
  jsonSchema: { type: "string", minLength: 1, ...urlLimit },
  arbitrary: () => (fc) => fc.string({ minLength: 1 })
})

const Frame = Schema.Union(
  Reference,
  Schema.Struct({
    image_url: Reference,
    file_id: described(Schema.Null, "Not supported: send the image itself, or its URL as `image_url`.")
  })
)

const few = atMost(maxReferences)

export const References = readWith(Schema.Union(Reference, few(Schema.Array(Reference))), (value) =>
  readReferences("image", value)
)

export const RequiredReferences = readWith(Schema.Union(Reference, few(Schema.NonEmptyArray(Reference))), (value) =>
  Either.filterOrLeft(
    readReferences("image", value),
    (references) => references.length > 0,
    () => refuseAt("image", "image", "is required")
  )
)

export const Frames = readWith(Schema.Union(Frame, few(Schema.Array(Frame))), (value) =>
  readReferences("input_reference", value)
)

const File = Schema.String.annotations({ jsonSchema: { type: "string", format: "binary" } })
export const Files = Schema.Union(File, few(Schema.Array(File)))
