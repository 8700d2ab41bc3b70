import { Schema } from "effect"
import { mostReferences } from "../../domain/Media.ts"

export const Filled = Schema.String.pipe(Schema.minLength(1))

export const Reference = Filled.annotations({
  description: "An http(s) URL, a `data:` URL or bare base64 of a PNG, JPEG, WebP or GIF of at most 20 MiB."
})
export const References = Schema.Union(Reference, Schema.Array(Reference).pipe(Schema.maxItems(mostReferences)))
/** A file in a form. */
export const File = Schema.String.annotations({ jsonSchema: { type: "string", format: "binary" } })
