import { Duration, Effect, Fiber, Option, TestClock } from "effect"
import type { ChatEvent } from "../../../src/domain/Chat.ts"
import { AttemptHistory } from "../../../src/services/routing/Attempt.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import {
  acme,
  answers,
  content,
  fails,
  failure,
  finish,
  model,
  ProviderFake,
  request,
  streams,
  usage
} from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { a, after, b, drained, outage, outcome, routed, stream } from "./RoutedCalls.ts"

const begin: ChatEvent = { type: "begin" }
const wait = (duration: Duration.DurationInput) => ({ wait: duration })
const failuresOf = Effect.map(
  Effect.flatMap(ProviderRouter, (router) => router.health),
  (health) => health.map(({ failures }) => failures)
)
const ways = (attempts: AttemptHistory) => attempts.list.map(({ ms, outcome, provider }) => [provider, outcome, ms])

describe("a provider that has begun to generate", () => {
  it.effect("may send no delta for longer than the request timeout", () => {
    const fake = new ProviderFake().on(
      a,
      streams([content("")], [begin], wait("10 minutes"), [content("late")], [finish])
    )
    return routed(fake, function* () {
      const attempts = new AttemptHistory(acme)
      const got = yield* after(600, stream(model(a, b), attempts), 10)
      assert.deepStrictEqual(got.firstEvents, [content(""), begin, content("late")])
      assert.deepStrictEqual(yield* drained(got), { events: [...got.firstEvents, finish], end: "whole" })
      assert.deepStrictEqual(ways(attempts), [["a", "ok", 600_000]])
      assert.deepStrictEqual(yield* failuresOf, [0, 0])
    })
  })

  it.effect("has 60 s to do so, whatever else it has sent", () => {
    const fake = new ProviderFake().on(a, streams([content(""), usage], wait("61 seconds"), [begin], "hang"))
    return routed(fake, function* () {
      const attempts = new AttemptHistory(acme)
      assert.strictEqual(yield* after(60, outcome(stream(model(a, b), attempts))), b.id)
      assert.deepStrictEqual(ways(attempts), [
        ["a", "timeout", 60_000],
        ["b", "ok", 0]
      ])
    })
  })

  it.effect("and breaks before its first delta leaves the next route the full time", () => {
    const fake = new ProviderFake()
      .on(a, streams([begin], wait("10 minutes"), outage))
      .on(b, answers("late", "59 seconds"))
    return routed(fake, function* () {
      const attempts = new AttemptHistory(acme)
      assert.strictEqual(yield* after(660, outcome(stream(model(a, b), attempts)), 10), b.id)
      assert.deepStrictEqual(ways(attempts), [
        ["a", "retry", 600_000],
        ["b", "ok", 59_000]
      ])
    })
  })

  it.effect("and then sends nothing is at fault, and the next route is tried", () => {
    const silence = failure("timeout", 200)
    const fake = new ProviderFake().on(a, streams([begin], wait("180 seconds"), silence)).on(b, fails(outage))
    return routed(fake, function* () {
      assert.strictEqual(yield* after(180, outcome(stream(model(a, b))), 10), "AllProvidersFailed b 503")
      assert.deepStrictEqual(yield* failuresOf, [1, 1])
    })
  })

  it.effect(
    "is limited only by the stream timeout, which is not its fault and leaves no time for another route",
    () => {
      const fake = new ProviderFake().on(a, streams([begin], "hang"))
      return routed(fake, function* () {
        const attempts = new AttemptHistory(acme)
        const work = yield* Effect.fork(outcome(stream(model(a, b), attempts)))
        for (let passed = 0; passed < 3_590; passed += 10) yield* TestClock.adjust("10 seconds")
        assert.isTrue(Option.isNone(yield* Fiber.poll(work)))
        yield* TestClock.adjust("10 seconds")
        assert.strictEqual(yield* Fiber.join(work), "TimedOut")
        assert.deepStrictEqual(ways(attempts), [["a", "timeout", 3_600_000]])
        assert.deepStrictEqual(fake.busy, [])
        assert.deepStrictEqual(yield* failuresOf, [0, 0])
      })
    }
  )
})

describe("the end of a stream's time", () => {
  it.effect("is attributed to a slow client, not to the provider", () => {
    const fake = new ProviderFake().on(a, streams([content("x")], "hang"))
    return routed(fake, function* () {
      const attempts = new AttemptHistory(acme)
      let disconnected = 0
      const client = { disconnectStalled: () => ++disconnected > 0 }
      const router = yield* ProviderRouter
      yield* Effect.scoped(
        Effect.zipRight(
          router.stream(model(a, b), request({ stream: true }), attempts, { client }),
          TestClock.adjust("2 hours")
        )
      )
      assert.strictEqual(disconnected, 1)
      assert.deepStrictEqual(fake.busy, [])
      assert.deepStrictEqual(ways(attempts), [["a", "ok", 0]])
      assert.deepStrictEqual(yield* failuresOf, [0, 0])
    })
  })

  it.effect("caused by the provider is attributed to the client if it read too slowly", () => {
    const fake = new ProviderFake().on(a, streams([content("x")], failure("network", undefined)))
    return routed(fake, function* () {
      const pulled = (isStalled: boolean) =>
        Effect.gen(function* () {
          const attempts = new AttemptHistory(acme)
          const router = yield* ProviderRouter
          const client = { disconnectStalled: () => isStalled }
          const { pull } = yield* router.stream(model(a), request({ stream: true }), attempts, { client })
          const end = yield* Effect.fork(Effect.exit(pull))
          yield* TestClock.adjust("1 second")
          assert.deepStrictEqual(fake.busy, [])
          return [Option.isSome(yield* Fiber.poll(end)), attempts.list.map(({ outcome }) => outcome)]
        }).pipe(Effect.scoped)
      assert.deepStrictEqual(yield* pulled(true), [false, ["ok"]])
      assert.deepStrictEqual(yield* failuresOf, [0])
      assert.deepStrictEqual(yield* pulled(false), [true, ["network"]])
    })
  })
})
