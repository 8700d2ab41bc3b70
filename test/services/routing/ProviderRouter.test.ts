import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Exit, FastCheck, Fiber, Layer, Option, Random, Scope, TestClock } from "effect"
import type { ChatEvent, ChatRequest } from "../../../src/domain/Chat.ts"
import type { RoutingFailure } from "../../../src/domain/Failure.ts"
import type { ChatModel, Route } from "../../../src/domain/Model.ts"
import { Attempts } from "../../../src/services/routing/Attempts.ts"
import type { RoutedStream } from "../../../src/services/routing/ChatStream.ts"
import type { FailureClass, ProviderFailure } from "../../../src/services/routing/Provider.ts"
import { ProviderRouter, type RoutingDeadlines } from "../../../src/services/routing/ProviderRouter.ts"
import {
  answer,
  answers,
  content,
  dies,
  fails,
  failure,
  finish,
  hangs,
  model,
  ProviderFake,
  request,
  route,
  type Step,
  streams,
  usage
} from "../../fakes/ProviderFake.ts"

const a = route("a")
const b = route("b")
const c = route("c")
const outage = failure("retry", 503)

const routed = <A, E>(
  fake: ProviderFake,
  body: Effect.Effect<A, E, ProviderRouter | Scope.Scope>,
  deadlines: Partial<RoutingDeadlines> = {}
) =>
  body.pipe(
    Effect.scoped,
    Effect.provide(Layer.provide(ProviderRouter.layer(deadlines), fake.layer)),
    Effect.withRandom(Random.make("routing"))
  )

const complete = (of: ChatModel, attempts = new Attempts(), asked = request()) =>
  Effect.flatMap(ProviderRouter, (router) => router.complete(of, asked, attempts))

const stream = (of: ChatModel, attempts = new Attempts(), asked: ChatRequest = request({ stream: true })) =>
  Effect.flatMap(ProviderRouter, (router) => router.stream(of, asked, attempts))

/** An error without its stack and span. */
const facts = (failure: RoutingFailure) => {
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
const outcome = <R>(asked: Effect.Effect<{ readonly route: Route }, RoutingFailure, R>) =>
  Effect.match(asked, { onFailure: facts, onSuccess: ({ route: { id } }) => id })

/** The same while time passes, step by step so that a timer set by another one's end is seen. */
const after = <A, E, R>(seconds: number, effect: Effect.Effect<A, E, R>, step = 1) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.fork(effect)
    for (let passed = 0; passed < seconds; passed += step) yield* TestClock.adjust(Duration.seconds(step))
    return yield* Fiber.join(fiber)
  })

/** Everything a stream sends, and how it ended: `whole` or the failure. */
const drained = Effect.fnUntraced(function* ({ first, pull }: RoutedStream) {
  const events: Array<ChatEvent> = [...first]
  const end = yield* Effect.flip(Effect.forever(Effect.map(pull, (more) => events.push(...more))))
  return { events, end: Option.match(end, { onNone: () => "whole", onSome: facts }) }
})

const circuitOf = (id: string) =>
  Effect.flatMap(ProviderRouter, (router) =>
    Effect.map(router.health, (routes) => routes.find((one) => one.route === id)?.circuit)
  )

/** To the whole end, where `stream` alone ends at the first delta. */
const streamWhole: typeof stream = (...args) =>
  Effect.tap(stream(...args), ({ pull }) => Effect.ignore(Effect.forever(pull)))

type Ask = (
  ...args: Parameters<typeof stream>
) => Effect.Effect<{ readonly route: Route }, RoutingFailure, ProviderRouter | Scope.Scope>

/** Both ways to ask, which must decide alike up to the first delta. */
const surfaces: ReadonlyArray<{ readonly surface: string; readonly ask: Ask; readonly whole: Ask }> = [
  { surface: "complete", ask: complete, whole: complete },
  { surface: "stream", ask: stream, whole: streamWhole }
]

