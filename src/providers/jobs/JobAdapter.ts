import { Clock, Effect, Either, Schema, Stream } from "effect"
import type { ImageRequest } from "../../domain/Image.ts"
import { maxPictureBytes, type Picture } from "../../domain/Media.ts"
import type { ImageRoute, ProviderAccount, RouteBase, SecondsAs, Shape, VideoRoute } from "../../domain/Model.ts"
import { pixelsOf } from "../../domain/Shape.ts"
import type { VideoRequest } from "../../domain/VideoRules.ts"
import { imageFeatures } from "../../services/catalog/EntryFields.ts"
import { Base64Field as Base64, fromBase64 } from "../../services/media/Base64.ts"
import { Fetcher, type FetchFailed } from "../../services/media/Fetcher.ts"
import {
  type FailureClass,
  type ImageAdapter,
  type Provider,
  ProviderFailure,
  type VideoAdapter,
  type VideoHandle
} from "../../services/routing/Provider.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { jobRetries } from "../../services/runtime/Schedules.ts"
import { type DecodeFailure, protocolFailure, unsentFailure } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { type Fields, parsePruned } from "../client/JsonFields.ts"
import { type OptionsDecoder, oneOf, optional, withDefault } from "../client/RouteOptions.ts"
import { toLoggable, Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import { decodeSafely, failWith, fetchFailure, isSuccess, resultRequest } from "../client/UpstreamResponse.ts"

/** How an aspect ratio or size is sent: `16:9`, `1536x1024` or `{width, height}`. */
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
  readonly fixedFields: Fields
}

export interface Submission {
  readonly model: string
  readonly input: Fields
}

type Encoded<A> = Either.Either<A, ProviderFailure>

interface InputFormat {
  readonly optionsDecoder: OptionsDecoder<JobOptions>
  readonly imageField: string
  readonly videoImageField: string
}

const failUnsent = (route: RouteBase, detail: string) => Either.left(unsentFailure(route, detail))

const tooManyReferences = ({ id, provider }: RouteBase) =>
  Either.left(
    new ProviderFailure({
      class: "request",
      status: undefined,
      param: "image",
      detail: toLoggable(provider, `${id} accepts only one reference image`),
      isUnsent: true
    })
  )

const dataUri = ({ bytes, type }: Picture): Base64 => new Base64(bytes, `data:${type};base64,`)

const imageFields = (
  route: RouteBase,
  options: JobOptions,
  defaultField: string,
  references: ReadonlyArray<Picture>
): Encoded<Fields> => {
  const [first] = references
  if (first === undefined) return Either.right(options.without_image)
  const field = options.image_field ?? defaultField
  if (options.isList(field)) return Either.right({ ...options.with_image, [field]: references.map(dataUri) })
  return references.length > 1
    ? tooManyReferences(route)
    : Either.right({ ...options.with_image, [field]: dataUri(first) })
}

const encodeSeconds: Readonly<Record<SecondsAs, (seconds: number) => string | number | undefined>> = {
  number: (seconds) => seconds,
  text: String,
  suffixed: (seconds) => `${seconds}s`,
  omitted: () => undefined
}

/** Each resolution needs an entry in `sizes`, or a small image could be charged as a large one. */
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
  const options = format.optionsDecoder.of(route)
  const { prompt, reference, seconds } = request
  const model = reference === undefined ? route.model : route.imageModel
  if (model === undefined) return failUnsent(route, "the route accepts no reference image")
  const duration = encodeSeconds[route.secondsAs](seconds)
  const length = duration === undefined ? {} : { [options.seconds_field]: duration }
  const image = imageFields(route, options, format.videoImageField, reference === undefined ? [] : [reference])
  return Either.map(image, (fields) => ({ model, input: { ...options.fixedFields, ...fields, ...length, prompt } }))
}

export const encodeImage = (format: InputFormat, route: ImageRoute, request: ImageRequest): Encoded<Submission> =>
  Either.gen(function* () {
    const options = format.optionsDecoder.of(route)
    const { prompt, references } = request
    const model = references.length === 0 ? route.model : route.editModel
    if (model === undefined) return yield* failUnsent(route, "the route cannot edit")
    const image = yield* imageFields(route, options, format.imageField, references)
    const size = yield* sizeFields(route, options, request)
    return { model, input: { ...options.fixedFields, ...image, ...size, ...shapeFields(options, request), prompt } }
  })

export interface Handle {
  readonly id: string
  readonly status: string
  readonly result: string
  readonly cancel: string
}

const maxPathLength = 2_000
const encodedSeparator = /%2f|%5c|%2e/i

/** Returns the provider's job id, or undefined if it cannot be part of a URL. */
export const readId = (id: unknown): string | undefined =>
  typeof id === "string" && id !== "" && !/\p{Surrogate}/u.test(id) ? id : undefined

