import { Deferred, Duration, Effect, Exit, FastCheck, Fiber, Layer, Option, Struct, TestClock } from "effect"
import type { ChatAnswer, ChatRequest } from "../../../src/domain/Chat.ts"
import type { ChatModel } from "../../../src/domain/Model.ts"
import { AttemptHistory } from "../../../src/services/routing/Attempt.ts"
import {
  type CurrentAttempt,
  type FailureClass,
  type ProviderFailure,
  Providers
} from "../../../src/services/routing/Provider.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import {
  acme,
  answer,
  answers,
  fails,
  failure,
  hangs,
  model,
  ProviderFake,
  request,
  route,
  type Step
} from "../../fakes/ProviderFake.ts"
import { runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { a, after, b, c, circuitOf, complete, outage, outcome, routed, streamWhole } from "./RoutedCalls.ts"

describe("the routes of a model", () => {
  it.effect("are tried in order of preference, not in that of the catalog", () => {
    const fake = new ProviderFake().on(a, fails(outage)).on(b, fails(outage)).on(c, fails(outage))
    const of = {
      ...model(a),
      routes: [
        { ...a, preference: 3 },
        { ...b, preference: 1 },
        { ...c, preference: 2 }
      ]
    }
    return routed(fake, function* () {
      yield* outcome(complete(of))
      assert.deepStrictEqual(fake.calls, [b.id, c.id, a.id])
    })
  })

  it.effect("are tried by their weights within one preference", () => {
    const fake = new ProviderFake()
    const of = {
      ...model(a),
      routes: [
        { ...a, weight: 1 },
        { ...b, weight: 3 },
        { ...c, weight: 0 }
      ].map((one) => ({ ...one, preference: 1 }))
    }
    return routed(fake, function* () {
      yield* Effect.replicateEffect(complete(of), 4000)
      const share = (id: string) => fake.calls.filter((call) => call === id).length / 4000
      assert.closeTo(share(a.id), 0.25, 0.03)
      assert.closeTo(share(b.id), 0.75, 0.03)
      assert.strictEqual(share(c.id), 0)
    })
  })

  it.effect("are tried last within their preference when their weight is 0", () => {
    const fake = new ProviderFake().on(a, fails(outage)).on(b, fails(outage))
    const of = { ...model(a), routes: [{ ...c, preference: 2 }, { ...a, weight: 0 }, b] }
    return routed(fake, function* () {
      assert.strictEqual(yield* outcome(complete(of)), c.id)
      assert.deepStrictEqual(fake.calls, [b.id, a.id, c.id])
    })
  })

  it.effect("are tried only if they can serve the request", () => {
    const fake = new ProviderFake()
    const plain = { ...a, capabilities: new Set<never>() }
    const tools = { ...b, capabilities: new Set(["tools" as const]) }
    const seeing = { ...c, capabilities: new Set(["tools" as const, "vision" as const]) }
    const tool = { type: "function" as const, function: { name: "f" } }
    const image = { type: "image_url" as const, image_url: { url: "data:image/png;base64," } }
    const ask = (more: Partial<ChatRequest>) =>
      outcome(complete(model(plain, tools, seeing), new AttemptHistory(acme), request(more)))
    return routed(fake, function* () {
      assert.strictEqual(yield* ask({}), plain.id)
      assert.strictEqual(yield* ask({ tools: [tool] }), tools.id)
      assert.strictEqual(yield* ask({ messages: [{ role: "user", content: [image] }] }), seeing.id)
    })
  })

  it.effect("are tried again when a circuit's time has ended during another attempt", () => {
    const fake = new ProviderFake()
      .on(a, ...Array.from({ length: 5 }, () => fails(outage)), answers())
      .on(b, ...Array.from({ length: 5 }, () => answers()), fails(outage, "3 seconds"))
    return routed(fake, function* () {
      for (let times = 0; times < 5; times++) yield* outcome(complete(model(a, b)))
      const attempts = new AttemptHistory(acme)
      assert.strictEqual(yield* after(3, outcome(complete(model(a, b), attempts))), a.id)
      assert.deepStrictEqual(
        attempts.list.map((one) => [one.provider, one.outcome, one.ms]),
        [
          ["a", "skipped", 0],
          ["b", "retry", 3000],
          ["a", "ok", 0]
        ]
      )
    })
  })
})

describe("a router under random faults", () => {
  const kinds: ReadonlyArray<FailureClass> = [
    "retry",
    "limit",
    "account",
    "network",
    "timeout",
    "request",
    "moderation"
  ]
  const steps = FastCheck.oneof(
    { weight: 3, arbitrary: FastCheck.constant<Step>(answers()) },
    {
      weight: 5,
      arbitrary: FastCheck.record({
        kind: FastCheck.constantFrom(...kinds),
        retryAfterSeconds: FastCheck.constantFrom(0, 0, 7),
        after: FastCheck.constantFrom(0, 0, 3)
      }).map(
        ({ after: seconds, kind, retryAfterSeconds }): Step =>
          fails(failure(kind, 500, { retryAfterSeconds }), Duration.seconds(seconds))
      )
    },
    { weight: 1, arbitrary: FastCheck.constant<Step>(hangs) }
  )
  const faults = FastCheck.record({
    scripts: FastCheck.array(FastCheck.array(steps, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 4 }),
    requests: FastCheck.array(
      FastCheck.record({ streaming: FastCheck.boolean(), pause: FastCheck.constantFrom(0, 0, 0, 1, 6, 61) }),
      { minLength: 1, maxLength: 15 }
    )
  })

  /** One request: which routes it asked, and what became of it. */
  const askOnce = Effect.fnUntraced(function* (fake: ProviderFake, of: ChatModel, streaming: boolean) {
    const attempts = new AttemptHistory(acme)
    const before = fake.calls.length
    const asked = (streaming ? streamWhole : complete)(of, attempts)
    const fiber = yield* Effect.fork(Effect.scoped(outcome(asked)))
    while (Option.isNone(yield* Fiber.poll(fiber))) yield* TestClock.adjust("3 seconds")
    return { result: yield* Fiber.join(fiber), called: fake.calls.slice(before), attempts: attempts.list }
  })

  it.effect.prop(
    "asks no route twice, reports no success as a failure and returns to a recovered route",
    { faults },
    ({ faults: { requests, scripts } }) => {
      const fake = new ProviderFake()
      const routes = scripts.map((script, index) => {
        const one = route(`p${index}`)
        fake.on(one, ...script)
        return one
      })
      const of = model(...routes)
      return routed(
        fake,
        function* () {
          for (const { pause, streaming } of requests) {
            const { attempts, called, result } = yield* askOnce(fake, of, streaming)
            assert.strictEqual(new Set(called).size, called.length, "a route was asked twice")
            const tried = attempts.filter((one) => one.outcome !== "skipped")
            assert.deepStrictEqual(tried.map(Struct.get("route")), called)
            const ok = tried.find((one) => one.outcome === "ok")
            assert.strictEqual(result, ok?.route ?? result)
            assert.strictEqual(ok !== undefined, result.startsWith("m@"))
            if (ok !== undefined) assert.strictEqual(tried.at(-1), ok, "something was asked after a success")
            if (tried.length === 0) assert.strictEqual(result, "NoHealthyProvider")
            assert.deepStrictEqual(fake.busy, [])
            yield* TestClock.adjust(Duration.seconds(pause))
          }
          for (const one of routes) fake.on(one, answers())
          yield* TestClock.adjust("1 hour")
          for (const one of routes) {
            assert.strictEqual((yield* askOnce(fake, { ...of, routes: [one] }, false)).result, one.id)
            assert.strictEqual(yield* circuitOf(one.id), "closed")
          }
        },
        { requestTimeoutSeconds: 15, firstByteTimeoutSeconds: 6 }
      )
    },
    { fastCheck: { numRuns: runs(60) } }
  )
})

describe("the health of routes", () => {
  it.effect("has the circuit, last error, latency, requests and failures of each route", () => {
    const fake = new ProviderFake().on(a, fails(outage, "2 seconds")).on(b, answers("x", "3 seconds"))
    return routed(fake, function* () {
      const got = yield* after(5, complete(model(a, b)))
      assert.deepStrictEqual(got.answer, answer("x"))
      const health = yield* Effect.flatMap(ProviderRouter, (router) => router.health)
      assert.deepStrictEqual(
        health.map(({ failures, lastError, lastErrorAt, latencyMs, provider, requests }) => [
          provider,
          requests,
          failures,
          lastError,
          lastErrorAt,
          latencyMs
        ]),
        [
          ["a", 1, 1, "retry 503: retry of the fake", 2000, undefined],
          ["b", 1, 0, undefined, undefined, 3000]
        ]
      )
    })
  })
})

describe("an attempt that cancels its own calls", () => {
  /** A provider that never answers; what ended its calls is in the list. */
  const silent = () => {
    const ends: Array<string> = []
    const completeWithin = (attempt: CurrentAttempt) =>
      Effect.async<never, ProviderFailure>((resume) => {
        attempt.endCall = (failure) => {
          ends.push(failure?.class ?? "interrupted")
          if (failure !== undefined) resume(Effect.fail(failure))
        }
      })
    const chat = { ...new ProviderFake().chat, completeWithin }
    return { ends, layer: Layer.succeed(Providers, new Map([["fake", { adapter: "fake", chat }]])) }
  }
  const calls = Effect.fnUntraced(function* (make: () => Effect.fn.Return<unknown, unknown, ProviderRouter>) {
    const { ends, layer } = silent()
    yield* Effect.provide(Effect.gen(make), Layer.provide(ProviderRouter.layer({ requestTimeoutSeconds: 5 }), layer))
    return ends
  })

  it.effect("does so at its deadline", function* () {
    const ends = yield* calls(function* () {
      assert.strictEqual(yield* after(5, outcome(complete(model(a)))), "TimedOut")
    })
    assert.deepStrictEqual(ends, ["timeout"])
  })

  it.effect("does so when its request is interrupted", function* () {
    const attempts = new AttemptHistory(acme)
    const ends = yield* calls(function* () {
      const fiber = yield* Effect.fork(complete(model(a), attempts))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
    })
    assert.deepStrictEqual(ends, ["interrupted"])
    assert.deepStrictEqual(attempts.list.map(Struct.get("outcome")), ["cancelled"])
  })

  it.effect("does so when its request is interrupted in an uninterruptible region", function* () {
    const attempts = new AttemptHistory(acme)
    const ends = yield* calls(function* () {
      const fiber = yield* Effect.fork(Effect.uninterruptible(complete(model(a), attempts)))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
    })
    assert.deepStrictEqual(ends, ["interrupted"])
    assert.deepStrictEqual(attempts.list.map(Struct.get("outcome")), ["cancelled"])
  })

  it.effect("never starts if its request was interrupted before", function* () {
    const attempts = new AttemptHistory(acme)
    const ends = yield* calls(function* () {
      const held = yield* Deferred.make<void>()
      const asking = Effect.zipRight(Deferred.await(held), Effect.interruptible(complete(model(a), attempts)))
      const fiber = yield* Effect.fork(Effect.uninterruptible(asking))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interruptFork(fiber)
      yield* Effect.yieldNow()
      yield* Deferred.succeed(held, undefined)
      assert.isTrue(Exit.isInterrupted(yield* Fiber.await(fiber)))
    })
    assert.deepStrictEqual([ends, attempts.list], [[], []])
  })

  it.effect("returns an answer that comes as its request is interrupted", function* () {
    const attempts = new AttemptHistory(acme)
    const completeWithin = () =>
      Effect.withFiberRuntime<ChatAnswer>((fiber) =>
        Effect.zipRight(Fiber.interruptFork(fiber), Effect.succeed(answer("in time")))
      )
    const chat = { ...new ProviderFake().chat, completeWithin }
    const layer = Layer.succeed(Providers, new Map([["fake", { adapter: "fake", chat }]]))
    const answered = yield* Effect.gen(function* () {
      const texts: Array<string | null> = []
      const keep = Effect.map(complete(model(a), attempts), ({ answer: { content } }) => texts.push(content))
      yield* Fiber.await(yield* Effect.fork(Effect.uninterruptible(keep)))
      return texts
    }).pipe(Effect.provide(Layer.provide(ProviderRouter.layer(), layer)))
    assert.deepStrictEqual(answered, ["in time"])
    assert.deepStrictEqual(attempts.list.map(Struct.get("outcome")), ["ok"])
  })
})