for (const { ask, surface, whole } of surfaces) {
  describe(`${surface}: fails over`, () => {
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
      it.effect(`after ${name}`, () => {
        const fake = new ProviderFake().on(a, fails(what))
        return routed(
          fake,
          Effect.gen(function* () {
            const attempts = new Attempts()
            assert.strictEqual(yield* outcome(ask(model(a, b), attempts)), b.id)
            assert.deepStrictEqual(fake.calls, [a.id, b.id])
            assert.deepStrictEqual(
              attempts.list.map(({ outcome: told, provider, status }) => ({ told, provider, status })),
              [
                { told: what.class, provider: "a", status: what.status },
                { told: "ok", provider: "b", status: 200 }
              ]
            )
          })
        )
      })
    }
  })

  describe(`${surface}: does not fail over`, () => {
    it.effect("after the request's own fault: Upstream rejected the request", () => {
      const fake = new ProviderFake().on(a, fails(failure("request", 422, { param: "messages" })))
      return routed(
        fake,
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* outcome(ask(model(a, b))), "UpstreamRejected messages")
          assert.deepStrictEqual(fake.calls, [a.id])
        })
      )
    })

    it.effect("after moderation, which is final even as the second route's answer", () => {
      const fake = new ProviderFake().on(a, fails(outage)).on(b, fails(failure("moderation", 400)))
      return routed(
        fake,
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* outcome(ask(model(a, b, c))), "ContentRejected")
          assert.deepStrictEqual(fake.calls, [a.id, b.id])
        })
      )
    })
  })

  describe(`${surface}: when the last try fails, the client gets`, () => {
    const told: ReadonlyArray<readonly [string, ReadonlyArray<ProviderFailure>, string]> = [
      ["UpstreamFailed where the one able route answered", [outage], "UpstreamFailed"],
      ["UpstreamFailed where it answered 200 with something broken", [failure("retry", 200)], "UpstreamFailed"],
      ["UpstreamAuthFailed where its account is at fault", [failure("account", 401)], "UpstreamAuthFailed"],
      ["UpstreamAuthFailed for a quota, whatever its status", [failure("account", 429)], "UpstreamAuthFailed"],
      [
        "All providers failed with 429 where the one route throttles",
        [failure("limit", 429)],
        "AllProvidersFailed a 429"
      ],
      ["UpstreamFailed where the one route is overloaded", [failure("limit", 529)], "UpstreamFailed"],
      [
        "All providers failed with network where the one route never answered",
        [failure("network", undefined)],
        "AllProvidersFailed a network"
      ],
      [
        "All providers failed with the last provider and status where there are several",
        [failure("account", 401), outage],
        "AllProvidersFailed b 503"
      ],
      [
        "All providers failed even where the last one's account is at fault",
        [outage, failure("account", 403)],
        "AllProvidersFailed b 403"
      ],
      [
        "All providers failed with network where the last of several never answered",
        [outage, failure("network", undefined)],
        "AllProvidersFailed b network"
      ],
      ["TimedOut where the last try ran out of time", [outage, failure("timeout", undefined)], "TimedOut"],
      [
        "what the last try says where only an earlier one ran out of time",
        [failure("timeout", undefined), outage],
        "AllProvidersFailed b 503"
      ]
    ]
    for (const [name, failures, expected] of told) {
      it.effect(name, () => {
        const routes = [a, b].slice(0, failures.length)
        const fake = new ProviderFake()
        for (const [index, one] of routes.entries()) fake.on(one, fails(failures[index] ?? outage))
        return routed(
          fake,
          Effect.gen(function* () {
            assert.deepStrictEqual(yield* outcome(ask(model(...routes))), expected)
            assert.deepStrictEqual(fake.busy, [])
          })
        )
      })
    }

    it.effect("All providers failed where the other route was skipped by its circuit", () => {
      const fake = new ProviderFake().on(a, fails(failure("account", 401))).on(b, answers(), fails(outage))
      return routed(
        fake,
        Effect.gen(function* () {
          assert.strictEqual(yield* outcome(ask(model(a, b))), b.id)
          const attempts = new Attempts()
          assert.deepStrictEqual(yield* outcome(ask(model(a, b), attempts)), "AllProvidersFailed b 503")
          assert.deepStrictEqual(fake.calls, [a.id, b.id, b.id])
          assert.deepStrictEqual(attempts.list, [
            { route: a.id, provider: "a", outcome: "skipped", status: undefined, ms: 0 },
            { route: b.id, provider: "b", outcome: "retry", status: 503, ms: 0, detail: "retry of the fake" }
          ])
        })
      )
    })

    it.effect("UpstreamFailed where the other route cannot serve the request", () => {
      const blind = { ...b, capabilities: new Set(["tools" as const]) }
      const fake = new ProviderFake().on(a, fails(outage))
      const asked = request({ responseFormat: { type: "json_object" } })
      return routed(
        fake,
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* outcome(ask(model(a, blind), new Attempts(), asked)), "UpstreamFailed")
          assert.deepStrictEqual(fake.calls, [a.id])
        })
      )
    })

    it.effect("NoHealthyProvider where no circuit lets it through at the start", () => {
      const fake = new ProviderFake().on(a, fails(failure("account", 401))).on(b, fails(failure("account", 403)))
      return routed(
        fake,
        Effect.gen(function* () {
          yield* outcome(ask(model(a, b)))
          const attempts = new Attempts()
          assert.deepStrictEqual(yield* outcome(ask(model(a, b), attempts)), "NoHealthyProvider")
          assert.deepStrictEqual(fake.calls, [a.id, b.id])
          assert.deepStrictEqual(
            attempts.list.map((one) => one.outcome),
            ["skipped", "skipped"]
          )
        })
      )
    })

    it.effect("NoHealthyProvider where no route can serve it", () => {
      const fake = new ProviderFake()
      const blind = { ...a, capabilities: new Set<never>() }
      return routed(
        fake,
        Effect.gen(function* () {
          const asked = request({ webSearch: true })
          assert.deepStrictEqual(yield* outcome(ask(model(blind), new Attempts(), asked)), "NoHealthyProvider")
          assert.deepStrictEqual(fake.calls, [])
        })
      )
    })

    it.effect("a route without an adapter is a route that fails", () => {
      const lost = { ...a, provider: { ...a.provider, adapter: "unheard-of" } }
      return routed(
        new ProviderFake(),
        Effect.gen(function* () {
          assert.strictEqual(yield* outcome(ask(model(lost, b))), b.id)
        })
      )
    })
  })

  describe(`${surface}: the circuit`, () => {
    it.effect("opens after 5 failures, is skipped, lets one request probe, and closes with its success", () => {
      const fake = new ProviderFake().on(a, ...Array.from({ length: 5 }, () => fails(outage)), answers())
      return routed(
        fake,
        Effect.gen(function* () {
          for (let times = 0; times < 6; times++) assert.strictEqual(yield* outcome(ask(model(a, b))), b.id)
          assert.strictEqual(fake.calls.filter((id) => id === a.id).length, 5)
          yield* TestClock.adjust("1 second")
          const got = yield* outcome(whole(model(a, b)))
          assert.strictEqual(got, a.id)
          assert.strictEqual(yield* circuitOf(a.id), "closed")
        })
      )
    })

    it.effect("does not count 400s and moderation", () => {
      const fake = new ProviderFake().on(a, fails(failure("request", 400))).on(b, fails(failure("moderation", 400)))
      return routed(
        fake,
        Effect.gen(function* () {
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
      )
    })

    it.effect("does not count departures; one during a probe frees the probe", () => {
      const fake = new ProviderFake().on(a, ...Array.from({ length: 10 }, () => hangs), fails(outage))
      const leave = (attempts: Attempts) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.fork(Effect.scoped(ask(model(a, b), attempts)))
          yield* TestClock.adjust("2 seconds")
          yield* Fiber.interrupt(fiber)
        })
      return routed(
        fake,
        Effect.gen(function* () {
          for (let times = 0; times < 10; times++) {
            const attempts = new Attempts()
            yield* leave(attempts)
            assert.deepStrictEqual(attempts.list, [
              { route: a.id, provider: "a", outcome: "cancelled", status: undefined, ms: 2000 }
            ])
          }
          assert.strictEqual(yield* circuitOf(a.id), "closed")
          for (let times = 0; times < 5; times++) yield* outcome(ask(model(a, b)))
          assert.strictEqual(yield* circuitOf(a.id), "open")
          fake.on(a, hangs, answers())
          yield* TestClock.adjust("1 second")
          yield* leave(new Attempts())
          assert.strictEqual(yield* outcome(ask(model(a, b))), a.id)
        })
      )
    })

    it.effect("lets exactly one of many requests probe", () => {
      const fake = new ProviderFake().on(
        a,
        ...Array.from({ length: 5 }, () => fails(outage)),
        answers("late", "4 seconds")
      )
      return routed(
        fake,
        Effect.gen(function* () {
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
      )
    })

    it.effect("tells of a bug in an adapter without keeping a probe or blaming the route", () => {
      const fake = new ProviderFake().on(a, ...Array.from({ length: 5 }, () => fails(outage)), dies, answers())
      return routed(
        fake,
        Effect.gen(function* () {
          for (let times = 0; times < 5; times++) yield* outcome(ask(model(a)))
          yield* TestClock.adjust("1 second")
          const attempts = new Attempts()
          const exit = yield* Effect.exit(ask(model(a), attempts))
          assert.isTrue(Exit.isFailure(exit) && exit.cause._tag === "Die")
          assert.strictEqual(attempts.list[0]?.outcome, "defect")
          assert.strictEqual(yield* outcome(ask(model(a))), a.id)
        })
      )
    })
  })
}

describe("routes are tried", () => {
  it.effect("in order of preference, whatever the catalog's order", () => {
    const fake = new ProviderFake().on(a, fails(outage)).on(b, fails(outage)).on(c, fails(outage))
    const of = {
      ...model(a),
      routes: [
        { ...a, preference: 3 },
        { ...b, preference: 1 },
        { ...c, preference: 2 }
      ]
    }
    return routed(
      fake,
      Effect.gen(function* () {
        yield* outcome(complete(of))
        assert.deepStrictEqual(fake.calls, [b.id, c.id, a.id])
      })
    )
  })

  it.effect("by their weights within one preference", () => {
    const fake = new ProviderFake()
    const of = {
      ...model(a),
      routes: [
        { ...a, weight: 1 },
        { ...b, weight: 3 },
        { ...c, weight: 0 }
      ].map((one) => ({ ...one, preference: 1 }))
    }
    return routed(
      fake,
      Effect.gen(function* () {
        yield* Effect.replicateEffect(complete(of), 4000)
        const share = (id: string) => fake.calls.filter((call) => call === id).length / 4000
        assert.closeTo(share(a.id), 0.25, 0.03)
        assert.closeTo(share(b.id), 0.75, 0.03)
        assert.strictEqual(share(c.id), 0)
      })
    )
  })

  it.effect("weight 0 only after the others of its preference, but before the next preference", () => {
    const fake = new ProviderFake().on(a, fails(outage)).on(b, fails(outage))
    const of = { ...model(a), routes: [{ ...c, preference: 2 }, { ...a, weight: 0 }, b] }
    return routed(
      fake,
      Effect.gen(function* () {
        assert.strictEqual(yield* outcome(complete(of)), c.id)
        assert.deepStrictEqual(fake.calls, [b.id, a.id, c.id])
      })
    )
  })

  it.effect("only where they can honour what the request asks for", () => {
    const fake = new ProviderFake()
    const plain = { ...a, capabilities: new Set<never>() }
    const tools = { ...b, capabilities: new Set(["tools" as const]) }
    const seeing = { ...c, capabilities: new Set(["tools" as const, "vision" as const]) }
    const tool = { type: "function" as const, function: { name: "f" } }
    const image = { type: "image_url" as const, image_url: { url: "data:image/png;base64," } }
    const ask = (more: Partial<ChatRequest>) =>
      outcome(complete(model(plain, tools, seeing), new Attempts(), request(more)))
    return routed(
      fake,
      Effect.gen(function* () {
        assert.strictEqual(yield* ask({}), plain.id)
        assert.strictEqual(yield* ask({ tools: [tool] }), tools.id)
        assert.strictEqual(yield* ask({ messages: [{ role: "user", content: [image] }] }), seeing.id)
      })
    )
  })

  it.effect("again when a circuit's time has ended while another route was tried", () => {
    const fake = new ProviderFake()
      .on(a, ...Array.from({ length: 5 }, () => fails(outage)), answers())
      .on(b, ...Array.from({ length: 5 }, () => answers()), fails(outage, "3 seconds"))
    return routed(
      fake,
      Effect.gen(function* () {
        for (let times = 0; times < 5; times++) yield* outcome(complete(model(a, b)))
        const attempts = new Attempts()
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
    )
  })
})

describe("deadlines", () => {
  it.effect("a JSON answer has 290 s in all, then TimedOut, and the call is cancelled", () => {
    const fake = new ProviderFake().on(a, hangs)
    return routed(
      fake,
      Effect.gen(function* () {
        const attempts = new Attempts()
        const fiber = yield* Effect.fork(outcome(complete(model(a, b), attempts)))
        yield* TestClock.adjust(Duration.millis(289_999))
        assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
        yield* TestClock.adjust("1 millis")
        assert.deepStrictEqual(yield* Fiber.join(fiber), "TimedOut")
        assert.deepStrictEqual(fake.calls, [a.id])
        assert.deepStrictEqual(fake.busy, [])
        assert.deepStrictEqual(
          attempts.list.map(({ ms, outcome: told }) => ({ ms, told })),
          [{ ms: 290_000, told: "timeout" }]
        )
      })
    )
  })

  it.effect("are over all routes: the second has what the first left", () => {
    const fake = new ProviderFake().on(a, fails(outage, "280 seconds")).on(b, answers("late", "20 seconds"))
    return routed(
      fake,
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* after(290, outcome(complete(model(a, b))), 10), "TimedOut")
      })
    )
  })

  it.effect("a try that only the whole deadline cut short does not count against its route", () => {
    const fake = new ProviderFake().on(a, fails(outage, "280 seconds")).on(b, hangs)
    return routed(
      fake,
      Effect.gen(function* () {
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
    )
  })

  it.effect("a try that had all of it counts, however short it is set", () => {
    const fake = new ProviderFake().on(a, hangs)
    return routed(
      fake,
      Effect.gen(function* () {
        for (let times = 0; times < 5; times++) yield* after(2, outcome(complete(model(a))))
        assert.strictEqual(yield* circuitOf(a.id), "open")
      }),
      { requestTimeoutSeconds: 2 }
    )
  })

  it.effect("a stream has 60 s a route to its first delta, then the next route is asked", () => {
    const fake = new ProviderFake().on(a, hangs).on(b, streams([usage], [finish], "hang"))
    return routed(
      fake,
      Effect.gen(function* () {
        const attempts = new Attempts()
        assert.strictEqual(yield* after(120, outcome(stream(model(a, b, c), attempts))), c.id)
        assert.deepStrictEqual(
          attempts.list.map(({ ms, outcome: told, provider }) => [provider, told, ms]),
          [
            ["a", "timeout", 60_000],
            ["b", "timeout", 60_000],
            ["c", "ok", 0]
          ]
        )
        assert.deepStrictEqual(fake.busy, [c.id])
      })
    )
  })

  it.effect("a stream has 290 s in all up to its first delta", () => {
    const routes = ["a", "b", "c", "d", "e", "f"].map((name) => route(name))
    const fake = new ProviderFake()
    for (const one of routes) fake.on(one, hangs)
    return routed(
      fake,
      Effect.gen(function* () {
        const fiber = yield* Effect.fork(outcome(stream(model(...routes))))
        for (let passed = 0; passed < 289; passed++) yield* TestClock.adjust("1 second")
        assert.isTrue(Option.isNone(yield* Fiber.poll(fiber)))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* Fiber.join(fiber), "TimedOut")
        assert.strictEqual(fake.calls.length, 5)
        assert.deepStrictEqual(fake.busy, [])
      })
    )
  })

  it.effect("TimedOut where a stream's last route ran out of its 60 s", () => {
    const fake = new ProviderFake().on(a, fails(outage)).on(b, hangs)
    return routed(
      fake,
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* after(60, outcome(stream(model(a, b)))), "TimedOut")
      })
    )
  })

  for (const [name, pulls] of [
    ["while it sends", Array.from({ length: 100 }, () => [{ wait: "1 minute" } as const, [content("x")]]).flat()],
    ["while nothing comes that is an event", [[content("x")], "hang" as const]]
  ] as const) {
    it.effect(`a stream has 3600 s in all, ${name}; then TimedOut and no failure of its route`, () => {
      const fake = new ProviderFake().on(a, streams([content("first")], ...pulls))
      return routed(
        fake,
        Effect.gen(function* () {
          const attempts = new Attempts()
          const got = yield* stream(model(a, b), attempts)
          const { end } = yield* after(3600, drained(got), 60)
          assert.deepStrictEqual(end, "TimedOut")
          assert.strictEqual((yield* drained(got)).end, "TimedOut")
          assert.deepStrictEqual(fake.busy, [])
          assert.deepStrictEqual(
            attempts.list.map(({ ms, outcome: told }) => ({ ms, told })),
            [{ ms: 3_600_000, told: "timeout" }]
          )
          const [health] = yield* Effect.flatMap(ProviderRouter, (router) => router.health)
          assert.strictEqual(health?.failures, 0)
        })
      )
    })
  }
})

