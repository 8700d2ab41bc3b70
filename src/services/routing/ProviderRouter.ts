import { Context, Effect, Layer, Option, type Scope } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { type InvalidRequest, type RoutingFailure, TimedOut } from "../../domain/Failure.ts"
import { type ImageRequest, sendsShape, variantCost } from "../../domain/Image.ts"
import type { MeasuredPicture } from "../../domain/Media.ts"
import type { ChatModel, ImageModel, ImageRoute, VideoModel, VideoRoute } from "../../domain/Model.ts"
import type { VideoRequest } from "../../domain/VideoRules.ts"
import { pictureOf } from "../media/Pictures.ts"
import * as Metrics from "../metrics/Metrics.ts"
import * as Deadlines from "../runtime/Deadlines.ts"
import { monotonicMillisOf } from "../runtime/System.ts"
import type { AttemptHistory } from "./Attempt.ts"
import { ChatRouting, type RoutedChat, type RoutedStream, type StreamOptions } from "./ChatRouting.ts"
import { CircuitRegistry, type RoutedModel, type RouteReport } from "./CircuitRegistry.ts"
import {
  defaultDeadlines,
  failover,
  type RoutePlan,
  type RoutingDeadlines,
  type RoutingServices,
  recordSuccess
} from "./Failover.ts"
import {
  type ImageAnswer,
  ProviderFailure,
  Providers,
  requireAdapter,
  type VideoAdapter,
  type VideoHandle
} from "./Provider.ts"
import * as Candidates from "./RouteSelection.ts"

export interface RoutedImage {
  readonly route: ImageRoute
  readonly picture: MeasuredPicture
  readonly revisedPrompt: string | undefined
  readonly inputTokens: number
  readonly statedCost: ImageAnswer["statedCost"]
}

interface Submission {
  readonly model: VideoModel
  readonly request: VideoRequest
  readonly attempts: AttemptHistory
  readonly attemptedRoutes: ReadonlySet<string>
  readonly limitMillis: number
  readonly beforeSubmit: (route: VideoRoute) => Effect.Effect<void>
  readonly mayTryNext: (failure: ProviderFailure) => boolean
}

interface RoutedRender {
  readonly route: VideoRoute
  readonly handle: VideoHandle
}

/** An image call starts only if at least this share of the request timeout remains. */
const minRemainingShare = 0.2

export class ProviderRouter extends Context.Tag("gateway/ProviderRouter")<
  ProviderRouter,
  {
    /**
     * Interruption cancels only the provider's call. If the answer has already arrived, an uninterruptible caller still
     * gets it. Deadlines count from `startedAtMillis`, on the monotonic clock.
     */
    readonly complete: (
      model: ChatModel,
      request: ChatRequest,
      attempts: AttemptHistory,
      startedAtMillis?: number
    ) => Effect.Effect<RoutedChat, RoutingFailure>
    /** Returns at the first delta. Fails over only before it. */
    readonly stream: (
      model: ChatModel,
      request: ChatRequest,
      attempts: AttemptHistory,
      options?: StreamOptions
    ) => Effect.Effect<RoutedStream, RoutingFailure, Scope.Scope>
    /**
     * A body that is not an image is a failure of the route. Deadlines count from `startedAtMillis`, on the monotonic
     * clock.
     */
    readonly image: (
      model: ImageModel,
      request: ImageRequest,
      attempts: AttemptHistory,
      startedAtMillis: number
    ) => Effect.Effect<RoutedImage, RoutingFailure>
    readonly submit: (submission: Submission) => Effect.Effect<RoutedRender, RoutingFailure>
    readonly videoAdapter: (route: VideoRoute) => Effect.Effect<VideoAdapter, ProviderFailure>
    /** Returns a provider's token count of the prompt; none if the provider does not answer in time. */
    readonly countTokens: (model: ChatModel, request: ChatRequest) => Effect.Effect<Option.Option<number>>
    /** Returns whether a candidate route needs images as `data:` URLs. */
    readonly inlines: (model: ChatModel, request: ChatRequest) => Effect.Effect<boolean>
    /** Fails if no route supports all features of the request together. */
    readonly admit: (model: ChatModel, request: ChatRequest) => Effect.Effect<void, InvalidRequest>
    /** The time limit of a request, or of a stream up to its first output. */
    readonly requestTimeoutMillis: Effect.Effect<number>
    readonly health: Effect.Effect<ReadonlyArray<RouteReport>>
    /** Call after a catalog reload. Drops the circuits of changed and removed routes. */
    readonly follow: (models: ReadonlyArray<RoutedModel>) => Effect.Effect<void>
    /** Disables exactly these routes for new requests. */
    readonly disable: (routes: ReadonlySet<string>) => Effect.Effect<void>
    /** Closes the circuits of a route and clears its failures. */
    readonly reset: (route: string) => Effect.Effect<void>
  }
>() {
  static readonly layer = (deadlines: Partial<RoutingDeadlines> = {}) =>
    Layer.scoped(
      ProviderRouter,
      Effect.gen(function* () {
        const services = {
          circuits: new CircuitRegistry(),
          clock: yield* Effect.clock,
          deadlines: yield* Deadlines.make
        }
        const { circuits, clock } = services
        yield* Metrics.collect(() => circuits.publish(monotonicMillisOf(clock)))
        return make(yield* Providers, services, { ...defaultDeadlines, ...deadlines })
      })
    )
}

