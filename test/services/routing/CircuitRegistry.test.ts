import { Redacted } from "effect"
import type { Route } from "../../../src/domain/Model.ts"
import { CircuitRegistry } from "../../../src/services/routing/CircuitRegistry.ts"
import { failure, model, route } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { acme, bench, minute, outage, second } from "./CircuitBench.ts"

const a = route("a")
const b = route("b")

const withKey = (one: Route, key: string): Route => ({
  ...one,
  provider: { ...one.provider, credential: Redacted.make(key) }
})

const trip = (circuits: CircuitRegistry, of: ReturnType<typeof model>, one: Route) => {
  const circuit = circuits.of(of, one)
  circuit.fail(circuit.enter(0, acme) ?? { epoch: 0, org: acme }, failure("account", 401), 0, 0)
  return circuit
}

const reported = (circuits: CircuitRegistry) => circuits.health(0, 0).map(({ circuit, route }) => `${route} ${circuit}`)

describe("after a reload of the catalog", () => {
  it("an unchanged route keeps its circuit, whatever its price, order and weight", () => {
    const circuits = new CircuitRegistry()
    const before = withKey(a, "k")
    const circuit = trip(circuits, model(before, b), before)
    const same = { ...withKey(a, "k"), preference: 7, weight: 9 }
    const after = model(b, same)
    circuits.follow([after])
    assert.strictEqual(circuits.of(after, same), circuit)
    assert.deepStrictEqual(reported(circuits), [`${b.id} closed`, `${a.id} open`])
  })

  it("a route with another credential, address, model or option gets a new circuit", () => {
    for (const changed of [
      withKey(a, "rotated"),
      { ...a, model: "newer" },
      { ...a, options: { retries: 3 } },
      { ...a, provider: { ...a.provider, baseUrl: "https://elsewhere.test" } }
    ]) {
      const circuits = new CircuitRegistry()
      const before = trip(circuits, model(a), a)
      circuits.follow([model(changed)])
      assert.notStrictEqual(circuits.of(model(changed), changed), before)
      assert.deepStrictEqual(reported(circuits), [`${a.id} closed`])
    }
  })

  it("a request that began before it does not count against the new credential", () => {
    const circuits = new CircuitRegistry()
    const old = withKey(a, "old")
    const fresh = withKey(a, "new")
    circuits.of(model(old, b), old)
    circuits.follow([model(fresh, b)])
    trip(circuits, model(old, b), old)
    assert.deepStrictEqual(reported(circuits), [`${a.id} closed`, `${b.id} closed`])
    // Nor does one that had not asked any route of the model yet.
    trip(circuits, model(withKey(a, "older"), b), withKey(a, "older"))
    assert.deepStrictEqual(reported(circuits), [`${a.id} closed`, `${b.id} closed`])
  })

  it("removed routes and unused routes are not reported", () => {
    const circuits = new CircuitRegistry()
    circuits.of(model(a, b), a)
    circuits.follow([model(b)])
    assert.deepStrictEqual(reported(circuits), [`${b.id} closed`])
    circuits.follow([])
    assert.deepStrictEqual(reported(circuits), [])
  })
})

describe("a route that is disabled by hand", () => {
  it("lets no request through, not even a probe, until it is enabled", () => {
    const { circuits, enter, trip } = bench("a", "b")
    trip("a", 0)
    circuits.disable(new Set([a.id]), 0)
    for (const now of [0, minute, 60 * minute]) assert.isUndefined(enter("a", now))
    assert.isDefined(enter("b", 0))
    circuits.disable(new Set(), 0)
    assert.isDefined(enter("a", minute))
  })

  it("is disabled before its first request, too", () => {
    const { circuits, enter } = bench("a", "b")
    circuits.disable(new Set([a.id]), 0)
    assert.isUndefined(enter("a", 0))
  })

  it("still counts outcomes of requests in flight", () => {
    const { admitted, circuit, circuits } = bench("a", "b")
    const permit = admitted("a", 0)
    circuits.disable(new Set([a.id]), 0)
    circuit("a").fail(permit, outage, 0, 0)
    assert.strictEqual(circuit("a").failures, 1)
  })

  it("makes the other the last route, which is skipped for at most 5 seconds", () => {
    const { circuit, circuits, closedFor, fail } = bench("a", "b")
    circuit("b").fail(
      circuit("b").enter(0, acme) ?? { epoch: 0, org: acme },
      failure("limit", 429, { retryAfterSeconds: 60 }),
      0,
      0
    )
    assert.strictEqual(closedFor("b", 0), minute)
    circuits.disable(new Set([a.id]), 0)
    assert.strictEqual(closedFor("b", 0), 5 * second)
    fail("b", 6 * second)
    assert.isAtMost(closedFor("b", 6 * second), 5 * second)
  })
})

describe("a reset", () => {
  it("closes the circuit and clears failures, including account failures", () => {
    const { circuit, circuits, enter, trip } = bench("a", "b")
    circuit("a").fail(circuit("a").enter(0, acme) ?? { epoch: 0, org: acme }, failure("account", 401), 0, 0)
    assert.isUndefined(enter("a", 0))
    circuits.reset(a.id)
    assert.isDefined(enter("a", 0))
    const [health] = circuits.health(0, 0)
    assert.deepInclude(health, { circuit: "closed", lastError: undefined, failures: 0 })
    // The next opening is a first one again.
    trip("a", 0)
    assert.strictEqual(circuit("a").openUntil, second)
  })

  it("of an unused route does nothing", () => {
    const circuits = new CircuitRegistry()
    circuits.reset("m@nobody")
    assert.deepStrictEqual(reported(circuits), [])
  })
})
