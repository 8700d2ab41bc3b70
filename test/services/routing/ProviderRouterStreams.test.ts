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
  hangs,
  model,
  ProviderFake,
  route,
  streams,
  usage
} from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import {
  a,
  after,
  b,
  c,
  circuitOf,
  complete,
  drained,
  outage,
  outcome,
  routed,
  stream,
  streamWhole
} from "./RoutedCalls.ts"

describe("the deadlines", () => {
  it.effect("end a JSON answer after 290 s with TimedOut and cancel its call", () => {
    const fake = new ProviderFake().on(a, hangs)
    return routed(fake, function* () {
      const attempts = new AttemptHistory(acme)
      const fiber = yield* Effect.fork(outcome(complete(model(a, b), attempts)))
      yield* TestClock.adjust(Duration.millis(289_999))
      assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Fiber.join(fiber), "TimedOut")
      assert.deepStrictEqual(fake.calls, [a.id])
      assert.deepStrictEqual(fake.busy, [])
      assert.deepStrictEqual(
        attempts.list.map(({ ms, outcome: result }) => ({ ms, result })),
        [{ ms: 290_000, result: "timeout" }]
      )
    })
  })

  it.effect("give a second route the rest of the time", () => {
    const fake = new ProviderFake().on(a, fails(outage, "280 seconds")).on(b, answers("late", "20 seconds"))
    return routed(fake, function* () {
      assert.deepStrictEqual(yield* after(290, outcome(complete(model(a, b))), 10), "TimedOut")
    })
  })

  it.effect("do not count against a route whose attempt had only the rest of the time", () => {
    const fake = new ProviderFake().on(a, fails(outage, "280 seconds")).on(b, hangs)
    return routed(fake, function* () {
      for (let times = 0; times < 5; times++) yield* after(290, outcome(complete(model(a, b))), 10)
      const health = yield* Effect.flatMap(ProviderRouter, (router) => router.health)
      assert.deepStrictEqual(
        health.map(({ failures, provider }) => ({ failures, provider })),
        [
          { failures: 5, provider: "a" },
          { failures: 0, provider: "b" }
        ]
      )
    })
  })

  it.effect("count against a route whose attempt had all of the time, however short", () => {
    const fake = new ProviderFake().on(a, hangs)
    return routed(
      fake,
      function* () {
        for (let times = 0; times < 5; times++) yield* after(2, outcome(complete(model(a))))
        assert.strictEqual(yield* circuitOf(a.id), "open for 1")
      },
      { requestTimeoutSeconds: 2 }
    )
  })

  it.effect("give each route 60 s to a stream's first delta before the next one is tried", () => {
    const fake = new ProviderFake().on(a, hangs).on(b, streams([usage], [finish], "hang"))
    return routed(fake, function* () {
      const attempts = new AttemptHistory(acme)
      assert.strictEqual(yield* after(120, outcome(stream(model(a, b, c), attempts))), c.id)
      assert.deepStrictEqual(
        attempts.list.map(({ ms, outcome: result, provider }) => [provider, result, ms]),
        [
          ["a", "timeout", 60_000],
          ["b", "timeout", 60_000],
          ["c", "ok", 0]
        ]
      )
      assert.deepStrictEqual(fake.busy, [c.id])
    })
  })

  it.effect("end a stream without a delta after 290 s in all", () => {
    const routes = ["a", "b", "c", "d", "e", "f"].map((name) => route(name))
    const fake = new ProviderFake()
    for (const one of routes) fake.on(one, hangs)
    return routed(fake, function* () {
      const fiber = yield* Effect.fork(outcome(stream(model(...routes))))
      for (let passed = 0; passed < 289; passed++) yield* TestClock.adjust("1 second")
      assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), "TimedOut")
      assert.strictEqual(fake.calls.length, 5)
      assert.deepStrictEqual(fake.busy, [])
    })
  })

  it.effect("end a stream with TimedOut when its last route used up its 60 s", () => {
    const fake = new ProviderFake().on(a, fails(outage)).on(b, hangs)
    return routed(fake, function* () {
      assert.deepStrictEqual(yield* after(60, outcome(stream(model(a, b)))), "TimedOut")
    })
  })

  for (const [name, pulls] of [
    ["while it sends", Array.from({ length: 100 }, () => [{ wait: "1 minute" } as const, [content("x")]]).flat()],
    ["while nothing comes that is an event", [[content("x")], "hang" as const]]
  ] as const) {
    it.effect(`end a stream after 3600 s with TimedOut and without a failure of its route, ${name}`, () => {
      const fake = new ProviderFake().on(a, streams([content("first")], ...pulls))
      return routed(fake, function* () {
        const attempts = new AttemptHistory(acme)
        const got = yield* stream(model(a, b), attempts)
        const { end } = yield* after(3600, drained(got), 60)
        assert.deepStrictEqual(end, "TimedOut")
        assert.strictEqual((yield* drained(got)).end, "TimedOut")
        assert.deepStrictEqual(fake.busy, [])
        assert.deepStrictEqual(
          attempts.list.map(({ ms, outcome: result }) => ({ ms, result })),
          [{ ms: 3_600_000, result: "timeout" }]
        )
        const [health] = yield* Effect.flatMap(ProviderRouter, (router) => router.health)
        assert.strictEqual(health?.failures, 0)
      })
    })
  }
})

