import { Either, ParseResult, Schema } from "effect"
import type { Resolution, RouteBase } from "../../domain/Model.ts"

export type Fields = Readonly<Record<string, unknown>>

export interface FalOptions {
  /** Where references go: a list under a name that ends in `s`, else one. Undefined: the surface's usual field. */
  readonly imageField: string | undefined
  readonly secondsField: string
  readonly sizeField: string
  /** What the size field says for each resolution. */
  readonly sizes: Readonly<Partial<Record<Resolution, unknown>>> | undefined
  /** Sent with every request. */
  readonly fixed: Fields
  /** Sent with requests that have a reference. */
  readonly withImage: Fields
}

const optional = <A, I>(schema: Schema.Schema<A, I>) => Schema.optionalWith(schema, { exact: true })
const Field = Schema.String.pipe(Schema.pattern(/^[a-z][a-z0-9_]*$/, { message: () => "must be the name of a field" }))
const Size = Schema.Union(Schema.String, Schema.Struct({ width: Schema.Int, height: Schema.Int }))

const own = {
  image_field: optional(Field),
  seconds_field: optional(Field),
  size_field: optional(Field),
  sizes: optional(Schema.Struct({ "1K": optional(Size), "2K": optional(Size), "4K": optional(Size) })),
  with_image: optional(Schema.Record({ key: Field, value: Schema.Unknown }))
}

/** The options that are no fields of the input. */
export const optionNames: ReadonlySet<string> = new Set(Object.keys(own))

const decode = Schema.decodeUnknownEither(Schema.Struct(own), { onExcessProperty: "error" })

/** The route's options: some say how a request is written, all others are fields of it. Left says what is wrong. */
export const optionsOf = ({ options }: RouteBase): Either.Either<FalOptions, string> => {
  const named = Object.entries(options).filter(([name]) => optionNames.has(name))
  const fixed = Object.fromEntries(Object.entries(options).filter(([name]) => !optionNames.has(name)))
  return Either.mapBoth(decode(Object.fromEntries(named)), {
    onLeft: (error) => {
      const issues = ParseResult.ArrayFormatter.formatErrorSync(error)
      return issues.map(({ message, path }) => `option ${path.join(".")}: ${message}`).join("; ")
    },
    onRight: ({ image_field, seconds_field = "duration", size_field = "resolution", sizes, with_image = {} }) => ({
      imageField: image_field,
      secondsField: seconds_field,
      sizeField: size_field,
      sizes,
      fixed,
      withImage: with_image
    })
  })
}
