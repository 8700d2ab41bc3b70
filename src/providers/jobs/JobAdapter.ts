import { Clock, Effect, Either, Schema, Stream } from "effect"
import { largestPicture } from "../../domain/Media.ts"
import type { ProviderAccount, RouteBase } from "../../domain/Model.ts"
import { imageFeatures } from "../../services/catalog/AdapterFeatures.ts"
import { fromBase64 } from "../../services/media/Base64.ts"
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
import { type DecodeFailure, protocolFailure } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { parsePruned } from "../client/Json.ts"
import { toLoggable, Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import { decodeSafely, failWith, fetchFailure, isSuccess, resultRequest } from "../client/UpstreamResponse.ts"
import { encodeImage, encodeVideo, type InputFormat, type Submission } from "./JobInput.ts"

export interface Handle {
  readonly id: string
  readonly status: string
  readonly result: string
  readonly cancel: string
}

const longestPath = 2_000
const hidden = /%2f|%5c|%2e/i

/** A job's id as the host gives it; undefined where it cannot be part of an address. */
export const readId = (given: unknown): string | undefined =>
  typeof given === "string" && given !== "" && !/\p{Surrogate}/u.test(given) ? given : undefined

/** Whether the path stays below the account's own address, whoever reads it. */
export const isInside = (account: ProviderAccount, path: string): boolean => {
  const written = `${account.baseUrl}${path}`
  if (!path.startsWith("/") || path.length > longestPath || hidden.test(path) || !URL.canParse(written)) return false
  const base = new URL(`${account.baseUrl}/`)
  const url = new URL(written)
  return url.origin === base.origin && `${url.pathname}${url.search}` === `${base.pathname.slice(0, -1)}${path}`
}

/** The URL may be the host's or a proxy's. */
export const rebase = (account: ProviderAccount, url: unknown): string | undefined => {
  if (typeof url !== "string" || !URL.canParse(url)) return undefined
  const base = new URL(`${account.baseUrl}/`)
  const { host, pathname, search } = new URL(url)
  const prefixed = host === base.host && pathname.startsWith(base.pathname)
  const path = `${prefixed ? pathname.slice(base.pathname.length - 1) : pathname}${search}`
  return isInside(account, path) ? path : undefined
}

const Stored = Schema.parseJson(
  Schema.Struct({ id: Schema.String, status: Schema.String, result: Schema.String, cancel: Schema.String })
)

export const encodeHandle: (handle: Handle) => VideoHandle = Schema.encodeSync(Stored)

const decode = Schema.decodeUnknownEither(Stored)

/** Left where it leads away from the account's own address. */
export const decodeHandleText = (account: ProviderAccount, text: VideoHandle): Either.Either<Handle, string> =>
  Either.flatMap(
    Either.mapLeft(decode(text), () => "the handle cannot be read"),
    (handle) =>
      [handle.status, handle.result, handle.cancel].every((path) => isInside(account, path))
        ? Either.right(handle)
        : Either.left("the handle leads away from the provider's own address")
  )

/** A picture or clip, and where it is: an http(s) URL, or a `data:` URI. */
export interface Media {
  readonly url: string
  readonly revisedPrompt: string | undefined
}

type End =
  | { readonly state: "done"; readonly media: Media }
  | { readonly state: "failed"; readonly failure: ProviderFailure }

/** A job's state. The effect fails where the call for it fails. */
export type Progress = { readonly state: "queued" | "in_progress"; readonly percent?: number | undefined } | End

/** "completed": the job is over, and its result says how. "unknown": the host uses a status that is not of its API. */
export type Reported =
  | Progress
  | { readonly state: "completed" }
  | { readonly state: "unknown"; readonly status: string }

/** Whether a status says that the job came to nothing, in whatever words of other hosts. */
export const isFailed = (status: string): boolean => /^(failed|failure|error|cancell?ed|aborted)$/i.test(status)

const isInline = (url: string) => /^data:/i.test(url)

/** The bytes of a `data:` URI. */
const decodeInline = (account: ProviderAccount, url: string) => {
  const comma = url.indexOf(",")
  const isBase64 = /;base64$/i.test(url.slice(0, Math.max(0, comma)))
  const bytes = isBase64 ? fromBase64(url.slice(comma + 1)) : undefined
  return bytes === undefined || bytes.length === 0
    ? protocolFailure(account, 200, "a data URI that is not base64")
    : Effect.succeed(bytes)
}

const isOver = (progress: Reported): progress is End => progress.state === "done" || progress.state === "failed"

export interface JobFormat extends InputFormat {
  readonly name: string
  readonly authorization: UpstreamRequest["authorization"]
  /** `mark` is unguessable; `isAwaited`: the host may take its time to respond. */
  readonly encode: (
    submission: Submission,
    mark: string,
    isAwaited: boolean
  ) => Pick<UpstreamRequest, "path" | "headers" | "body">
  readonly decodeHandle: (account: ProviderAccount, body: unknown, model: string) => Handle | undefined
  /** Undefined where the response does not tell. */
  readonly decodeProgress: (account: ProviderAccount, response: UpstreamResponse) => Reported | undefined
  /** Left out where the progress of a job that is over says how it ended. */
  readonly decodeResult?: (
    account: ProviderAccount,
    response: UpstreamResponse,
    refusal: ProviderFailure
  ) => Either.Either<Progress, ProviderFailure>
  readonly decodeFailure: DecodeFailure
  readonly cancelMethod: "POST" | "PUT"
  /** A refusal to cancel can mean that the job is over. */
  readonly isCompleted?: (body: unknown) => boolean
}

const largestClip = 2 * 1024 * 1024 * 1024
const clipSeconds = 600
const pictureSeconds = 60
const firstPauseMillis = 500
const longestPauseMillis = 3_000
const longestWord = 100
const maxWords = 100

const passing: ReadonlySet<FailureClass> = new Set(["retry", "limit", "network", "timeout"])
const mayPass = (failure: ProviderFailure) => passing.has(failure.class)
const mayComeYet = ({ reason, status = 0 }: FetchFailed) =>
  reason === "network" || reason === "timeout" || status >= 500

/** An accepted job is paid for, so its host is asked again before giving up. */
const retry = <A, E>(effect: Effect.Effect<A, E>, mayRetry: (failure: E) => boolean) =>
  Effect.retry(effect, { while: mayRetry, schedule: jobRetries })

/** The job may have been taken; without a status, because the response was not the host's own. */
const unknownOutcome = (account: ProviderAccount, failure: "network" | "timeout", what: string): ProviderFailure =>
  new ProviderFailure({ class: failure, status: undefined, ofRequest: true, detail: toLoggable(account, what) })

const submitFailure = (account: ProviderAccount) => (failure: ProviderFailure) => {
  if (failure.status === undefined) return failure
  const lost = failure.class === "timeout" ? "timeout" : "network"
  return unknownOutcome(account, lost, `the answer to a submit broke: ${failure.status} ${failure.detail}`)
}

/** An error page comes from a proxy: the host behind it may have the job. */
const isLost = ({ body, status }: UpstreamResponse) =>
  status >= 500 && status !== 503 && parsePruned(body) === undefined

const readHandle = ({ provider }: RouteBase, text: VideoHandle) =>
  Either.mapLeft(
    decodeHandleText(provider, text),
    (wrong) => new ProviderFailure({ class: "retry", status: undefined, detail: wrong, unsent: true })
  )

export const makeJobAdapters = Effect.fnUntraced(function* (format: JobFormat) {
  const upstream = yield* Upstream
  const fetcher = yield* Fetcher
  const ids = yield* Ids
  const { authorization, decodeResult } = format
  const fail = failWith(format.decodeFailure)
  const unknownWords = new Set<string>()

  const submit = Effect.fnUntraced(function* (route: RouteBase, submission: Submission, isAwaited: boolean) {
    const account = route.provider
    const encoded = format.encode(submission, ids.unguessable(), isAwaited)
    const sent = upstream.post({ account, authorization, ...encoded })
    const response = yield* Effect.mapError(sent, submitFailure(account))
    const { body, status } = response
    if (isLost(response)) {
      return yield* unknownOutcome(account, status === 504 ? "timeout" : "network", `${status} ${body}`)
    }
    if (!isSuccess(response)) return yield* fail(route, response)
    const decoded = Effect.try(() => format.decodeHandle(account, parsePruned(body), submission.model))
    const handle = yield* Effect.orElseSucceed(decoded, () => undefined)
    return handle === undefined
      ? yield* unknownOutcome(account, "network", `${status} without a job`)
      : { handle, response }
  })

  const get = ({ provider: account }: RouteBase, path: string) =>
    upstream.post({ account, method: "GET", path, authorization })

  /** The finished work is paid for, so a result that fails to arrive is fetched again before the job fails. */
  const getResult = (route: RouteBase, handle: Handle, left = 2): ReturnType<typeof get> =>
    Effect.flatMap(get(route, handle.result), (response) =>
      response.status === 500 && left > 0
        ? Effect.delay(getResult(route, handle, left - 1), firstPauseMillis)
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

  const logUnknown = ({ provider }: RouteBase, status: string) => {
    const word = toLoggable(provider, status).slice(0, longestWord)
    if (unknownWords.has(word) || unknownWords.size >= maxWords) return Effect.void
    unknownWords.add(word)
    return Effect.logWarning(`${format.name} at ${provider.name} has jobs of an unknown status, ${word}: they run on`)
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
    yield* logUnknown(route, progress.status)
    return { state: "in_progress" as const }
  })

  const result: (route: RouteBase, handle: Handle) => Effect.Effect<Progress, ProviderFailure> = pollResult ?? poll

  const cancel = Effect.fnUntraced(function* (route: RouteBase, handle: Handle) {
    const { provider: account } = route
    const response = yield* upstream.post({ account, method: format.cancelMethod, path: handle.cancel, authorization })
    if (isSuccess(response) || format.isCompleted?.(parsePruned(response.body)) === true) return
    yield* fail(route, response)
  })

  const fetchPicture = ({ provider }: RouteBase, { url }: Media) => {
    if (isInline(url)) return decodeInline(provider, url)
    const result = { url, limitBytes: largestPicture, withinSeconds: pictureSeconds }
    const bytes = fetcher.bytes(resultRequest(provider, authorization, result))
    return Effect.mapError(retry(bytes, mayComeYet), fetchFailure(provider))
  }

  const fetchClip = ({ provider }: RouteBase, { url }: Media) => {
    if (isInline(url)) return Stream.fromEffect(decodeInline(provider, url))
    const result = { url, limitBytes: largestClip, withinSeconds: clipSeconds }
    return Stream.mapError(fetcher.stream(resultRequest(provider, authorization, result)), fetchFailure(provider))
  }

  const awaitEnd = (route: RouteBase, handle: Handle, pause = firstPauseMillis): Effect.Effect<End, ProviderFailure> =>
    Effect.flatMap(Effect.delay(retry(poll(route, handle), mayPass), pause), (progress) =>
      isOver(progress) ? Effect.succeed(progress) : awaitEnd(route, handle, Math.min(pause * 1.5, longestPauseMillis))
    )

  /** Best effort, and short: a request may be waiting. */
  const cancelBriefly = (route: RouteBase, handle: Handle) =>
    cancel(route, handle).pipe(Effect.interruptible, Effect.timeout("2 seconds"), Effect.ignore)

  const image: ImageAdapter = {
    features: (options) => {
      const { shape_as } = Either.getOrElse(format.options.decode(options), () => ({ shape_as: "ratio" }))
      return new Set(imageFeatures.filter((feature) => feature !== "aspect_ratio" || shape_as === "ratio"))
    },
    generate: Effect.fn(`${format.name}.generate`)(function* (route, request) {
      const submission = yield* encodeImage(format, route, request)
      const end = yield* Effect.uninterruptibleMask((restore) =>
        Effect.flatMap(restore(submit(route, submission, true)), ({ handle, response }) => {
          const progress = Effect.orElseSucceed(decodeProgress(route, response), () => undefined)
          return Effect.flatMap(progress, (reached) =>
            reached !== undefined && isOver(reached)
              ? Effect.succeed(reached)
              : Effect.onError(restore(awaitEnd(route, handle)), () => cancelBriefly(route, handle))
          )
        })
      )
      if (end.state === "failed") return yield* end.failure
      return { bytes: yield* fetchPicture(route, end.media), revisedPrompt: end.media.revisedPrompt }
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
          const progress = yield* result(route, yield* readHandle(route, handle))
          if (progress.state === "done") return fetchClip(route, progress.media)
          if (progress.state === "failed") return yield* progress.failure
          return yield* protocolFailure(route.provider, 200, "the result is not there yet")
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
  Effect.map(makeJobAdapters(format), (surfaces) => ({ adapter, options: format.options.decode, ...surfaces }))
