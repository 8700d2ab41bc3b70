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
import * as Monotonic from "../runtime/Monotonic.ts"
import type { AttemptHistory } from "./AttemptHistory.ts"
import { ChatRouting, type RoutedChat } from "./ChatRouting.ts"
import { CircuitRegistry, type Routed, type RouteReport } from "./CircuitRegistry.ts"
import {
  defaultDeadlines,
  failover,
  type RoutePlan,
  type RoutingDeadlines,
  type RoutingServices,
  succeed
} from "./Failover.ts"
import {
  type ImageAnswer,
  ProviderFailure,
  Providers,
  requireAdapter,
  type VideoAdapter,
  type VideoHandle
} from "./Provider.ts"
import type { RoutedStream, StreamOptions } from "./RoutedStream.ts"
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
  readonly tried: ReadonlySet<string>
  readonly limitMillis: number
  readonly beforeSubmit: (route: VideoRoute) => Effect.Effect<void>
  readonly mayTryNext: (failure: ProviderFailure) => boolean
}

interface RoutedRender {
  readonly route: VideoRoute
  readonly handle: VideoHandle
}

/** The share of an image's time that the first attempt needs. */
const minRemainingShare = 0.2

export class ProviderRouter extends Context.Tag("gateway/ProviderRouter")<
  ProviderRouter,
  {
    /** Interruption cancels the call; deadlines count from `since`, on the monotonic clock. */
    readonly complete: (
      model: ChatModel,
      request: ChatRequest,
      attempts: AttemptHistory,
      since?: number
    ) => Effect.Effect<RoutedChat, RoutingFailure>
    /** Succeeds at the first delta; fails over only before it. */
    readonly stream: (
      model: ChatModel,
      request: ChatRequest,
      attempts: AttemptHistory,
      options?: StreamOptions
    ) => Effect.Effect<RoutedStream, RoutingFailure, Scope.Scope>
    /** A body that is no picture is the route's failure; deadlines count from `since`, on the monotonic clock. */
    readonly image: (
      model: ImageModel,
      request: ImageRequest,
      attempts: AttemptHistory,
      since: number
    ) => Effect.Effect<RoutedImage, RoutingFailure>
    readonly submit: (submission: Submission) => Effect.Effect<RoutedRender, RoutingFailure>
    readonly renderer: (route: VideoRoute) => Effect.Effect<VideoAdapter, ProviderFailure>
    /** The prompt's tokens as a route's host counts them; none without an answer in time. */
    readonly countTokens: (model: ChatModel, request: ChatRequest) => Effect.Effect<Option.Option<number>>
    /** True if a route that may be chosen wants pictures as `data:` URLs. */
    readonly inlines: (model: ChatModel, request: ChatRequest) => Effect.Effect<boolean>
    /** Fails where no route supports all features of the request together. */
    readonly admit: (model: ChatModel, request: ChatRequest) => Effect.Effect<void, InvalidRequest>
    /** What a request may take, up to the first output of a stream. */
    readonly requestTimeoutMillis: Effect.Effect<number>
    readonly health: Effect.Effect<ReadonlyArray<RouteReport>>
    /** After a reload: forgets the circuits of routes that are changed or gone. */
    readonly follow: (models: ReadonlyArray<Routed>) => Effect.Effect<void>
    /** Exactly these get no new requests. */
    readonly disable: (routes: ReadonlySet<string>) => Effect.Effect<void>
    /** Closes the circuit of a route and forgets its failures. */
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
        yield* Metrics.collect(() => circuits.publish(Monotonic.millisOf(clock)))
        return make(yield* Providers, services, { ...defaultDeadlines, ...deadlines })
      })
    )
}