/** Whether the path stays below the account's base URL, however the provider normalizes it. */
export const isBelowBaseUrl = (account: ProviderAccount, path: string): boolean => {
  const address = `${account.baseUrl}${path}`
  if (!path.startsWith("/") || path.length > maxPathLength || encodedSeparator.test(path) || !URL.canParse(address))
    return false
  const base = new URL(`${account.baseUrl}/`)
  const url = new URL(address)
  return url.origin === base.origin && `${url.pathname}${url.search}` === `${base.pathname.slice(0, -1)}${path}`
}

/** Returns the path of a URL below the account's base URL. The URL may be the provider's or a proxy's. */
export const toAccountPath = (account: ProviderAccount, url: unknown): string | undefined => {
  if (typeof url !== "string" || !URL.canParse(url)) return undefined
  const base = new URL(`${account.baseUrl}/`)
  const { host, pathname, search } = new URL(url)
  const hasBasePath = host === base.host && pathname.startsWith(base.pathname)
  const path = `${hasBasePath ? pathname.slice(base.pathname.length - 1) : pathname}${search}`
  return isBelowBaseUrl(account, path) ? path : undefined
}

const StoredHandle = Schema.parseJson(
  Schema.Struct({ id: Schema.String, status: Schema.String, result: Schema.String, cancel: Schema.String })
)

export const encodeHandle: (handle: Handle) => VideoHandle = Schema.encodeSync(StoredHandle)

const decodeStoredHandle = Schema.decodeUnknownEither(StoredHandle)

/** Decodes the handle of a job. A `Left` explains why it is invalid or leads outside the account's base URL. */
export const decodeHandleText = (account: ProviderAccount, text: VideoHandle): Either.Either<Handle, string> =>
  Either.flatMap(
    Either.mapLeft(decodeStoredHandle(text), () => "the handle cannot be read"),
    (handle) =>
      [handle.status, handle.result, handle.cancel].every((path) => isBelowBaseUrl(account, path))
        ? Either.right(handle)
        : Either.left("the handle contains a path outside the provider's base_url")
  )

/** An image or video at an http(s) URL or in a `data:` URI. */
export interface Media {
  readonly url: string
  readonly revisedPrompt: string | undefined
}

type JobEnd =
  | { readonly state: "done"; readonly media: Media }
  | { readonly state: "failed"; readonly failure: ProviderFailure }

/** The state of a job. */
export type Progress = { readonly state: "queued" | "in_progress"; readonly percent?: number | undefined } | JobEnd

/** `completed`: the job has ended; only its result shows whether it failed. `unknown`: the API has no such status. */
export type ReportedProgress =
  | Progress
  | { readonly state: "completed" }
  | { readonly state: "unknown"; readonly status: string }

/** Whether a status means that the job failed, including the words of other providers. */
export const isFailed = (status: string): boolean => /^(failed|failure|error|cancell?ed|aborted)$/i.test(status)

const isInline = (url: string) => /^data:/i.test(url)

const decodeInline = (account: ProviderAccount, url: string) => {
  const comma = url.indexOf(",")
  const isBase64 = /;base64$/i.test(url.slice(0, Math.max(0, comma)))
  const bytes = isBase64 ? fromBase64(url.slice(comma + 1)) : undefined
  return bytes === undefined || bytes.length === 0
    ? protocolFailure(account, 200, "a data URI that is not base64")
    : Effect.succeed(bytes)
}

const hasEnded = (progress: ReportedProgress): progress is JobEnd =>
  progress.state === "done" || progress.state === "failed"

export interface JobFormat extends InputFormat {
  readonly name: string
  readonly authorization: UpstreamRequest["authorization"]
  /** `placeholder` is unguessable. `isAwaited`: the gateway waits for the result, so the provider may respond with it. */
  readonly encode: (
    submission: Submission,
    placeholder: string,
    isAwaited: boolean
  ) => Pick<UpstreamRequest, "path" | "headers" | "body">
  readonly decodeHandle: (account: ProviderAccount, body: unknown, model: string) => Handle | undefined
  /** Returns undefined if the response has no status. */
  readonly decodeProgress: (account: ProviderAccount, response: UpstreamResponse) => ReportedProgress | undefined
  /** Absent if the progress of an ended job contains the result. */
  readonly decodeResult?: (
    account: ProviderAccount,
    response: UpstreamResponse,
    refusal: ProviderFailure
  ) => Either.Either<Progress, ProviderFailure>
  readonly decodeFailure: DecodeFailure
  readonly cancelMethod: "POST" | "PUT"
  /** Whether a refusal to cancel means that the job has ended. */
  readonly isCompleted?: (body: unknown) => boolean
}

const maxVideoBytes = 2 * 1024 * 1024 * 1024
const videoFetchSeconds = 600
const imageFetchSeconds = 60
const firstPauseMillis = 500
const maxPauseMillis = 3_000
const maxStatusLength = 100
const maxLoggedStatuses = 100

