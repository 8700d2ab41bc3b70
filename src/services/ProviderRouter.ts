import { Clock, Context, Effect, Layer, type Scope } from "effect"
import type { ChatAnswer, ChatRequest } from "../domain/Chat.ts"
import { needs } from "../domain/ChatRules.ts"
import type { RoutingFailure } from "../domain/Failure.ts"
import type { ChatModel, Route } from "../domain/Model.ts"
import { type ChatAdapter, ProviderFailure } from "./Provider.ts"
import { Providers } from "./Providers.ts"
import type { Attempts } from "./routing/Attempts.ts"
import * as Candidates from "./routing/Candidates.ts"
import { openStream, type RoutedStream } from "./routing/ChatStream.ts"
import { Circuits, type RouteHealth } from "./routing/Circuits.ts"
import { failover } from "./routing/Failover.ts"

export interface RoutingDeadlines {
  /** A JSON answer, and a stream up to its first delta, over all routes. */
  readonly requestTimeoutSeconds: number
  /** One route's time up to a stream's first delta. */
  readonly firstByteTimeoutSeconds: number
  /** A stream from its request to its end. */
  readonly streamTimeoutSeconds: number
}

const usual: RoutingDeadlines = {
  requestTimeoutSeconds: 290,
  firstByteTimeoutSeconds: 60,
  streamTimeoutSeconds: 3600
}

/** Picks the route of each request, moves it on when a route fails, and keeps the health of every route. */
export class ProviderRouter extends Context.Tag("gateway/ProviderRouter")<
  ProviderRouter,
  {
    readonly complete: (
      model: ChatModel,
      request: ChatRequest,
      attempts: Attempts
    ) => Effect.Effect<{ readonly route: Route; readonly answer: ChatAnswer }, RoutingFailure>
    /** Succeeds with the first delta in hand; until then it moved on silently, from then on it never does. */
    readonly stream: (
      model: ChatModel,
      request: ChatRequest,
      attempts: Attempts
    ) => Effect.Effect<RoutedStream, RoutingFailure, Scope.Scope>
    /** Of the routes of every model that this instance has been asked for. */
    readonly health: Effect.Effect<ReadonlyArray<RouteHealth>>
  }
>() {
  static readonly layer = (deadlines: Partial<RoutingDeadlines> = {}) =>
    Layer.effect(
      ProviderRouter,
      Effect.map(Providers, (providers) => make(providers, { ...usual, ...deadlines }))
    )
}

const make = (providers: Context.Tag.Service<Providers>, deadlines: RoutingDeadlines) => {
  const circuits = new Circuits()
  const within = deadlines.requestTimeoutSeconds * 1000
  const firstByte = deadlines.firstByteTimeoutSeconds * 1000

  const adapterOf = (route: Route): Effect.Effect<ChatAdapter, ProviderFailure> => {
    const { adapter } = route.provider
    const chat = providers.get(adapter)?.chat
    if (chat !== undefined) return Effect.succeed(chat)
    return new ProviderFailure({ class: "network", status: undefined, detail: `no chat adapter is called ${adapter}` })
  }

  const plan = (model: ChatModel, request: ChatRequest, attempts: Attempts) =>
    Effect.map(Candidates.inOrder(Candidates.able(model.routes, () => needs(request))), (routes) => ({
      model,
      routes,
      attempts,
      within,
      fairAttempt: firstByte
    }))

  const complete = Effect.fnUntraced(function* (model: ChatModel, request: ChatRequest, attempts: Attempts) {
    return yield* failover(circuits, {
      ...(yield* plan(model, request, attempts)),
      attemptWithin: undefined,
      ask: (trial) =>
        Effect.flatMap(adapterOf(trial.route), (adapter) =>
          Effect.map(adapter.complete(trial.route, request), (answer) => {
            trial.answered()
            trial.whole()
            return { route: trial.route, answer }
          })
        )
    })
  })

  const stream = Effect.fnUntraced(function* (model: ChatModel, request: ChatRequest, attempts: Attempts) {
    const scope = yield* Effect.scope
    const endsAt = (yield* Clock.currentTimeMillis) + deadlines.streamTimeoutSeconds * 1000
    return yield* failover(circuits, {
      ...(yield* plan(model, request, attempts)),
      attemptWithin: firstByte,
      ask: (trial) =>
        Effect.flatMap(adapterOf(trial.route), (adapter) =>
          openStream({ adapter, attempts, endsAt, request, scope }, trial)
        )
    })
  })

  const health = Effect.map(Clock.currentTimeMillis, (now) => circuits.health(now))
  return ProviderRouter.of({ complete, stream, health })
}
