import { Duration, Effect, Fiber, Layer, Option, Random, Scope, TestClock } from "effect"
import type { ChatEvent, ChatRequest } from "../../../src/domain/Chat.ts"
import type { RoutingFailure } from "../../../src/domain/Failure.ts"
import type { ChatModel, Route } from "../../../src/domain/Model.ts"
import { AttemptHistory } from "../../../src/services/routing/Attempt.ts"
import type { RoutedStream } from "../../../src/services/routing/ChatRouting.ts"
import type { RoutingDeadlines } from "../../../src/services/routing/Failover.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { acme, failure, ProviderFake, request, route } from "../../fakes/ProviderFake.ts"

export const a = route("a")
export const b = route("b")
export const c = route("c")
export const outage = failure("retry", 503)

export const routed = (
  fake: ProviderFake,
  body: () => Effect.fn.Return<unknown, unknown, ProviderRouter | Scope.Scope>,
  deadlines: Partial<RoutingDeadlines> = {}
) =>
  Effect.gen(body).pipe(
    Effect.scoped,
    Effect.provide(Layer.provide(ProviderRouter.layer(deadlines), fake.layer)),
    Effect.withRandom(Random.make("routing"))
  )

export const complete = (of: ChatModel, attempts = new AttemptHistory(acme), asked = request()) =>
  Effect.flatMap(ProviderRouter, (router) => router.complete(of, asked, attempts))

export const stream = (
  of: ChatModel,
  attempts = new AttemptHistory(acme),
  asked: ChatRequest = request({ stream: true })
) => Effect.flatMap(ProviderRouter, (router) => router.stream(of, asked, attempts))

/** An error without its stack and span. */
export const facts = (failure: RoutingFailure) => {
  switch (failure._tag) {
    case "AllProvidersFailed":
      return `${failure._tag} ${failure.provider} ${failure.status}`
    case "UpstreamRejected":
      return `${failure._tag} ${failure.param}`
    default:
      return failure._tag
  }
}

/** The route that answered, or the failure. */
export const outcome = <R>(asked: Effect.Effect<{ readonly route: Route }, RoutingFailure, R>) =>
  Effect.match(asked, { onFailure: facts, onSuccess: ({ route: { id } }) => id })

/** The same while time passes, step by step so that a timer set by another one's end is seen. */
export const after = Effect.fnUntraced(function* <A, E, R>(seconds: number, effect: Effect.Effect<A, E, R>, step = 1) {
  const fiber = yield* Effect.fork(effect)
  for (let passed = 0; passed < seconds; passed += step) yield* TestClock.adjust(Duration.seconds(step))
  return yield* Fiber.join(fiber)
})

/** Everything a stream sends, and how it ended: `whole` or the failure. */
export const drained = Effect.fnUntraced(function* ({ firstEvents, pull }: RoutedStream) {
  const events: Array<ChatEvent> = [...firstEvents]
  const end = yield* Effect.flip(Effect.forever(Effect.map(pull, (more) => events.push(...more))))
  return { events, end: Option.match(end, { onNone: () => "whole", onSome: facts }) }
})

/** For all, unless it is not closed for some organizations alone. */
export const circuitOf = (id: string) =>
  Effect.flatMap(ProviderRouter, (router) =>
    Effect.map(router.health, (routes) => {
      const { circuit, openForOrganizations = 0 } = routes.find((one) => one.route === id) ?? {}
      return circuit === "closed" && openForOrganizations > 0 ? `open for ${openForOrganizations}` : circuit
    })
  )

/** To the whole end, where `stream` alone ends at the first delta. */
export const streamWhole: typeof stream = (...args) =>
  Effect.tap(stream(...args), ({ pull }) => Effect.ignore(Effect.forever(pull)))

type Ask = (
  ...args: Parameters<typeof stream>
) => Effect.Effect<{ readonly route: Route }, RoutingFailure, ProviderRouter | Scope.Scope>

/** Both ways to ask, which must decide alike up to the first delta. */
export const surfaces: ReadonlyArray<{ readonly surface: string; readonly ask: Ask; readonly whole: Ask }> = [
  { surface: "JSON", ask: complete, whole: complete },
  { surface: "a stream", ask: stream, whole: streamWhole }
]
