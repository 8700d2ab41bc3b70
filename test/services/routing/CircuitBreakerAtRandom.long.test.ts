import { FastCheck } from "effect"
import type { OrgId } from "../../../src/domain/Organization.ts"
import type { Permit } from "../../../src/services/routing/Circuit.ts"
import { failure } from "../../fakes/ProviderFake.ts"
import { runs } from "../../harness/Cases.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { acme, bench, fault, minute, other, outage, second } from "./CircuitBench.ts"

interface Probe {
  readonly openUntil: number
  readonly since: number
}

describe("after any events in any order", () => {
  const names = ["a", "b", "c"]
  const step = FastCheck.oneof(
    {
      weight: 3,
      arbitrary: FastCheck.record({
        kind: FastCheck.constant("enter" as const),
        at: FastCheck.nat(2),
        org: FastCheck.constantFrom(acme, other)
      })
    },
    {
      weight: 4,
      arbitrary: FastCheck.record({
        kind: FastCheck.constantFrom("succeed" as const, "leave" as const, "fail" as const, "fail" as const),
        at: FastCheck.nat(20),
        failure: FastCheck.constantFrom(
          outage,
          fault,
          fault,
          failure("retry", 503, { retryAfterSeconds: 30 }),
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
    const under: Array<{ readonly name: string; readonly permit: Permit; readonly probe: Probe | undefined }> = []
    let now = 0
    const enter = (name: string, org: OrgId) => {
      const { openUntil } = driven.circuit(name)
      const isProbe = driven.state(name, now) === "half_open"
      const permit = driven.enter(name, now, org)
      if (permit === undefined) return
      const probe = isProbe && openUntil !== undefined ? { openUntil, since: now } : undefined
      const others = under.flatMap((one) => (one.name === name && one.probe !== undefined ? [one.probe] : []))
      const fresh = others.filter((one) => one.openUntil === probe?.openUntil && now - one.since < 5 * second)
      assert.deepStrictEqual(fresh, [], "two probes at once")
      under.push({ name, permit, probe })
    }
    for (const one of steps) {
      if (one.kind === "wait") now += one.ms
      else if (one.kind === "enter") enter(names[one.at % routes] ?? "a", one.org)
      else if (one.kind === "trip") {
        const name = names[one.at % routes] ?? "a"
        for (let times = 0; times < 5 && driven.state(name, now) === "closed"; times++) {
          const permit = driven.enter(name, now)
          if (permit !== undefined) driven.circuit(name).fail(permit, outage, now, 0)
        }
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
    "a model without a fault of its account admits a request of any organization within 5 s",
    plays,
    ({ routes, steps }) => {
      const { circuit, enter, names: all, now } = play(routes, steps)
      for (const org of [acme, other]) {
        const admitted = all.flatMap((name) => {
          const permit = enter(name, now + 5 * second, org)
          return permit === undefined ? [] : [{ name, permit }]
        })
        assert.isNotEmpty(admitted)
        for (const { name, permit } of admitted) circuit(name).leave(permit)
      }
    },
    { fastCheck: { numRuns: runs(3000) } }
  )

  it.prop(
    "a route that has recovered admits every request again",
    plays,
    ({ routes, steps }) => {
      const { circuit, enter, names: all, now, state, succeed, under } = play(routes, steps)
      for (const { name, permit } of under) circuit(name).leave(permit)
      for (const name of all) {
        for (const org of [acme, other]) succeed(name, now + 60 * minute, org)
        assert.strictEqual(state(name, now + 60 * minute), "closed")
        for (let times = 0; times < 20; times++) assert.isDefined(enter(name, now + 60 * minute, other))
      }
    },
    { fastCheck: { numRuns: runs(3000) } }
  )
})
