import { failure } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { bench, minute, outage, second } from "./CircuitBench.ts"

describe("a circuit", () => {
  it("opens after 5 consecutive failures and not after 4", () => {
    const { closedFor, enter, fail, state } = bench("a", "b")
    for (let times = 0; times < 4; times++) fail("a", 0)
    assert.strictEqual(state("a", 0), "closed")
    fail("a", 0)
    assert.strictEqual(state("a", 0), "open")
    assert.strictEqual(closedFor("a", 0), second)
    assert.isUndefined(enter("a", second - 1))
  })

  it("does not open for failures with a success between them", () => {
    const { fail, state, succeed } = bench("a", "b")
    for (let times = 0; times < 20; times++) {
      for (let failures = 0; failures < 4; failures++) fail("a", 0)
      succeed("a", 0)
    }
    assert.strictEqual(state("a", 0), "closed")
  })

  it("does not open for requests that ended without an outcome", () => {
    const { admitted, circuit, state } = bench("a", "b")
    for (let times = 0; times < 20; times++) circuit("a").leave(admitted("a", 0))
    assert.strictEqual(state("a", 0), "closed")
  })

  it("opens for 1 s at first and doubles that up to 60 s", () => {
    const { closedFor, fail, trip } = bench("a", "b")
    trip("a", 0)
    const times = [closedFor("a", 0)]
    let now = 0
    for (let probes = 0; probes < 8; probes++) {
      now += times.at(-1) ?? 0
      fail("a", now)
      times.push(closedFor("a", now))
    }
    assert.deepStrictEqual(
      times.map((ms) => ms / second),
      [1, 2, 4, 8, 16, 32, 60, 60, 60]
    )
  })

  it("opens with jitter that never makes the time longer", () => {
    const { closedFor, fail, trip } = bench("a", "b")
    trip("a", 0, 0.99)
    fail("a", second, outage, 0.5)
    assert.strictEqual(closedFor("a", second), 1800)
  })

  it("opens once for all requests that were under way", () => {
    const { admitted, circuit, closedFor } = bench("a", "b")
    const permits = Array.from({ length: 100 }, () => admitted("a", 0))
    for (const permit of permits) circuit("a").fail(permit, outage, 10, 0)
    assert.strictEqual(closedFor("a", 10), second)
  })

  it("opens again for 1 s after 5 more failures once it has closed", () => {
    const { closedFor, fail, succeed, trip } = bench("a", "b")
    trip("a", 0)
    fail("a", second)
    succeed("a", 10 * second)
    for (let times = 0; times < 4; times++) fail("a", 11 * second)
    assert.strictEqual(closedFor("a", 11 * second), 0)
    fail("a", 11 * second)
    assert.strictEqual(closedFor("a", 11 * second), second)
  })
})

describe("Retry-After", () => {
  const throttled = (retryAfterSeconds: number) => failure("limit", 429, { retryAfterSeconds })

  it("is honoured from the first failure on", () => {
    const { enter, fail, succeed } = bench("a", "b")
    fail("a", 0, throttled(17))
    assert.isUndefined(enter("a", 17 * second - 1))
    succeed("a", 17 * second)
    assert.isDefined(enter("a", 17 * second))
  })

  it("never shortens what the failures earned", () => {
    const { closedFor, fail, trip } = bench("a", "b")
    trip("a", 0)
    fail("a", second)
    fail("a", 3 * second, throttled(1))
    assert.strictEqual(closedFor("a", 3 * second), 4 * second)
  })

  it("is extended by requests that were under way, and bounded by an hour", () => {
    const { admitted, circuit, closedFor } = bench("a", "b")
    const [early, late] = [admitted("a", 0), admitted("a", 0)]
    circuit("a").fail(early, throttled(10), 0, 0)
    circuit("a").fail(late, throttled(1e9), second, 0)
    assert.strictEqual(closedFor("a", second), 60 * minute)
  })

  it("of zero, like a missing one, counts as an ordinary failure", () => {
    const { fail, state } = bench("a", "b")
    fail("a", 0, throttled(0))
    fail("a", 0, failure("limit", 429))
    assert.strictEqual(state("a", 0), "closed")
  })
})

describe("a failure of the provider's account", () => {
  const unpaid = failure("account", 402)

  it("opens the circuit at once for 5 minutes, doubling to an hour", () => {
    const { closedFor, fail } = bench("a", "b")
    const times: Array<number> = []
    let now = 0
    for (let probes = 0; probes < 6; probes++) {
      fail("a", now, unpaid)
      times.push(closedFor("a", now) / minute)
      now += closedFor("a", now)
    }
    assert.deepStrictEqual(times, [5, 10, 20, 40, 60, 60])
  })

  it("starts at 5 minutes again once the route has recovered", () => {
    const { closedFor, fail, succeed } = bench("a", "b")
    fail("a", 0, unpaid)
    fail("a", 5 * minute, unpaid)
    succeed("a", 15 * minute)
    fail("a", 15 * minute, unpaid)
    assert.strictEqual(closedFor("a", 15 * minute), 5 * minute)
  })

  it("counts for a request that was under way when the circuit opened for less", () => {
    const { admitted, circuit, closedFor, trip } = bench("a", "b")
    const permit = admitted("a", 0)
    trip("a", 0)
    circuit("a").fail(permit, unpaid, 0, 0)
    assert.strictEqual(closedFor("a", 0), 5 * minute)
  })

  it("does not count for a request older than the route's recovery", () => {
    const { admitted, circuit, state, succeed, trip } = bench("a", "b")
    const permit = admitted("a", 0)
    trip("a", 0)
    succeed("a", second)
    circuit("a").fail(permit, unpaid, 2 * second, 0)
    assert.strictEqual(state("a", 2 * second), "closed")
  })
})

