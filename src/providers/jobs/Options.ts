import { Schema } from "effect"
import { oneOf, optional, withDefault } from "../client/RouteOptions.ts"

export type Fields = Readonly<Record<string, unknown>>

/** `16:9`, `1536x1024` or `{width, height}`. */
const ShapeAs = oneOf("ratio", "size", "pixels")
export type ShapeAs = typeof ShapeAs.Type

const Field = Schema.String.pipe(Schema.pattern(/^[a-z][a-z0-9_]*$/, { message: () => "must be the name of a field" }))
const Size = Schema.Union(Schema.String, Schema.Struct({ width: Schema.Int, height: Schema.Int }))
export const InputFields = Schema.Record({ key: Field, value: Schema.Unknown })

export const commonOptions = {
  image_field: optional(Field),
  seconds_field: withDefault(Field, "duration"),
  size_field: withDefault(Field, "resolution"),
  sizes: optional(Schema.Struct({ "1K": optional(Size), "2K": optional(Size), "4K": optional(Size) })),
  shape_field: withDefault(Field, "aspect_ratio"),
  shape_as: withDefault(ShapeAs, "ratio"),
  with_image: withDefault(InputFields, {}),
  without_image: withDefault(InputFields, {})
}

export type JobOptions = Schema.Struct.Type<typeof commonOptions> & {
  readonly isList: (field: string) => boolean
  readonly fixed: Fields
}