const transientClasses: ReadonlySet<FailureClass> = new Set(["retry", "limit", "network", "timeout"])
const isTransient = (failure: ProviderFailure) => transientClasses.has(failure.class)
const mayRetryFetch = ({ reason, status = 0 }: FetchFailed) =>
  reason === "network" || reason === "timeout" || status >= 500

/** An accepted job is billed, so calls for it are retried. */
const retry = <A, E>(effect: Effect.Effect<A, E>, mayRetry: (failure: E) => boolean) =>
  Effect.retry(effect, { while: mayRetry, schedule: jobRetries })

/** Returns a failure after which the provider may run the job. It has no status, because the provider itself sent none. */
const unknownOutcome = (account: ProviderAccount, failure: "network" | "timeout", detail: string): ProviderFailure =>
  new ProviderFailure({ class: failure, status: undefined, isRequestFault: true, detail: toLoggable(account, detail) })

const submitFailure = (account: ProviderAccount) => (failure: ProviderFailure) => {
  if (failure.status === undefined) return failure
  const failureClass = failure.class === "timeout" ? "timeout" : "network"
  return unknownOutcome(
    account,
    failureClass,
    `the response to the submission was interrupted: ${failure.status} ${failure.detail}`
  )
}

/** An error page comes from a proxy. The provider behind it may have accepted the job. */
const isProxyError = ({ body, status }: UpstreamResponse) =>
  status >= 500 && status !== 503 && parsePruned(body) === undefined

const readHandle = ({ provider }: RouteBase, text: VideoHandle) =>
  Either.mapLeft(
    decodeHandleText(provider, text),
    (problem) => new ProviderFailure({ class: "retry", status: undefined, detail: problem, isUnsent: true })
  )

