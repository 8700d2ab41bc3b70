import { Either } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import type { Picture } from "../../domain/Media.ts"
import type { ImageRoute, RouteBase, SecondsAs, VideoRoute } from "../../domain/Model.ts"
import type { VideoRequest } from "../../domain/Video.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import { Encoded } from "../../services/runtime/Pieces.ts"
import { loggable } from "../client/Upstream.ts"
import type { Fields, JobOptions } from "./Options.ts"

/** What is asked of which of the host's models. */
export interface Submission {
  readonly model: string
  /** With each reference as an `Encoded`. */
  readonly input: Fields
}

export type Made<A> = Either.Either<A, ProviderFailure>

/** How a host wants its jobs. */
export interface Wire {
  /** Left says what is wrong with the route's options. */
  readonly options: (route: RouteBase) => Either.Either<JobOptions, string>
  /** The usual fields of references. */
  readonly pictureField: string
  readonly clipField: string
}

/** The route cannot do this, as the catalog has it; another one may. */
const unable = ({ id, provider }: RouteBase, what: string) =>
  Either.left(
    new ProviderFailure({
      class: "retry",
      status: undefined,
      detail: loggable(provider, `${id}: ${what}`),
      unsent: true
    })
  )

const tooMany = ({ id, provider }: RouteBase) =>
  Either.left(
    new ProviderFailure({
      class: "request",
      status: undefined,
      param: "image",
      detail: loggable(provider, `${id} takes one reference image`),
      unsent: true
    })
  )

const read = (wire: Wire, route: RouteBase): Made<JobOptions> =>
  Either.orElse(wire.options(route), (wrong) => unable(route, wrong))

const dataUri = ({ bytes, type }: Picture): Encoded => new Encoded(bytes, `data:${type};base64,`)

const imageFields = (
  route: RouteBase,
  options: JobOptions,
  usual: string,
  references: ReadonlyArray<Picture>
): Made<Fields> => {
  const [first] = references
  if (first === undefined) return Either.right(options.withoutImage)
  const field = options.imageField ?? usual
  if (options.isList(field)) return Either.right({ ...options.withImage, [field]: references.map(dataUri) })
  return references.length > 1 ? tooMany(route) : Either.right({ ...options.withImage, [field]: dataUri(first) })
}

const encoded: Readonly<Record<SecondsAs, (seconds: number) => string | number | undefined>> = {
  number: (seconds) => seconds,
  text: String,
  suffixed: (seconds) => `${seconds}s`,
  omitted: () => undefined
}

/** A route of several resolutions has to say each of them: a smaller picture must not be sold as a large one. */
const sizeFields = (route: ImageRoute, options: JobOptions, { resolution }: ImageRequest): Made<Fields> => {
  if (options.sizes === undefined && route.resolutions.size === 1) return Either.right({})
  const size = options.sizes?.[resolution]
  return size === undefined
    ? unable(route, `option sizes has no ${resolution}`)
    : Either.right({ [options.sizeField]: size })
}

/** Writes requests as jobs of a host. */
export const submissions = (wire: Wire) => ({
  video: (route: VideoRoute, request: VideoRequest): Made<Submission> =>
    Either.gen(function* () {
      const options = yield* read(wire, route)
      const { prompt, reference, seconds } = request
      const model = reference === undefined ? route.model : route.imageModel
      if (model === undefined) return yield* unable(route, "takes no reference image")
      const duration = encoded[route.secondsAs](seconds)
      const image = yield* imageFields(route, options, wire.clipField, reference === undefined ? [] : [reference])
      const length = duration === undefined ? {} : { [options.secondsField]: duration }
      return { model, input: { ...options.fixed, ...image, ...length, prompt } }
    }),
  image: (route: ImageRoute, request: ImageRequest): Made<Submission> =>
    Either.gen(function* () {
      const options = yield* read(wire, route)
      const { prompt, references } = request
      const model = references.length === 0 ? route.model : route.editModel
      if (model === undefined) return yield* unable(route, "cannot edit")
      const image = yield* imageFields(route, options, wire.pictureField, references)
      const size = yield* sizeFields(route, options, request)
      return { model, input: { ...options.fixed, ...image, ...size, prompt } }
    })
})