const make = (providers: Context.Tag.Service<Providers>, services: RoutingServices, deadlines: RoutingDeadlines) => {
  const { circuits, clock } = services
  const now = () => Monotonic.millisOf(clock)
  const chats = new ChatRouting(providers, services, deadlines)
  return ProviderRouter.of({
    complete: (model, request, attempts, since) => chats.complete(model, request, attempts, since),
    stream: (model, request, attempts, options) => chats.stream(model, request, attempts, options),
    countTokens: (model, request) => chats.countTokens(model, request),
    inlines: (model, request) => chats.inlines(model, request),
    admit: (model, request) => chats.admit(model, request),
    image: makeImageRouting(providers, services, deadlines),
    submit: makeVideoRouting(providers, services, deadlines),
    renderer: (route) => requireAdapter(providers, route, "video"),
    requestTimeoutMillis: Effect.succeed(deadlines.requestTimeoutSeconds * 1000),
    health: Effect.map(Effect.clock, (wall) =>
      circuits.health(Monotonic.millisOf(wall), wall.unsafeCurrentTimeMillis())
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
    since: number
  ) {
    const left = limitMillis - Monotonic.millisOf(services.clock) + since
    // An aborted image is paid for, so a late request does not begin one.
    if (left < limitMillis * minRemainingShare) return yield* new TimedOut()
    const plan: RoutePlan<ImageRoute> = {
      model,
      routes: yield* Candidates.orderRoutes(Candidates.filterForImage(model.routes, request)),
      attempts,
      costOf: (route, spent) => (spent === "whole" ? variantCost(route, request) : undefined),
      limitMillis: left,
      attemptLimitMillis: left,
      endsAt: Number.POSITIVE_INFINITY,
      fairAttemptMillis: firstByteTimeoutSeconds * 1000,
      output: "image",
      upstreamModel: ({ editModel }) => (request.references.length > 0 ? editModel : undefined)
    }
    return yield* failover(services, plan, {
      ask: ({ route }) => askForImage(providers, model, route, request),
      onAnswer: succeed
    })
  })
}

const askForImage = Effect.fnUntraced(function* (
  providers: Context.Tag.Service<Providers>,
  model: ImageModel,
  route: ImageRoute,
  request: ImageRequest
) {
  const adapter = yield* requireAdapter(providers, route, "image")
  const isTold = sendsShape(model, route, request.resolution)
  const answer = yield* adapter.generate(route, isTold ? request : { ...request, shape: undefined })
  const { inputTokens = 0, revisedPrompt, statedCost } = answer
  return { route, picture: yield* requirePicture(answer), revisedPrompt, inputTokens, statedCost }
})

const requirePicture = ({ bytes }: ImageAnswer) =>
  Effect.flatMap(
    pictureOf(bytes),
    Option.match({
      onNone: () =>
        new ProviderFailure({ class: "retry", status: 200, spent: "whole", detail: "the answer is no picture" }),
      onSome: Effect.succeed
    })
  )

const makeVideoRouting = (
  providers: Context.Tag.Service<Providers>,
  services: RoutingServices,
  { firstByteTimeoutSeconds }: RoutingDeadlines
) =>
  Effect.fnUntraced(function* ({ attempts, beforeSubmit, limitMillis, mayTryNext, model, request, tried }: Submission) {
    const capable = Candidates.filterForVideo(model.routes, request).filter(({ id }) => !tried.has(id))
    const plan: RoutePlan<VideoRoute> = {
      model,
      routes: yield* Candidates.orderRoutes(capable),
      attempts,
      limitMillis,
      attemptLimitMillis: firstByteTimeoutSeconds * 1000,
      endsAt: Number.POSITIVE_INFINITY,
      fairAttemptMillis: firstByteTimeoutSeconds * 1000,
      output: "video",
      upstreamModel: ({ imageModel }) => (request.reference === undefined ? undefined : imageModel),
      mayTryNext
    }
    return yield* failover(services, plan, {
      ask: ({ route }) =>
        Effect.gen(function* () {
          const adapter = yield* requireAdapter(providers, route, "video")
          yield* beforeSubmit(route)
          return { route, handle: yield* adapter.submit(route, request) }
        }),
      onAnswer: succeed
    })
  })
