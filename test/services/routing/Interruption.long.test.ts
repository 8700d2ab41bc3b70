import { Effect, Exit, Layer, Struct, TestClock } from "effect"
import type { RoutingFailure } from "../../../src/domain/Failure.ts"
import type { ChatModel, Route } from "../../../src/domain/Model.ts"
import { AttemptHistory } from "../../../src/services/routing/Attempt.ts"
import { type CurrentAttempt, type ProviderFailure, Providers } from "../../../src/services/routing/Provider.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { acme, answer, answers, fails, model, ProviderFake, request, type Step } from "../../fakes/ProviderFake.ts"
import { hasAllCases } from "../../harness/Cases.ts"
import { interruptBefore } from "../../harness/Interruption.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { a, b, outage, outcome } from "./RoutedCalls.ts"

/** More operations than any of these requests takes. */
const maxOperations = 1_000

/** In the short form every so many. */
const step = hasAllCases ? 1 : 16

/** Cancels its calls itself, as the adapters of real hosts do. */
const withOwnCalls = (fake: ProviderFake, failing: ReadonlySet<string>) => ({
  ...fake.chat,
  completeWithin: (attempt: CurrentAttempt, { id }: Route) =>
    Effect.async<ReturnType<typeof answer>, ProviderFailure>((resume) => {
      fake.calls.push(id)
      fake.busy.push(id)
      const end = (result: Effect.Effect<ReturnType<typeof answer>, ProviderFailure>) => {
        if (attempt.endCall === undefined) return
        attempt.endCall = undefined
        fake.busy.splice(fake.busy.indexOf(id), 1)
        resume(result)
      }
      const timer = setImmediate(() => end(failing.has(id) ? Effect.fail(outage) : Effect.succeed(answer("hello"))))
      attempt.endCall = (failure) => {
        clearImmediate(timer)
        fake.busy.splice(fake.busy.indexOf(id), 1)
        if (failure !== undefined) resume(Effect.fail(failure))
      }
    })
})

const complete = (of: ChatModel, attempts: AttemptHistory) =>
  Effect.flatMap(ProviderRouter, (router) => router.complete(of, request(), attempts))

/** To its whole end. */
const stream = (of: ChatModel, attempts: AttemptHistory) =>
  Effect.flatMap(ProviderRouter, (router) => router.stream(of, request({ stream: true }), attempts)).pipe(
    Effect.tap(({ pull }) => Effect.ignore(Effect.forever(pull))),
    Effect.scoped
  )

interface Surface {
  readonly name: string
  readonly ask: (of: ChatModel, attempts: AttemptHistory) => Effect.Effect<unknown, RoutingFailure, ProviderRouter>
  readonly cancelsCalls: boolean
}

const surfaces: ReadonlyArray<Surface> = [
  { name: "a whole answer in a child fiber", ask: complete, cancelsCalls: false },
  { name: "a whole answer whose adapter cancels its calls", ask: complete, cancelsCalls: true },
  { name: "a stream", ask: stream, cancelsCalls: false }
]

/** Each route's circuit lets one request probe, so that a permit which is not returned shows. */
const openCircuits = (fake: ProviderFake) =>
  Effect.gen(function* () {
    for (const route of [a, b]) {
      fake.on(route, fails(outage))
      for (let times = 0; times < 5; times += 1) yield* outcome(stream(model(route), new AttemptHistory(acme)))
    }
    yield* TestClock.adjust("1 second")
    fake.calls.length = 0
  })

const requestsOf = Effect.map(
  Effect.flatMap(ProviderRouter, (router) => router.health),
  (health) => health.reduce((sum, { requests }) => sum + requests, 0)
)

const interruptRequest = (
  operation: number,
  { ask, cancelsCalls }: Surface,
  script: { readonly a: Step; readonly b: Step; readonly failing: ReadonlySet<string> }
) => {
  const fake = new ProviderFake()
  const chat = cancelsCalls ? withOwnCalls(fake, script.failing) : fake.chat
  const providers = Layer.succeed(Providers, new Map([["fake", { adapter: "fake", chat }]]))
  return Effect.gen(function* () {
    yield* openCircuits(fake)
    fake.on(a, script.a).on(b, script.b)
    const before = yield* requestsOf
    const attempts = new AttemptHistory(acme)
    const asking: Effect.Effect<unknown, unknown, ProviderRouter> = ask(model(a, b), attempts)
    const exit = yield* interruptBefore(operation, asking)
    const asked = (yield* requestsOf) - before
    const outcomes = attempts.list.map(Struct.get("outcome"))
    assert.deepStrictEqual(fake.busy, [], "a call goes on")
    assert.strictEqual(outcomes.length, asked, "each attempt is in the history once")
    // What failed as a probe opens its circuit for two seconds at most.
    yield* TestClock.adjust("2 seconds")
    fake.on(a, answers()).on(b, answers())
    for (const route of [a, b]) {
      assert.strictEqual(yield* outcome(stream(model(route), new AttemptHistory(acme))), route.id)
    }
    return { exit, outcomes }
  }).pipe(Effect.provide(Layer.provide(ProviderRouter.layer(), providers)))
}

describe("a request that is interrupted at any moment", () => {
  for (const surface of surfaces) {
    it.effect(`returns its permit and records each attempt once, as ${surface.name}`, function* () {
      const seen = new Set<string>()
      for (let operation = 0; operation < maxOperations; operation += step) {
        const script = { a: fails(outage), b: answers(), failing: new Set([a.id]) }
        const { exit, outcomes } = yield* interruptRequest(operation, surface, script)
        seen.add(outcomes.join())
        if (Exit.isSuccess(exit)) break
        assert.isTrue(Exit.isInterrupted(exit))
        assert.isBelow(operation, maxOperations - step, "it never ended")
      }
      if (!hasAllCases) return
      for (const outcomes of ["", "cancelled", "retry", "retry,cancelled", "retry,ok"]) {
        assert.isTrue(seen.has(outcomes), `${outcomes} of ${[...seen].join(" or ")}`)
      }
    })
  }
})
