import { Effect, TestClock } from "effect"
import type { ChatRequest } from "../../../src/domain/Chat.ts"
import type { ChatModel, Route } from "../../../src/domain/Model.ts"
import { AttemptHistory } from "../../../src/services/routing/Attempt.ts"
import { ProviderRouter } from "../../../src/services/routing/ProviderRouter.ts"
import { Affinity } from "../../../src/services/routing/RouteSelection.ts"
import { acme, answers, fails, failure, model, ProviderFake, request } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { a, b, c, circuitOf, outage, routed, surfaces } from "./RoutedCalls.ts"

const equals = (...routes: ReadonlyArray<Route>): ChatModel => ({ ...model(), routes })

const [heavy, light] = [
  { ...a, weight: 3 },
  { ...b, weight: 1 }
]

for (const { ask, surface } of surfaces) {
  /** The routes that are preferred and that answer. */
  const turn = Effect.fnUntraced(function* (of: ChatModel, more: Partial<ChatRequest> = { conversation: "talk" }) {
    const attempts = new AttemptHistory(acme)
    const { route } = yield* Effect.scoped(ask(of, attempts, request(more)))
    return { answered: route.id, preferred: attempts.preferredRoute }
  })

  const answeredBy = (of: ChatModel, conversation = "talk") =>
    Effect.map(turn(of, { conversation }), ({ answered }) => answered)

  describe(`the conversation of ${surface}`, () => {
    it.effect("stays on the route that answered it first", () =>
      routed(new ProviderFake(), function* () {
        const first = yield* turn(equals(a, b, c))
        assert.isUndefined(first.preferred)
        const turns = yield* Effect.replicateEffect(turn(equals(a, b, c)), 50)
        for (const each of turns) {
          assert.deepStrictEqual(each, { answered: first.answered, preferred: first.answered })
        }
      })
    )

    it.effect("leaves the choice of a route to the weights when it begins", () =>
      routed(new ProviderFake(), function* () {
        let onHeavy = 0
        for (let n = 0; n < 500; n++) {
          if ((yield* answeredBy(equals(heavy, light), `talk ${n}`)) === heavy.id) onHeavy += 1
        }
        assert.closeTo(onHeavy / 500, 0.75, 0.06)
      })
    )

    it.effect("begins on the same route at every instance, and after every restart", function* () {
      const chosen: ReadonlyArray<Array<string>> = [[], []]
      for (const [instance, routes] of chosen.entries()) {
        yield* routed(new ProviderFake(), function* () {
          // What was drawn before makes no difference.
          yield* Effect.replicateEffect(turn(equals(a, b, c), {}), instance)
          for (let n = 0; n < 50; n++) routes.push(yield* answeredBy(equals(a, b, c), `talk ${n}`))
        })
      }
      assert.deepStrictEqual(chosen[0], chosen[1])
      assert.sameMembers([...new Set(chosen[0])], [a.id, b.id, c.id])
    })

    it.effect("does not affect a request without a conversation", () =>
      routed(new ProviderFake(), function* () {
        const attempts = yield* Effect.replicateEffect(turn(equals(a, b), {}), 50)
        assert.sameMembers([...new Set(attempts.map(({ answered }) => answered))], [a.id, b.id])
        assert.isTrue(attempts.every(({ preferred }) => preferred === undefined))
      })
    )

    it.effect("is remembered for ten minutes after its last answer", () =>
      routed(new ProviderFake(), function* () {
        yield* turn(equals(a, b))
        yield* TestClock.adjust("599 seconds")
        assert.isDefined((yield* turn(equals(a, b))).preferred)
        yield* TestClock.adjust("599 seconds")
        assert.isDefined((yield* turn(equals(a, b))).preferred)
        yield* TestClock.adjust("600 seconds")
        assert.isUndefined((yield* turn(equals(a, b))).preferred)
      })
    )

    it.effect("stays where a failure brought it, and returns to the first preference after ten minutes there", () =>
      routed(new ProviderFake().on(a, fails(outage), answers()), function* () {
        assert.strictEqual(yield* answeredBy(model(a, b)), b.id)
        for (let minute = 0; minute < 9; minute++) {
          yield* TestClock.adjust("1 minute")
          assert.deepStrictEqual(yield* turn(model(a, b)), { answered: b.id, preferred: b.id })
          assert.strictEqual(yield* answeredBy(model(a, b), `new ${minute}`), a.id)
        }
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(yield* turn(model(a, b)), { answered: a.id, preferred: b.id })
        assert.deepStrictEqual(yield* turn(model(a, b)), { answered: a.id, preferred: a.id })
      })
    )

    it.effect("stays on one of several fallbacks for as long as the first preference is out", () => {
      const away = failure("account", 401, { retryAfterSeconds: 3600 })
      const of = equals(a, { ...b, preference: 2 }, { ...c, preference: 2 })
      return routed(new ProviderFake().on(a, fails(away), answers()), function* () {
        const { answered } = yield* turn(of)
        for (let n = 0; n < 10; n++) {
          yield* TestClock.adjust("5 minutes")
          assert.deepStrictEqual(yield* turn(of), { answered, preferred: answered })
        }
        yield* TestClock.adjust("9 minutes")
        yield* turn(of)
        yield* TestClock.adjust("5 minutes")
        assert.strictEqual(yield* answeredBy(of), a.id)
      })
    })

    it.effect("leaves a route of weight 0 to which a failure brought it after ten minutes there", () => {
      const of = equals({ ...a, weight: 0 }, b)
      return routed(new ProviderFake().on(b, fails(outage), answers()), function* () {
        assert.strictEqual(yield* answeredBy(of), a.id)
        yield* TestClock.adjust("9 minutes")
        assert.strictEqual(yield* answeredBy(of), a.id)
        yield* TestClock.adjust("9 minutes")
        assert.strictEqual(yield* answeredBy(of), b.id)
      })
    })

    it.effect("moves while its route's circuit is open, and stays where it went", () => {
      const limited = failure("limit", 429, { retryAfterSeconds: 30 })
      const fake = new ProviderFake()
      return routed(fake, function* () {
        const before = yield* answeredBy(equals(a, b))
        const [own, other] = before === a.id ? [a, b] : [b, a]
        fake.on(own, fails(limited), answers())
        assert.deepStrictEqual(yield* turn(equals(a, b)), { answered: other.id, preferred: own.id })
        assert.strictEqual(yield* circuitOf(own.id), "open")
        assert.deepStrictEqual(yield* turn(equals(a, b)), { answered: other.id, preferred: other.id })
        yield* TestClock.adjust("31 seconds")
        assert.deepStrictEqual(yield* turn(equals(a, b)), { answered: other.id, preferred: other.id })
      })
    })

    it.effect("moves without a call to a route that is disabled", () => {
      const fake = new ProviderFake()
      return routed(fake, function* () {
        const own = yield* answeredBy(equals(a, b))
        const other = own === a.id ? b.id : a.id
        yield* Effect.flatMap(ProviderRouter, (router) => router.disable(new Set([own])))
        assert.deepStrictEqual(yield* turn(equals(a, b)), { answered: other, preferred: own })
        assert.deepStrictEqual(yield* turn(equals(a, b)), { answered: other, preferred: other })
        assert.deepStrictEqual(fake.calls, [own, other, other])
      })
    })

    it.effect("moves from a removed route, or from one that cannot serve its next request", () =>
      routed(new ProviderFake(), function* () {
        assert.strictEqual(yield* answeredBy(equals(a)), a.id)
        assert.deepStrictEqual(yield* turn(equals(b)), { answered: b.id, preferred: a.id })
        const unable = { ...b, capabilities: new Set<never>() }
        const tools = [{ type: "function" as const, function: { name: "f" } }]
        const next = turn(equals(unable, c), { conversation: "talk", tools })
        assert.deepStrictEqual(yield* next, { answered: c.id, preferred: b.id })
      })
    )

    it.effect("stays on its route when no route answers", () =>
      routed(new ProviderFake().on(a, answers(), fails(outage), answers()).on(b, fails(outage)), function* () {
        assert.strictEqual(yield* answeredBy(model(a, b)), a.id)
        yield* Effect.flip(turn(model(a, b)))
        assert.deepStrictEqual(yield* turn(model(a, b)), { answered: a.id, preferred: a.id })
      })
    )
  })
}

describe("the affinity table", () => {
  it("holds the 25,000 that were used last, and at most 50,000", () => {
    const affinity = new Affinity()
    for (let n = 0; n < 80_000; n++) {
      affinity.remember(`talk ${n}`, "m@a", 0)
      affinity.remember("talk 0", "m@a", 0)
      assert.isAtMost(affinity.size, 50_000)
    }
    assert.isDefined(affinity.find("talk 0", 0))
    assert.isUndefined(affinity.find("talk 20000", 0))
    for (let n = 55_001; n < 80_000; n++) assert.isDefined(affinity.find(`talk ${n}`, 0))
  })

  it("drops those that are no longer used", () => {
    const affinity = new Affinity()
    for (let n = 0; n < 1_000; n++) affinity.remember(`talk ${n}`, "m@a", 0)
    affinity.remember("another", "m@a", 600_000)
    affinity.remember("another", "m@a", 1_200_000)
    assert.isAtMost(affinity.size, 2)
  })
})