const make = (providers: Context.Tag.Service<Providers>, services: RoutingServices, deadlines: RoutingDeadlines) => {
  const { circuits, clock } = services
  const now = () => monotonicMillisOf(clock)
  const chats = new ChatRouting(providers, services, deadlines)
  return ProviderRouter.of({
    complete: (model, request, attempts, startedAtMillis) => chats.complete(model, request, attempts, startedAtMillis),
    stream: (model, request, attempts, options) => chats.stream(model, request, attempts, options),
    countTokens: (model, request) => chats.countTokens(model, request),
    inlines: (model, request) => chats.inlines(model, request),
    admit: (model, request) => chats.admit(model, request),
    image: makeImageRouting(providers, services, deadlines),
    submit: makeVideoRouting(providers, services, deadlines),
    videoAdapter: (route) => requireAdapter(providers, route, "video"),
    requestTimeoutMillis: Effect.succeed(deadlines.requestTimeoutSeconds * 1000),
    health: Effect.map(Effect.clock, (currentClock) =>
      circuits.health(monotonicMillisOf(currentClock), currentClock.unsafeCurrentTimeMillis())
    ),
    follow: (models) => Effect.sync(() => circuits.follow(models)),
    disable: (routes) => Effect.sync(() => circuits.disable(routes, now())),
    reset: (route) => Effect.sync(() => circuits.reset(route))
  })
}

const makeImageRouting = (
  providers: Context.Tag.Service<Providers>,
  services: RoutingServices,
  { firstByteTimeoutSeconds, requestTimeoutSeconds }: RoutingDeadlines
) => {
  const limitMillis = requestTimeoutSeconds * 1000
  return Effect.fnUntraced(function* (
    model: ImageModel,
    request: ImageRequest,
    attempts: AttemptHistory,
    startedAtMillis: number
  ) {
    const remainingMillis = limitMillis - monotonicMillisOf(services.clock) + startedAtMillis
    // Providers charge for an aborted image, so do not start one that is likely to time out.
    if (remainingMillis < limitMillis * minRemainingShare) return yield* new TimedOut()
    const plan: RoutePlan<ImageRoute> = {
      model,
      routes: yield* Candidates.orderRoutes(Candidates.filterForImage(model.routes, request)),
      attempts,
      costOf: (route, spent) => (spent === "complete" ? variantCost(route, request) : undefined),
      limitMillis: remainingMillis,
      attemptLimitMillis: remainingMillis,
      endsAt: Number.POSITIVE_INFINITY,
      minBlameMillis: firstByteTimeoutSeconds * 1000,
      output: "image",
      upstreamModel: ({ editModel }) => (request.references.length > 0 ? editModel : undefined)
    }
    return yield* failover(services, plan, {
      call: ({ route }) => generateImage(providers, model, route, request),
      onAnswer: recordSuccess
    })
  })
}

const generateImage = Effect.fnUntraced(function* (
  providers: Context.Tag.Service<Providers>,
  model: ImageModel,
  route: ImageRoute,
  request: ImageRequest
) {
  const adapter = yield* requireAdapter(providers, route, "image")
  const hasShape = sendsShape(model, route, request.resolution)
  const answer = yield* adapter.generate(route, hasShape ? request : { ...request, shape: undefined })
  const { inputTokens = 0, revisedPrompt, statedCost } = answer
  return { route, picture: yield* requirePicture(answer), revisedPrompt, inputTokens, statedCost }
})

const requirePicture = ({ bytes }: ImageAnswer) =>
  Effect.flatMap(
    pictureOf(bytes),
    Option.match({
      onNone: () =>
        new ProviderFailure({ class: "retry", status: 200, spent: "complete", detail: "the response is not an image" }),
      onSome: Effect.succeed
    })
  )

const makeVideoRouting = (
  providers: Context.Tag.Service<Providers>,
  services: RoutingServices,
  { firstByteTimeoutSeconds }: RoutingDeadlines
) =>
  Effect.fnUntraced(function* ({
    attempts,
    beforeSubmit,
    limitMillis,
    mayTryNext,
    model,
    request,
    attemptedRoutes
  }: Submission) {
    const capableRoutes = Candidates.filterForVideo(model.routes, request).filter(({ id }) => !attemptedRoutes.has(id))
    const plan: RoutePlan<VideoRoute> = {
      model,
      routes: yield* Candidates.orderRoutes(capableRoutes),
      attempts,
      limitMillis,
      attemptLimitMillis: firstByteTimeoutSeconds * 1000,
      endsAt: Number.POSITIVE_INFINITY,
      minBlameMillis: firstByteTimeoutSeconds * 1000,
      output: "video",
      upstreamModel: ({ imageModel }) => (request.reference === undefined ? undefined : imageModel),
      mayTryNext
    }
    return yield* failover(services, plan, {
      call: ({ route }) =>
        Effect.gen(function* () {
          const adapter = yield* requireAdapter(providers, route, "video")
          yield* beforeSubmit(route)
          return { route, handle: yield* adapter.submit(route, request) }
        }),
      onAnswer: recordSuccess
    })
  })
