import { Either, Schema } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import type { Picture } from "../../domain/Media.ts"
import type { ImageRoute, RouteBase, SecondsAs, Shape, VideoRoute } from "../../domain/Model.ts"
import { pixelsOf } from "../../domain/Shape.ts"
import type { VideoRequest } from "../../domain/VideoRules.ts"
import { Encoded as Base64 } from "../../services/media/Chunks.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import { unsentFailure } from "../client/Classification.ts"
import type { Fields } from "../client/Json.ts"
import { type OptionsDecoder, oneOf, optional, withDefault } from "../client/RouteOptions.ts"
import { toLoggable } from "../client/Upstream.ts"

/** `16:9`, `1536x1024` or `{width, height}`. */
const ShapeAs = oneOf("ratio", "size", "pixels")
type ShapeAs = typeof ShapeAs.Type

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

export interface Submission {
  readonly model: string
  readonly input: Fields
}

type Encoded<A> = Either.Either<A, ProviderFailure>

export interface InputFormat {
  readonly options: OptionsDecoder<JobOptions>
  readonly pictureField: string
  readonly clipField: string
}

const failUnsent = (route: RouteBase, what: string) => Either.left(unsentFailure(route, what))

const tooMany = ({ id, provider }: RouteBase) =>
  Either.left(
    new ProviderFailure({
      class: "request",
      status: undefined,
      param: "image",
      detail: toLoggable(provider, `${id} takes one reference image`),
      unsent: true
    })
  )

const dataUri = ({ bytes, type }: Picture): Base64 => new Base64(bytes, `data:${type};base64,`)

const imageFields = (
  route: RouteBase,
  options: JobOptions,
  usual: string,
  references: ReadonlyArray<Picture>
): Encoded<Fields> => {
  const [first] = references
  if (first === undefined) return Either.right(options.without_image)
  const field = options.image_field ?? usual
  if (options.isList(field)) return Either.right({ ...options.with_image, [field]: references.map(dataUri) })
  return references.length > 1 ? tooMany(route) : Either.right({ ...options.with_image, [field]: dataUri(first) })
}

const encodeSeconds: Readonly<Record<SecondsAs, (seconds: number) => string | number | undefined>> = {
  number: (seconds) => seconds,
  text: String,
  suffixed: (seconds) => `${seconds}s`,
  omitted: () => undefined
}

/** Each of several resolutions must be named: a small picture must not be sold as a large one. */
const sizeFields = (route: ImageRoute, options: JobOptions, { resolution }: ImageRequest): Encoded<Fields> => {
  if (options.sizes === undefined && route.resolutions.size === 1) return Either.right({})
  const size = options.sizes?.[resolution]
  return size === undefined
    ? failUnsent(route, `option sizes has no ${resolution}`)
    : Either.right({ [options.size_field]: size })
}

const encodeShape: Readonly<Record<ShapeAs, (shape: Shape) => unknown>> = {
  ratio: ({ aspectRatio }) => aspectRatio,
  size: ({ size }) => size,
  pixels: ({ size }) => size && pixelsOf(size)
}

const shapeFields = ({ shape_as, shape_field }: JobOptions, { shape }: ImageRequest): Fields =>
  shape === undefined ? {} : { [shape_field]: encodeShape[shape_as](shape) }

export const encodeVideo = (format: InputFormat, route: VideoRoute, request: VideoRequest): Encoded<Submission> => {
  const options = format.options.of(route)
  const { prompt, reference, seconds } = request
  const model = reference === undefined ? route.model : route.imageModel
  if (model === undefined) return failUnsent(route, "takes no reference image")
  const duration = encodeSeconds[route.secondsAs](seconds)
  const length = duration === undefined ? {} : { [options.seconds_field]: duration }
  const image = imageFields(route, options, format.clipField, reference === undefined ? [] : [reference])
  return Either.map(image, (fields) => ({ model, input: { ...options.fixed, ...fields, ...length, prompt } }))
}

export const encodeImage = (format: InputFormat, route: ImageRoute, request: ImageRequest): Encoded<Submission> =>
  Either.gen(function* () {
    const options = format.options.of(route)
    const { prompt, references } = request
    const model = references.length === 0 ? route.model : route.editModel
    if (model === undefined) return yield* failUnsent(route, "cannot edit")
    const image = yield* imageFields(route, options, format.pictureField, references)
    const size = yield* sizeFields(route, options, request)
    return { model, input: { ...options.fixed, ...image, ...size, ...shapeFields(options, request), prompt } }
  })
