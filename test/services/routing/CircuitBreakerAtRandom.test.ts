import { FastCheck } from "effect"
import type { Permit } from "../../../src/services/routing/CircuitBreaker.ts"
import { failure } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { bench, minute, outage, second } from "./CircuitBench.ts"

describe("after any events in any order", () => {
  const names = ["a", "b", "c"]
  const step = FastCheck.oneof(
    { weight: 3, arbitrary: FastCheck.record({ kind: FastCheck.constant("enter" as const), at: FastCheck.nat(2) }) },
    {
      weight: 4,
      arbitrary: FastCheck.record({
        kind: FastCheck.constantFrom("succeed" as const, "leave" as const, "fail" as const, "fail" as const),
        at: FastCheck.nat(20),
        failure: FastCheck.constantFrom(
          outage,
          outage,
          failure("limit", 429, { retryAfterSeconds: 30 }),
          failure("account", 401)
        ),
        random: FastCheck.double({ min: 0, max: 0.99, noNaN: true })
      })
    },
    { weight: 1, arbitrary: FastCheck.record({ kind: FastCheck.constant("trip" as const), at: FastCheck.nat(2) }) },
    {
      weight: 2,
      arbitrary: FastCheck.record({
        kind: FastCheck.constant("wait" as const),
        ms: FastCheck.constantFrom(1, 900, 1100, 6000, 70_000)
      })
    }
  )

  /** Plays the steps on up to three routes; the account is only ever at fault on the first of several. */
  const play = (routes: number, steps: ReadonlyArray<typeof step extends FastCheck.Arbitrary<infer A> ? A : never>) => {
    const driven = bench(...names.slice(0, routes))
    const under: Array<{ readonly name: string; readonly permit: Permit; readonly probeSince: number | undefined }> = []
    let now = 0
    const enter = (name: string) => {
      const probing = driven.state(name, now) === "half_open"
      const permit = driven.enter(name, now)
      if (permit === undefined) return
      const others = under.filter((one) => one.name === name && one.probeSince !== undefined)
      if (probing) {
        const fresh = others.filter(
          (one) => one.permit.epoch === permit.epoch && now - (one.probeSince ?? 0) < 5 * second
        )
        assert.deepStrictEqual(fresh, [], "two probes at once")
      }
      under.push({ name, permit, probeSince: probing ? now : undefined })
    }
    for (const one of steps) {
      if (one.kind === "wait") now += one.ms
      else if (one.kind === "enter") enter(names[one.at % routes] ?? "a")
      else if (one.kind === "trip") {
        const name = names[one.at % routes] ?? "a"
        for (let times = 0; times < 5 && driven.state(name, now) === "closed"; times++) driven.fail(name, now)
      } else {
        const [ended] = under.splice(one.at % Math.max(1, under.length), 1)
        if (ended === undefined) continue
        const { name, permit } = ended
        const account = one.failure.class === "account" && (name !== "a" || routes === 1)
        if (one.kind === "fail") driven.circuit(name).fail(permit, account ? outage : one.failure, now, one.random)
        else driven.circuit(name)[one.kind](permit)
      }
    }
    return { ...driven, names: names.slice(0, routes), now, under }
  }

  const plays = { routes: FastCheck.integer({ min: 1, max: 3 }), steps: FastCheck.array(step, { maxLength: 60 }) }

  it.prop(
    "a model without a fault of its account admits a request within 5 s",
    plays,
    ({ routes, steps }) => {
      const { enter, names: all, now } = play(routes, steps)
      assert.isTrue(all.some((name) => enter(name, now + 5 * second) !== undefined))
    },
    { fastCheck: { numRuns: 3000 } }
  )

  it.prop(
    "a route that has recovered admits every request again",
    plays,
    ({ routes, steps }) => {
      const { circuit, enter, names: all, now, state, succeed, under } = play(routes, steps)
      for (const { name, permit } of under) circuit(name).leave(permit)
      for (const name of all) {
        succeed(name, now + 60 * minute)
        assert.strictEqual(state(name, now + 60 * minute), "closed")
        for (let times = 0; times < 20; times++) assert.isDefined(enter(name, now + 60 * minute))
      }
    },
    { fastCheck: { numRuns: 3000 } }
  )
})