describe("a stream", () => {
  it.effect("fails over after roles, usage, a host's own events or an early finish", () => {
    const native: ChatEvent = { type: "native", event: { type: "message_start" } }
    const fake = new ProviderFake().on(a, streams([native, content("")], [usage], [finish], outage))
    return routed(fake, function* () {
      const got = yield* stream(model(a, b))
      assert.strictEqual(got.route.id, b.id)
      assert.deepStrictEqual(got.firstEvents, [content("hello")])
      assert.deepStrictEqual(fake.busy, [b.id])
      assert.deepStrictEqual(yield* drained(got), { events: [content("hello"), finish, usage], end: "whole" })
      assert.deepStrictEqual(fake.busy, [])
    })
  })

  const deltas: ReadonlyArray<ChatEvent> = [
    content("x"),
    { type: "reasoning", text: "x" },
    { type: "tool_call", index: 0, id: "call", name: "f", arguments: "" },
    { type: "native", event: {}, isOutput: true }
  ]
  for (const delta of deltas) {
    it.effect(`never fails over after its first ${delta.type} delta, and reports a break`, () => {
      const fake = new ProviderFake().on(a, streams([usage], [delta, content("y")], [content("z")], outage))
      return routed(fake, function* () {
        const attempts = new AttemptHistory(acme)
        const got = yield* stream(model(a, b), attempts)
        assert.deepStrictEqual(got.firstEvents, [usage, delta, content("y")])
        assert.strictEqual(attempts.list[0]?.outcome, "ok")
        const { end, events } = yield* drained(got)
        assert.deepStrictEqual(events, [usage, delta, content("y"), content("z")])
        assert.deepStrictEqual(end, "UpstreamFailed")
        assert.deepStrictEqual(fake.calls, [a.id])
        assert.deepStrictEqual(attempts.list, [
          { route: a.id, provider: "a", outcome: "retry", status: 503, ms: 0, detail: "retry of the fake" }
        ])
      })
    })
  }

  for (const kind of ["limit", "account", "network", "request", "moderation", "timeout"] as const) {
    it.effect(`that breaks with ${kind} is reported as ${kind === "timeout" ? "TimedOut" : "UpstreamFailed"}`, () => {
      const fake = new ProviderFake().on(a, streams([content("x")], failure(kind, undefined)))
      return routed(fake, function* () {
        const { end } = yield* Effect.flatMap(stream(model(a, b)), drained)
        assert.deepStrictEqual(end, kind === "timeout" ? "TimedOut" : "UpstreamFailed")
      })
    })
  }

  it.effect("without a delta is a valid empty answer if it had a finish", () => {
    const refused: ChatEvent = { type: "finish", reason: "content_filter" }
    const fake = new ProviderFake().on(a, streams([refused], [usage]))
    return routed(fake, function* () {
      const got = yield* stream(model(a, b))
      assert.deepStrictEqual(yield* drained(got), { events: [refused, usage], end: "whole" })
      assert.deepStrictEqual(fake.calls, [a.id])
    })
  })

  it.effect("without a delta and a finish is a broken answer that fails over", () => {
    const fake = new ProviderFake().on(a, streams([usage])).on(b, streams())
    return routed(fake, function* () {
      assert.strictEqual(yield* outcome(stream(model(a, b, c))), c.id)
      fake.on({ ...b, id: "other" }, streams())
      assert.deepStrictEqual(yield* outcome(stream(model({ ...b, id: "other" }))), "UpstreamFailed")
    })
  })

  it.effect("counts by its outcome, so that 5 broken ones open the circuit", () => {
    const fake = new ProviderFake().on(a, streams([content("x")], outage))
    return routed(fake, function* () {
      for (let times = 0; times < 5; times++) {
        assert.strictEqual(yield* circuitOf(a.id), times === 0 ? undefined : "closed")
        yield* Effect.scoped(Effect.flatMap(stream(model(a, b)), drained))
      }
      assert.strictEqual(yield* circuitOf(a.id), "open for 1")
    })
  })

  it.effect("undoes earlier failures when it ends well, not when it opens", () => {
    const fake = new ProviderFake()
    const failing = Array.from({ length: 4 }, () => fails(outage))
    return routed(fake, function* () {
      fake.on(a, ...failing, answers(), fails(outage))
      for (let times = 0; times < 4; times++) yield* outcome(stream(model(a, b)))
      yield* stream(model(a, b))
      yield* outcome(stream(model(a, b)))
      assert.strictEqual(yield* circuitOf(a.id), "open for 1")

      fake.on(c, ...failing, answers(), fails(outage))
      for (let times = 0; times < 4; times++) yield* outcome(stream(model(c, { ...b, id: "m@d" })))
      yield* Effect.flatMap(stream(model(c, { ...b, id: "m@d" })), drained)
      yield* outcome(stream(model(c, { ...b, id: "m@d" })))
      assert.strictEqual(yield* circuitOf(c.id), "closed")
    })
  })

  it.effect("whose client disconnects has no effect on its route, and its call is cancelled at once", () => {
    const fake = new ProviderFake().on(a, streams([content("x")], "hang"))
    return routed(fake, function* () {
      for (let times = 0; times < 10; times++) {
        const attempts = new AttemptHistory(acme)
        yield* Effect.scoped(stream(model(a, b), attempts))
        assert.strictEqual(attempts.list[0]?.outcome, "ok")
        assert.deepStrictEqual(fake.busy, [])
      }
      const [health] = yield* Effect.flatMap(ProviderRouter, (router) => router.health)
      assert.strictEqual(health?.circuit, "closed")
      assert.strictEqual(health?.failures, 0)
      assert.strictEqual(health?.requests, 10)
    })
  })

  it.effect("whose client disconnects during a probe lets another request probe", () => {
    const fake = new ProviderFake().on(a, ...Array.from({ length: 5 }, () => fails(outage)), answers())
    return routed(fake, function* () {
      for (let times = 0; times < 5; times++) yield* outcome(stream(model(a)))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Effect.scoped(outcome(stream(model(a)))), a.id)
      assert.strictEqual(yield* circuitOf(a.id), "open for 1")
      assert.strictEqual(yield* Effect.scoped(outcome(streamWhole(model(a)))), a.id)
      assert.strictEqual(yield* circuitOf(a.id), "closed")
    })
  })

  it.effect("stores the provider's events for the charge of a client that disconnects early", () => {
    const fake = new ProviderFake().on(a, streams([usage], "hang"))
    return routed(fake, function* () {
      const attempts = new AttemptHistory(acme)
      const fiber = yield* Effect.fork(Effect.scoped(stream(model(a, b), attempts)))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(attempts.list.at(-1)?.received?.events, [usage])
      assert.strictEqual(attempts.list.at(-1)?.received?.route.id, a.id)
    })
  })

  it.effect("drops what a failed route has sent", () => {
    const fake = new ProviderFake().on(a, streams([usage], outage)).on(b, hangs)
    return routed(fake, function* () {
      const attempts = new AttemptHistory(acme)
      const fiber = yield* Effect.fork(Effect.scoped(stream(model(a, b), attempts)))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      assert.isUndefined(attempts.list.at(-1)?.received)
    })
  })
})
