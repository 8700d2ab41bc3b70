import { Clock, Effect, Either, Stream } from "effect"
import { largestPicture } from "../../domain/Media.ts"
import type { ProviderAccount, RouteBase } from "../../domain/Model.ts"
import { imageFeatures } from "../../services/catalog/AdapterFeatures.ts"
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
import { retries } from "../../services/runtime/Schedules.ts"
import { protocolFailure } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { parsePruned } from "../client/Json.ts"
import { fetchFailure, resultRequest } from "../client/OwnOrigin.ts"
import { toLoggable, Upstream, type UpstreamRequest } from "../client/Upstream.ts"
import { decodeSafely, failWith, isSuccess } from "../client/UpstreamResponse.ts"
import { decodeHandleText, encodeHandle, type Handle } from "./Handle.ts"
import { encodeImage, encodeVideo, type InputFormat, type Submission } from "./Input.ts"
import { decodeInline, type End, isInline, type Media, type Progress, type Reported } from "./Progress.ts"

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
  readonly decodeFailure: (account: ProviderAccount, response: UpstreamResponse, nowMillis: number) => ProviderFailure
  readonly cancelMethod: "POST" | "PUT"
  /** A refusal to cancel can mean that the job is over. */
  readonly isCompleted?: (body: unknown) => boolean
}

const largestClip = 2 * 1024 * 1024 * 1024
const clipSeconds = 600
const pictureSeconds = 60
const firstPauseMillis = 500
const longestPauseMillis = 3_000
const attempts = 4
const longestWord = 100
const maxWords = 100

const passing: ReadonlySet<FailureClass> = new Set(["retry", "limit", "network", "timeout"])
const mayPass = (failure: ProviderFailure) => passing.has(failure.class)
const mayComeYet = ({ reason, status = 0 }: FetchFailed) =>
  reason === "network" || reason === "timeout" || status >= 500

/** An accepted job is paid for, so its host is asked again before giving up. */
const retry = <A, E>(effect: Effect.Effect<A, E>, mayRetry: (failure: E) => boolean) =>
  Effect.retry(effect, { while: mayRetry, schedule: retries(firstPauseMillis, attempts - 1) })

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
