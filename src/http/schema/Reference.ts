import { Schema } from "effect"
import { mostReferences } from "../../domain/Media.ts"
import { atMost, Filled } from "./Constraints.ts"

export const Reference = Filled.annotations({
  identifier: "ReferenceImage",
  description: "An http(s) URL, a `data:` URL or bare base64 of a PNG, JPEG, WebP or GIF of at most 20 MiB."
})
export const References = Schema.Union(Reference, Schema.Array(Reference).pipe(atMost(mostReferences)))

/** A file of a form, or a text that JSON could have in its place. */
const File = Schema.String.annotations({ jsonSchema: { type: "string", format: "binary" } })
export const Files = Schema.Union(File, Schema.Array(File).pipe(atMost(mostReferences)))