export const makeJobAdapters = Effect.fnUntraced(function* (format: JobFormat) {
  const upstream = yield* Upstream
  const fetcher = yield* Fetcher
  const ids = yield* Ids
  const { authorization, decodeResult } = format
  const fail = failWith(format.decodeFailure)
  const loggedStatuses = new Set<string>()

  const submit = Effect.fnUntraced(function* (route: RouteBase, submission: Submission, isAwaited: boolean) {
    const account = route.provider
    const encoded = format.encode(submission, ids.unguessable(), isAwaited)
    const sent = upstream.post({ account, authorization, ...encoded })
    const response = yield* Effect.mapError(sent, submitFailure(account))
    const { body, status } = response
    if (isProxyError(response)) {
      return yield* unknownOutcome(account, status === 504 ? "timeout" : "network", `${status} ${body}`)
    }
    if (!isSuccess(response)) return yield* fail(route, response)
    const decoded = Effect.try(() => format.decodeHandle(account, parsePruned(body), submission.model))
    const handle = yield* Effect.orElseSucceed(decoded, () => undefined)
    return handle === undefined
      ? yield* unknownOutcome(account, "network", `${status} without a job id`)
      : { handle, response }
  })

  const get = ({ provider: account }: RouteBase, path: string) =>
    upstream.post({ account, method: "GET", path, authorization })

  /** The finished job is billed, so the result is fetched again after an error. */
  const getResult = (route: RouteBase, handle: Handle, retries = 2): ReturnType<typeof get> =>
    Effect.flatMap(get(route, handle.result), (response) =>
      response.status === 500 && retries > 0
        ? Effect.delay(getResult(route, handle, retries - 1), firstPauseMillis)
        : Effect.succeed(response)
    )

  const pollResult =
    decodeResult &&
    Effect.fnUntraced(function* (route: RouteBase, handle: Handle) {
      const { provider } = route
      const response = yield* getResult(route, handle)
      const now = yield* Clock.currentTimeMillis
      return yield* decodeSafely(provider, response, () =>
        decodeResult(provider, response, format.decodeFailure(provider, response, now))
      )
    })

  const decodeProgress = ({ provider }: RouteBase, response: UpstreamResponse) =>
    decodeSafely(provider, response, () => Effect.succeed(format.decodeProgress(provider, response)))

  const logUnknownStatus = ({ provider }: RouteBase, status: string) => {
    const label = toLoggable(provider, status).slice(0, maxStatusLength)
    if (loggedStatuses.has(label) || loggedStatuses.size >= maxLoggedStatuses) return Effect.void
    loggedStatuses.add(label)
    return Effect.logWarning(
      `${format.name} at ${provider.name} reported an unknown job status, ${label}. The gateway keeps polling the job.`
    )
  }

  const poll = Effect.fnUntraced(function* (route: RouteBase, handle: Handle) {
    const response = yield* get(route, handle.status)
    if (!isSuccess(response)) return yield* fail(route, response)
    const progress = yield* decodeProgress(route, response)
    if (progress?.state === "completed" && pollResult !== undefined) return yield* pollResult(route, handle)
    if (progress === undefined || progress.state === "completed") {
      return yield* protocolFailure(route.provider, response.status, "a job without a status")
    }
    if (progress.state !== "unknown") return progress
    yield* logUnknownStatus(route, progress.status)
    return { state: "in_progress" as const }
  })

  const readResult: (route: RouteBase, handle: Handle) => Effect.Effect<Progress, ProviderFailure> = pollResult ?? poll

  const cancel = Effect.fnUntraced(function* (route: RouteBase, handle: Handle) {
    const { provider: account } = route
    const response = yield* upstream.post({ account, method: format.cancelMethod, path: handle.cancel, authorization })
    if (isSuccess(response) || format.isCompleted?.(parsePruned(response.body)) === true) return
    yield* fail(route, response)
  })

  const fetchImage = ({ provider }: RouteBase, { url }: Media) => {
    if (isInline(url)) return decodeInline(provider, url)
    const result = { url, limitBytes: maxPictureBytes, withinSeconds: imageFetchSeconds }
    const bytes = fetcher.bytes(resultRequest(provider, authorization, result))
    return Effect.mapError(retry(bytes, mayRetryFetch), fetchFailure(provider))
  }

  const fetchVideo = ({ provider }: RouteBase, { url }: Media) => {
    if (isInline(url)) return Stream.fromEffect(decodeInline(provider, url))
    const result = { url, limitBytes: maxVideoBytes, withinSeconds: videoFetchSeconds }
    return Stream.mapError(fetcher.stream(resultRequest(provider, authorization, result)), fetchFailure(provider))
  }

  const awaitEnd = (
    route: RouteBase,
    handle: Handle,
    pause = firstPauseMillis
  ): Effect.Effect<JobEnd, ProviderFailure> =>
    Effect.flatMap(Effect.delay(retry(poll(route, handle), isTransient), pause), (progress) =>
      hasEnded(progress) ? Effect.succeed(progress) : awaitEnd(route, handle, Math.min(pause * 1.5, maxPauseMillis))
    )

  /** Ignores errors and stops after 2 seconds, because a request may be waiting. */
  const tryCancel = (route: RouteBase, handle: Handle) =>
    cancel(route, handle).pipe(Effect.interruptible, Effect.timeout("2 seconds"), Effect.ignore)

  const image: ImageAdapter = {
    features: (options) => {
      const { shape_as } = Either.getOrElse(format.optionsDecoder.decode(options), () => ({ shape_as: "ratio" }))
      return new Set(imageFeatures.filter((feature) => feature !== "aspect_ratio" || shape_as === "ratio"))
    },
    generate: Effect.fn(`${format.name}.generate`)(function* (route, request) {
      const submission = yield* encodeImage(format, route, request)
      const end = yield* Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(restore(submit(route, submission, true)), ({ handle, response }) => {
          const progress = Effect.orElseSucceed(decodeProgress(route, response), () => undefined)
          return Effect.flatMap(progress, (firstProgress) =>
            firstProgress !== undefined && hasEnded(firstProgress)
              ? Effect.succeed(firstProgress)
              : Effect.onError(restore(awaitEnd(route, handle)), () => tryCancel(route, handle))
          )
        })
      )
      if (end.state === "failed") return yield* end.failure
      return { bytes: yield* fetchImage(route, end.media), revisedPrompt: end.media.revisedPrompt }
    })
  }

  const video: VideoAdapter = {
    submit: Effect.fn(`${format.name}.submit`)(function* (route, request) {
      const { handle } = yield* submit(route, yield* encodeVideo(format, route, request), false)
      return encodeHandle(handle)
    }),
    poll: Effect.fn(`${format.name}.poll`)(function* (route, handle) {
      const progress = yield* poll(route, yield* readHandle(route, handle))
      return progress.state === "done" ? { state: "done" } : progress
    }),
    download: (route, handle) =>
      Stream.unwrap(
        Effect.gen(function* () {
          const progress = yield* readResult(route, yield* readHandle(route, handle))
          if (progress.state === "done") return fetchVideo(route, progress.media)
          if (progress.state === "failed") return yield* progress.failure
          return yield* protocolFailure(route.provider, 200, "the result is not available yet")
        })
      ),
    cancel: Effect.fn(`${format.name}.cancel`)(function* (route, handle) {
      yield* cancel(route, yield* readHandle(route, handle))
    })
  }

  return { image, video }
})

export const makeJobProvider = (
  adapter: string,
  format: JobFormat
): Effect.Effect<Provider, never, Upstream | Fetcher> =>
  Effect.map(makeJobAdapters(format), (surfaces) => ({ adapter, options: format.optionsDecoder.decode, ...surfaces }))