describe("a stream", () => {
  it.effect("fails over while only roles, usage or an early finish came", () => {
    const fake = new ProviderFake().on(a, streams([content("")], [usage], [finish], outage))
    return routed(
      fake,
      Effect.gen(function* () {
        const got = yield* stream(model(a, b))
        assert.strictEqual(got.route.id, b.id)
        assert.deepStrictEqual(got.first, [content("hello")])
        assert.deepStrictEqual(yield* drained(got), { events: [content("hello"), finish, usage], end: "whole" })
        assert.deepStrictEqual(fake.busy, [b.id])
      })
    )
  })

  const deltas: ReadonlyArray<ChatEvent> = [
    content("x"),
    { type: "reasoning", text: "x" },
    { type: "tool_call", index: 0, id: "call", name: "f", arguments: "" }
  ]
  for (const delta of deltas) {
    it.effect(`is the route's from its first ${delta.type} delta on: a break is reported and never fails over`, () => {
      const fake = new ProviderFake().on(a, streams([usage], [delta, content("y")], [content("z")], outage))
      return routed(
        fake,
        Effect.gen(function* () {
          const attempts = new Attempts()
          const got = yield* stream(model(a, b), attempts)
          assert.deepStrictEqual(got.first, [usage, delta, content("y")])
          assert.strictEqual(attempts.list[0]?.outcome, "ok")
          const { end, events } = yield* drained(got)
          assert.deepStrictEqual(events, [usage, delta, content("y"), content("z")])
          assert.deepStrictEqual(end, "UpstreamFailed")
          assert.deepStrictEqual(fake.calls, [a.id])
          assert.deepStrictEqual(attempts.list, [
            { route: a.id, provider: "a", outcome: "retry", status: 503, ms: 0, detail: "retry of the fake" }
          ])
        })
      )
    })
  }

  for (const kind of ["limit", "account", "network", "request", "moderation", "timeout"] as const) {
    it.effect(`that breaks with ${kind} is told as ${kind === "timeout" ? "TimedOut" : "UpstreamFailed"}`, () => {
      const fake = new ProviderFake().on(a, streams([content("x")], failure(kind, undefined)))
      return routed(
        fake,
        Effect.gen(function* () {
          const { end } = yield* Effect.flatMap(stream(model(a, b)), drained)
          assert.deepStrictEqual(end, kind === "timeout" ? "TimedOut" : "UpstreamFailed")
        })
      )
    })
  }

  it.effect("without any delta is a valid empty answer if it carried a finish", () => {
    const refused: ChatEvent = { type: "finish", reason: "content_filter" }
    const fake = new ProviderFake().on(a, streams([refused], [usage]))
    return routed(
      fake,
      Effect.gen(function* () {
        const got = yield* stream(model(a, b))
        assert.deepStrictEqual(yield* drained(got), { events: [refused, usage], end: "whole" })
        assert.deepStrictEqual(fake.calls, [a.id])
      })
    )
  })

  it.effect("without any delta and without a finish is a broken answer: the next route is asked", () => {
    const fake = new ProviderFake().on(a, streams([usage])).on(b, streams())
    return routed(
      fake,
      Effect.gen(function* () {
        assert.strictEqual(yield* outcome(stream(model(a, b, c))), c.id)
        fake.on({ ...b, id: "other" }, streams())
        assert.deepStrictEqual(yield* outcome(stream(model({ ...b, id: "other" }))), "UpstreamFailed")
      })
    )
  })

  it.effect("counts by its outcome, not by its opening: 5 that break open the circuit", () => {
    const fake = new ProviderFake().on(a, streams([content("x")], outage))
    return routed(
      fake,
      Effect.gen(function* () {
        for (let times = 0; times < 5; times++) {
          assert.strictEqual(yield* circuitOf(a.id), times === 0 ? undefined : "closed")
          yield* Effect.scoped(Effect.flatMap(stream(model(a, b)), drained))
        }
        assert.strictEqual(yield* circuitOf(a.id), "open")
      })
    )
  })

  it.effect("does not undo earlier failures by opening, only by its whole end", () => {
    const fake = new ProviderFake()
    const failing = Array.from({ length: 4 }, () => fails(outage))
    return routed(
      fake,
      Effect.gen(function* () {
        fake.on(a, ...failing, answers(), fails(outage))
        for (let times = 0; times < 4; times++) yield* outcome(stream(model(a, b)))
        yield* stream(model(a, b))
        yield* outcome(stream(model(a, b)))
        assert.strictEqual(yield* circuitOf(a.id), "open")

        fake.on(c, ...failing, answers(), fails(outage))
        for (let times = 0; times < 4; times++) yield* outcome(stream(model(c, { ...b, id: "m@d" })))
        yield* Effect.flatMap(stream(model(c, { ...b, id: "m@d" })), drained)
        yield* outcome(stream(model(c, { ...b, id: "m@d" })))
        assert.strictEqual(yield* circuitOf(c.id), "closed")
      })
    )
  })

  it.effect("whose client leaves counts for nothing, and its upstream call is cancelled at once", () => {
    const fake = new ProviderFake().on(a, streams([content("x")], "hang"))
    return routed(
      fake,
      Effect.gen(function* () {
        for (let times = 0; times < 10; times++) {
          const attempts = new Attempts()
          yield* Effect.scoped(stream(model(a, b), attempts))
          assert.strictEqual(attempts.list[0]?.outcome, "ok")
          assert.deepStrictEqual(fake.busy, [])
        }
        const [health] = yield* Effect.flatMap(ProviderRouter, (router) => router.health)
        assert.strictEqual(health?.circuit, "closed")
        assert.strictEqual(health?.failures, 0)
        assert.strictEqual(health?.requests, 10)
      })
    )
  })

  it.effect("that probes frees the probe when its client leaves", () => {
    const fake = new ProviderFake().on(a, ...Array.from({ length: 5 }, () => fails(outage)), answers())
    return routed(
      fake,
      Effect.gen(function* () {
        for (let times = 0; times < 5; times++) yield* outcome(stream(model(a)))
        yield* TestClock.adjust("1 second")
        assert.strictEqual(yield* Effect.scoped(outcome(stream(model(a)))), a.id)
        assert.strictEqual(yield* circuitOf(a.id), "half_open")
        assert.strictEqual(yield* Effect.scoped(outcome(streamWhole(model(a)))), a.id)
        assert.strictEqual(yield* circuitOf(a.id), "closed")
      })
    )
  })

  it.effect("tells what its provider has sent, so that a client that leaves early can be charged", () => {
    const fake = new ProviderFake().on(a, streams([usage], "hang"))
    return routed(
      fake,
      Effect.gen(function* () {
        const attempts = new Attempts()
        const fiber = yield* Effect.fork(Effect.scoped(stream(model(a, b), attempts)))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(attempts.underway?.events, [usage])
        assert.strictEqual(attempts.underway?.route.id, a.id)
      })
    )
  })

  it.effect("forgets what a failed route has sent", () => {
    const fake = new ProviderFake().on(a, streams([usage], outage)).on(b, hangs)
    return routed(
      fake,
      Effect.gen(function* () {
        const attempts = new Attempts()
        const fiber = yield* Effect.fork(Effect.scoped(stream(model(a, b), attempts)))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
        assert.isUndefined(attempts.underway)
      })
    )
  })
})