describe("a circuit whose time has ended", () => {
  it("lets one request probe and refuses all others", () => {
    const { admitted, enter, state, trip } = bench("a", "b")
    trip("a", 0)
    admitted("a", second)
    assert.strictEqual(state("a", second), "half_open")
    for (let times = 0; times < 10; times++) assert.isUndefined(enter("a", second))
  })

  it("closes for all requests when its probe succeeds", () => {
    const { enter, state, succeed, trip } = bench("a", "b")
    trip("a", 0)
    succeed("a", second)
    assert.strictEqual(state("a", second), "closed")
    for (let times = 0; times < 10; times++) assert.isDefined(enter("a", second))
  })

  it("admits another probe when one ends without an outcome", () => {
    const { admitted, circuit, enter, trip } = bench("a", "b")
    trip("a", 0)
    circuit("a").leave(admitted("a", second))
    assert.isDefined(enter("a", second))
    assert.isUndefined(enter("a", second))
  })

  it("admits another probe after 60 s of a long one, or after 5 s on the model's only route", () => {
    const several = bench("a", "b")
    several.trip("a", 0)
    several.admitted("a", second)
    assert.isUndefined(several.enter("a", 61 * second - 1))
    assert.isDefined(several.enter("a", 61 * second))

    const alone = bench("a")
    alone.trip("a", 0)
    alone.admitted("a", second)
    assert.isUndefined(alone.enter("a", 6 * second - 1))
    assert.isDefined(alone.enter("a", 6 * second))
  })

  it("ignores outcomes of requests older than its opening", () => {
    const { admitted, circuit, closedFor, state, trip } = bench("a", "b")
    const [good, bad] = [admitted("a", 0), admitted("a", 0)]
    trip("a", 0)
    circuit("a").succeed(good)
    circuit("a").fail(bad, outage, 10, 0)
    assert.strictEqual(state("a", 10), "open")
    assert.strictEqual(closedFor("a", 10), second - 10)
  })
})

describe("a model's last open route", () => {
  it("is never skipped for more than 5 s", () => {
    const { closedFor, fail, trip } = bench("a")
    trip("a", 0)
    let now = 0
    for (let probes = 0; probes < 10; probes++) {
      now += closedFor("a", now)
      fail("a", now, failure("limit", 429, { retryAfterSeconds: 600 }))
      assert.isAtMost(closedFor("a", now), 5 * second)
    }
  })

  it("is not skipped again after old requests that get a Retry-After", () => {
    const { admitted, circuit, enter, trip } = bench("a")
    const permit = admitted("a", 0)
    trip("a", 0)
    circuit("a").fail(permit, failure("limit", 429, { retryAfterSeconds: 600 }), second, 0)
    assert.isDefined(enter("a", second))
  })

  it("is the one whose circuit opens last", () => {
    const { closedFor, fail } = bench("a", "b")
    fail("a", 0, failure("limit", 429, { retryAfterSeconds: 60 }))
    fail("b", second, failure("limit", 429, { retryAfterSeconds: 60 }))
    assert.strictEqual(closedFor("a", second), 59 * second)
    assert.strictEqual(closedFor("b", second), 5 * second)
  })

  it("is skipped for longer after an account failure, and the previous one is shortened instead", () => {
    const { closedFor, fail } = bench("a", "b")
    fail("a", 0, failure("limit", 429, { retryAfterSeconds: 60 }))
    fail("b", second, failure("account", 401))
    assert.strictEqual(closedFor("b", second), 5 * minute)
    assert.strictEqual(closedFor("a", second), 4 * second)
  })

  it("is not shortened while another route is available", () => {
    const { closedFor, fail } = bench("a", "b", "c")
    fail("a", 0, failure("limit", 429, { retryAfterSeconds: 60 }))
    fail("b", 0, failure("limit", 429, { retryAfterSeconds: 60 }))
    assert.deepStrictEqual([closedFor("a", 0), closedFor("b", 0)], [60 * second, 60 * second])
  })
})

describe("the health of routes", () => {
  it("has each route of a requested model, with counts, last error and latency", () => {
    const { circuit, circuits, fail, succeed } = bench("a", "b")
    fail("a", 5, failure("retry", 503, { detail: "overloaded" }))
    succeed("a", 6)
    circuit("a").measure(100)
    circuit("a").measure(200)
    assert.deepStrictEqual(circuits.health(7, 5_007), [
      {
        route: "m@a",
        provider: "a",
        model: "m",
        circuit: "closed",
        openUntil: undefined,
        openForOrganizations: 0,
        lastError: "retry 503: overloaded",
        lastErrorAt: 5_005,
        latencyMs: 120,
        requests: 2,
        failures: 1
      },
      {
        route: "m@b",
        provider: "b",
        model: "m",
        circuit: "closed",
        openUntil: undefined,
        openForOrganizations: 0,
        lastError: undefined,
        lastErrorAt: undefined,
        latencyMs: undefined,
        requests: 0,
        failures: 0
      }
    ])
  })
})
