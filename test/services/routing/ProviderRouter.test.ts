import { Effect, Exit, Fiber, Struct, TestClock } from "effect"
import { AttemptHistory } from "../../../src/services/routing/Attempt.ts"
import type { ProviderFailure } from "../../../src/services/routing/Provider.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { acme, answers, dies, fails, failure, hangs, model, ProviderFake, request } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { a, after, b, c, circuitOf, outage, outcome, routed, surfaces } from "./RoutedCalls.ts"

for (const { ask, surface, whole } of surfaces) {
  describe(`a request for ${surface} that meets a failure of the route`, () => {
    const moved: ReadonlyArray<readonly [string, ProviderFailure]> = [
      ["a 429", failure("limit", 429)],
      ["a 500", failure("retry", 500)],
      ["a 503", outage],
      ["a 404", failure("retry", 404)],
      ["a 405", failure("retry", 405)],
      ["a 408", failure("retry", 408)],
      ["a 409", failure("retry", 409)],
      ["a 425", failure("retry", 425)],
      ["a connection refused or reset, DNS, TLS", failure("network", undefined)],
      ["a timeout", failure("timeout", undefined)],
      ["a 200 that is broken or holds an error", failure("retry", 200)],
      ["a 401", failure("account", 401)],
      ["a 403", failure("account", 403)],
      ["a 402", failure("account", 402)],
      ["an exhausted quota", failure("account", 429)]
    ]
    for (const [name, what] of moved) {
      it.effect(`fails over after ${name}`, () => {
        const fake = new ProviderFake().on(a, fails(what))
        return routed(fake, function* () {
          const attempts = new AttemptHistory(acme)
          assert.strictEqual(yield* outcome(ask(model(a, b), attempts)), b.id)
          assert.deepStrictEqual(fake.calls, [a.id, b.id])
          assert.deepStrictEqual(
            attempts.list.map(({ outcome: result, provider, status }) => ({ result, provider, status })),
            [
              { result: what.class, provider: "a", status: what.status },
              { result: "ok", provider: "b", status: 200 }
            ]
          )
        })
      })
    }
  })

  describe(`a request for ${surface} that is refused`, () => {
    it.effect("does not fail over when the provider rejects it", () => {
      const fake = new ProviderFake().on(a, fails(failure("request", 422, { param: "messages" })))
      return routed(fake, function* () {
        assert.deepStrictEqual(yield* outcome(ask(model(a, b))), "UpstreamRejected messages")
        assert.deepStrictEqual(fake.calls, [a.id])
      })
    })

    it.effect("reports the reason", () => {
      const why = { reason: "prompt is too long", reasonCode: "context_length_exceeded" } as const
      return routed(new ProviderFake().on(a, fails(failure("request", 400, why))), function* () {
        assert.deepInclude(yield* Effect.flip(ask(model(a, b))), why)
      })
    })

    it.effect("does not fail over after moderation, not even from the second route", () => {
      const fake = new ProviderFake().on(a, fails(outage)).on(b, fails(failure("moderation", 400)))
      return routed(fake, function* () {
        assert.deepStrictEqual(yield* outcome(ask(model(a, b, c))), "ContentRejected")
        assert.deepStrictEqual(fake.calls, [a.id, b.id])
      })
    })
  })

  describe(`a request for ${surface} whose last attempt fails`, () => {
    const cases: ReadonlyArray<readonly [string, ReadonlyArray<ProviderFailure>, string]> = [
      ["fails with UpstreamFailed where the one able route answered", [outage], "UpstreamFailed"],
      ["fails with UpstreamFailed where it answered a broken 200", [failure("retry", 200)], "UpstreamFailed"],
      ["fails with UpstreamAuthFailed where its account is at fault", [failure("account", 401)], "UpstreamAuthFailed"],
      ["fails with UpstreamAuthFailed for a quota of any status", [failure("account", 429)], "UpstreamAuthFailed"],
      [
        "fails with AllProvidersFailed and 429 where the one route throttles",
        [failure("limit", 429)],
        "AllProvidersFailed a 429"
      ],
      ["fails with UpstreamFailed where the one route is overloaded", [failure("limit", 529)], "UpstreamFailed"],
      [
        "fails with AllProvidersFailed and `network` where the one route never answered",
        [failure("network", undefined)],
        "AllProvidersFailed a network"
      ],
      [
        "fails with AllProvidersFailed and the last provider and status where there are several",
        [failure("account", 401), outage],
        "AllProvidersFailed b 503"
      ],
      [
        "fails with AllProvidersFailed even where the last one's account is at fault",
        [outage, failure("account", 403)],
        "AllProvidersFailed b 403"
      ],
      [
        "fails with AllProvidersFailed and `network` where the last of several never answered",
        [outage, failure("network", undefined)],
        "AllProvidersFailed b network"
      ],
      [
        "fails with TimedOut where the last attempt ran out of time",
        [outage, failure("timeout", undefined)],
        "TimedOut"
      ],
      [
        "fails with the last attempt's failure where only an earlier one ran out of time",
        [failure("timeout", undefined), outage],
        "AllProvidersFailed b 503"
      ]
    ]
    for (const [name, failures, expected] of cases) {
      it.effect(name, () => {
        const routes = [a, b].slice(0, failures.length)
        const fake = new ProviderFake()
        for (const [index, one] of routes.entries()) fake.on(one, fails(failures[index] ?? outage))
        return routed(fake, function* () {
          assert.deepStrictEqual(yield* outcome(ask(model(...routes))), expected)
          assert.deepStrictEqual(fake.busy, [])
        })
      })
    }

    it.effect("fails with AllProvidersFailed if a circuit skipped the other route", () => {
      const fake = new ProviderFake().on(a, fails(failure("account", 401))).on(b, answers(), fails(outage))
      return routed(fake, function* () {
        assert.strictEqual(yield* outcome(ask(model(a, b))), b.id)
        const attempts = new AttemptHistory(acme)
        assert.deepStrictEqual(yield* outcome(ask(model(a, b), attempts)), "AllProvidersFailed b 503")
        assert.deepStrictEqual(fake.calls, [a.id, b.id, b.id])
        assert.deepStrictEqual(attempts.list, [
          { route: a.id, provider: "a", outcome: "skipped", status: undefined, ms: 0 },
          { route: b.id, provider: "b", outcome: "retry", status: 503, ms: 0, detail: "retry of the fake" }
        ])
      })
    })

    it.effect("fails with UpstreamFailed if the other route cannot serve it", () => {
      const blind = { ...b, capabilities: new Set(["tools" as const]) }
      const fake = new ProviderFake().on(a, fails(outage))
      const asked = request({ responseFormat: { type: "json_object" } })
      return routed(fake, function* () {
        assert.deepStrictEqual(yield* outcome(ask(model(a, blind), new AttemptHistory(acme), asked)), "UpstreamFailed")
        assert.deepStrictEqual(fake.calls, [a.id])
      })
    })

    it.effect("fails with NoHealthyProvider if no circuit admits it at the start", () => {
      const fake = new ProviderFake().on(a, fails(failure("account", 401))).on(b, fails(failure("account", 403)))
      return routed(fake, function* () {
        yield* outcome(ask(model(a, b)))
        const attempts = new AttemptHistory(acme)
        assert.deepStrictEqual(yield* outcome(ask(model(a, b), attempts)), "NoHealthyProvider")
        assert.deepStrictEqual(fake.calls, [a.id, b.id])
        assert.deepStrictEqual(attempts.list.map(Struct.get("outcome")), ["skipped", "skipped"])
      })
    })

    it.effect("fails with NoHealthyProvider if no route can serve it", () => {
      const fake = new ProviderFake()
      const blind = { ...a, capabilities: new Set<never>() }
      return routed(fake, function* () {
        const asked = request({ webSearch: true })
        assert.deepStrictEqual(yield* outcome(ask(model(blind), new AttemptHistory(acme), asked)), "NoHealthyProvider")
        assert.deepStrictEqual(fake.calls, [])
      })
    })

    it.effect("fails over from a route without an adapter", () => {
      const lost = { ...a, provider: { ...a.provider, adapter: "unheard-of" } }
      return routed(new ProviderFake(), function* () {
        assert.strictEqual(yield* outcome(ask(model(lost, b))), b.id)
      })
    })
  })

  describe(`the circuit of a route for ${surface}`, () => {
    it.effect("opens after 5 failures, admits one probe when its time ends, and closes with its success", () => {
      const fake = new ProviderFake().on(a, ...Array.from({ length: 5 }, () => fails(outage)), answers())
      return routed(fake, function* () {
        for (let times = 0; times < 6; times++) assert.strictEqual(yield* outcome(ask(model(a, b))), b.id)
        assert.strictEqual(fake.calls.filter((id) => id === a.id).length, 5)
        yield* TestClock.adjust("1 second")
        const got = yield* outcome(whole(model(a, b)))
        assert.strictEqual(got, a.id)
        assert.strictEqual(yield* circuitOf(a.id), "closed")
      })
    })

    it.effect("does not count 400s and moderation", () => {
      const fake = new ProviderFake().on(a, fails(failure("request", 400))).on(b, fails(failure("moderation", 400)))
      return routed(fake, function* () {
        for (let times = 0; times < 10; times++) {
          yield* outcome(ask(model(a)))
          yield* outcome(ask(model({ ...b, id: "other@b" })))
        }
        const health = yield* Effect.flatMap(ProviderRouter, (router) => router.health)
        for (const one of health) {
          assert.strictEqual(one.circuit, "closed")
          assert.strictEqual(one.failures, 0)
        }
      })
    })

    it.effect("does not count departures, and admits another probe after one", () => {
      const fake = new ProviderFake().on(a, ...Array.from({ length: 10 }, () => hangs), fails(outage))
      const leave = Effect.fnUntraced(function* (attempts: AttemptHistory) {
        const fiber = yield* Effect.fork(Effect.scoped(ask(model(a, b), attempts)))
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.interrupt(fiber)
      })
      return routed(fake, function* () {
        for (let times = 0; times < 10; times++) {
          const attempts = new AttemptHistory(acme)
          yield* leave(attempts)
          assert.deepStrictEqual(attempts.list, [
            { route: a.id, provider: "a", outcome: "cancelled", status: undefined, ms: 2000 }
          ])
        }
        assert.strictEqual(yield* circuitOf(a.id), "closed")
        for (let times = 0; times < 5; times++) yield* outcome(ask(model(a, b)))
        assert.strictEqual(yield* circuitOf(a.id), "open for 1")
        fake.on(a, hangs, answers())
        yield* TestClock.adjust("1 second")
        yield* leave(new AttemptHistory(acme))
        assert.strictEqual(yield* outcome(ask(model(a, b))), a.id)
      })
    })

    it.effect("admits exactly one of many requests as its probe", () => {
      const fake = new ProviderFake().on(
        a,
        ...Array.from({ length: 5 }, () => fails(outage)),
        answers("late", "4 seconds")
      )
      return routed(fake, function* () {
        for (let times = 0; times < 5; times++) yield* outcome(ask(model(a)))
        yield* TestClock.adjust("1 second")
        const all = yield* after(
          4,
          Effect.all(
            Array.from({ length: 20 }, () => outcome(ask(model(a)))),
            { concurrency: "unbounded" }
          )
        )
        assert.strictEqual(all.filter((one) => one === a.id).length, 1)
        assert.strictEqual(all.filter((one) => one === "NoHealthyProvider").length, 19)
        assert.strictEqual(fake.calls.length, 6)
      })
    })

    it.effect("neither counts a bug in an adapter nor keeps its probe", () => {
      const fake = new ProviderFake().on(a, ...Array.from({ length: 5 }, () => fails(outage)), dies, answers())
      return routed(fake, function* () {
        for (let times = 0; times < 5; times++) yield* outcome(ask(model(a)))
        yield* TestClock.adjust("1 second")
        const attempts = new AttemptHistory(acme)
        const exit = yield* Effect.exit(ask(model(a), attempts))
        assert.isTrue(Exit.isFailure(exit) && exit.cause._tag === "Die")
        assert.strictEqual(attempts.list[0]?.outcome, "defect")
        assert.strictEqual(yield* outcome(ask(model(a))), a.id)
      })
    })
  })
}