describe("whatever the weather", () => {
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
  const weather = FastCheck.record({
    scripts: FastCheck.array(FastCheck.array(steps, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 4 }),
    requests: FastCheck.array(
      FastCheck.record({ streaming: FastCheck.boolean(), pause: FastCheck.constantFrom(0, 0, 0, 1, 6, 61) }),
      { minLength: 1, maxLength: 15 }
    )
  })

  /** One request under the weather: which routes it asked, and what became of it. */
  const weathered = Effect.fnUntraced(function* (fake: ProviderFake, of: ChatModel, streaming: boolean) {
    const attempts = new Attempts()
    const before = fake.calls.length
    const asked = (streaming ? streamWhole : complete)(of, attempts)
    const fiber = yield* Effect.fork(Effect.scoped(outcome(asked)))
    while (Option.isNone(yield* Fiber.poll(fiber))) yield* TestClock.adjust("3 seconds")
    return { told: yield* Fiber.join(fiber), called: fake.calls.slice(before), attempts: attempts.list }
  })

  it.effect.prop(
    "no route is asked twice, no success is told as a failure, and a recovered route is found again",
    { weather },
    ({ weather: { requests, scripts } }) => {
      const fake = new ProviderFake()
      const routes = scripts.map((script, index) => {
        const one = route(`p${index}`)
        fake.on(one, ...script)
        return one
      })
      const of = model(...routes)
      return routed(
        fake,
        Effect.gen(function* () {
          for (const { pause, streaming } of requests) {
            const { attempts, called, told } = yield* weathered(fake, of, streaming)
            assert.strictEqual(new Set(called).size, called.length, "a route was asked twice")
            const tried = attempts.filter((one) => one.outcome !== "skipped")
            assert.deepStrictEqual(
              tried.map((one) => one.route),
              called
            )
            const ok = tried.find((one) => one.outcome === "ok")
            assert.strictEqual(told, ok?.route ?? told)
            assert.strictEqual(ok !== undefined, told.startsWith("m@"))
            if (ok !== undefined) assert.strictEqual(tried.at(-1), ok, "something was asked after a success")
            if (tried.length === 0) assert.strictEqual(told, "NoHealthyProvider")
            assert.deepStrictEqual(fake.busy, [])
            yield* TestClock.adjust(Duration.seconds(pause))
          }
          for (const one of routes) fake.on(one, answers())
          yield* TestClock.adjust("1 hour")
          for (const one of routes) {
            assert.strictEqual((yield* weathered(fake, { ...of, routes: [one] }, false)).told, one.id)
            assert.strictEqual(yield* circuitOf(one.id), "closed")
          }
        }),
        { requestTimeoutSeconds: 15, firstByteTimeoutSeconds: 6 }
      )
    },
    { fastCheck: { numRuns: 60 } }
  )
})

describe("health", () => {
  it.effect("shows circuit, last error and when, latency, requests and failures of each route", () => {
    const fake = new ProviderFake().on(a, fails(outage, "2 seconds")).on(b, answers("x", "3 seconds"))
    return routed(
      fake,
      Effect.gen(function* () {
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
    )
  })
})
