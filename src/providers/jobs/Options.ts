import { Schema } from "effect"
import type { Resolution } from "../../domain/Model.ts"
import { oneOf, optional } from "../client/RouteOptions.ts"

export type Fields = Readonly<Record<string, unknown>>

/** `16:9`, `1536x1024` or `{width, height}`. */
const ShapeAs = oneOf("ratio", "size", "pixels")
export type ShapeAs = typeof ShapeAs.Type

export interface JobOptions {
  readonly imageField: string | undefined
  readonly isList: (field: string) => boolean
  readonly secondsField: string
  readonly sizeField: string
  readonly sizes: Readonly<Partial<Record<Resolution, unknown>>> | undefined
  readonly shapeField: string
  readonly shapeAs: ShapeAs
  readonly fixed: Fields
  readonly withImage: Fields
  readonly withoutImage: Fields
}

const Field = Schema.String.pipe(Schema.pattern(/^[a-z][a-z0-9_]*$/, { message: () => "must be the name of a field" }))
const Size = Schema.Union(Schema.String, Schema.Struct({ width: Schema.Int, height: Schema.Int }))
export const InputFields = Schema.Record({ key: Field, value: Schema.Unknown })

export const commonOptions = {
  image_field: optional(Field),
  seconds_field: optional(Field),
  size_field: optional(Field),
  sizes: optional(Schema.Struct({ "1K": optional(Size), "2K": optional(Size), "4K": optional(Size) })),
  shape_field: optional(Field),
  shape_as: optional(ShapeAs),
  with_image: optional(InputFields),
  without_image: optional(InputFields)
}
const Common = Schema.Struct(commonOptions)

export const makeJobOptions = (
  given: typeof Common.Type,
  { fixed, isList }: Pick<JobOptions, "fixed" | "isList">
): JobOptions => ({
  imageField: given.image_field,
  isList,
  secondsField: given.seconds_field ?? "duration",
  sizeField: given.size_field ?? "resolution",
  sizes: given.sizes,
  shapeField: given.shape_field ?? "aspect_ratio",
  shapeAs: given.shape_as ?? "ratio",
  fixed,
  withImage: given.with_image ?? {},
  withoutImage: given.without_image ?? {}
})
