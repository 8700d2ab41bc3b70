import { OrgId } from "../../../src/domain/Organization.ts"
import { failure } from "../../fakes/ProviderFake.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { acme, bench, fault, minute, other, outage, second } from "./CircuitBench.ts"

const faults = [
  ["a timeout", failure("timeout", undefined)],
  ["a 500", failure("retry", 500)],
  ["a broken answer", failure("retry", 200)],
  ["a connection lost in the middle of an answer", failure("network", 200)],
  ["bytes that are no HTTP", failure("network", undefined, { isRequestFault: true })]
] as const

const outages = [
  ["a connection refused, or reset before a byte", outage],
  ["a connection that takes too long to open", failure("timeout", undefined, { isUnsent: true })],
  ["a 429", failure("limit", 429)],
  ["an account at fault", failure("account", 401)]
] as const

/** Circuits that drive failures of requests of one organization each. */
const driven = (...names: ReadonlyArray<string>) => {
  const all = bench(...names)
  const meet = (org: OrgId, times: number, now: number, what = fault, name = "a") => {
    for (let time = 0; time < times; time++) all.fail(name, now, what, 0, org)
  }
  const admits = (org: OrgId, now: number, name = "a") => {
    const permit = all.enter(name, now, org)
    if (permit !== undefined) all.circuit(name).leave(permit)
    return permit !== undefined
  }
  return { ...all, admits, meet }
}

describe("five consecutive failures of one organization", () => {
  for (const [name, what] of faults) {
    it(`open the route for it alone, where each is ${name}`, () => {
      const { admits, circuit, meet, state } = driven("a", "b")
      meet(acme, 4, 0, what)
      assert.isTrue(admits(acme, 0))
      meet(acme, 1, 0, what)
      assert.isFalse(admits(acme, second - 1))
      assert.isTrue(admits(other, 0))
      assert.strictEqual(state("a", 0), "closed")
      assert.strictEqual(circuit("a").openForOrganizations(0), 1)
    })
  }

  for (const [name, what] of outages) {
    it(`open the route for all, where each is ${name}`, () => {
      const { admits, meet, state } = driven("a", "b")
      meet(acme, what.class === "account" ? 1 : 5, 0, what)
      assert.strictEqual(state("a", 0), "open")
      assert.isFalse(admits(other, 0))
    })
  }

  it("open it for 1 s at first, doubling up to 60 s, until a probe of its own succeeds", () => {
    const { admits, meet, succeed } = driven("a", "b")
    meet(acme, 5, 0)
    let now = 0
    for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60]) {
      assert.isFalse(admits(acme, now + seconds * second - 1))
      now += seconds * second
      succeed("a", now, other)
      if (seconds < 60 || now < 3 * minute) meet(acme, 1, now)
    }
    succeed("a", now, acme)
    meet(acme, 4, now)
    assert.isTrue(admits(acme, now))
  })
})

describe("five consecutive failures of two organizations", () => {
  it("open the route for both and all others", () => {
    const { admits, meet, state } = driven("a", "b")
    meet(acme, 4, 0)
    meet(other, 1, 0)
    assert.strictEqual(state("a", 0), "open")
    assert.isFalse(admits(OrgId.make("third"), 0))
  })

  it("open the route even if it is open for one of them already", () => {
    const { meet, state } = driven("a", "b")
    meet(acme, 5, 0)
    assert.strictEqual(state("a", 0), "closed")
    meet(other, 1, 10 * second)
    assert.strictEqual(state("a", 10 * second), "open")
  })

  it("do not open it with a success of any organization between them", () => {
    const { meet, state, succeed } = driven("a", "b")
    meet(acme, 4, 0)
    succeed("a", 0, OrgId.make("third"))
    meet(other, 4, 0)
    assert.strictEqual(state("a", 0), "closed")
  })

  it("do not open it if only some of them are outages", () => {
    const { meet, state } = driven("a", "b")
    meet(acme, 4, 0, outage)
    meet(acme, 4, 0)
    assert.strictEqual(state("a", 0), "closed")
    meet(acme, 1, 0, outage)
    assert.strictEqual(state("a", 0), "open")
  })
})

describe("a Retry-After", () => {
  const later = (status: number, kind: "retry" | "limit") => failure(kind, status, { retryAfterSeconds: 17 })

  it("of a 429 applies to all", () => {
    const { admits, meet } = driven("a", "b")
    meet(acme, 1, 0, later(429, "limit"))
    assert.isFalse(admits(other, 17 * second - 1))
  })

  it("of a 503 applies to its organization, and to all when another one gets it too", () => {
    const { admits, meet } = driven("a", "b")
    meet(acme, 1, 0, later(503, "retry"))
    assert.isFalse(admits(acme, 17 * second - 1))
    assert.isTrue(admits(other, 0))
    meet(other, 1, second, later(503, "retry"))
    assert.isFalse(admits(OrgId.make("third"), 18 * second - 1))
  })
})

describe("a route that is open for all", () => {
  const opened = () => {
    const all = driven("a", "b")
    all.meet(other, 5, 0, outage)
    return all
  }

  it("leaves the next probe to another organization after a failed one, and opens for longer if that fails too", () => {
    const { admits, closedFor, meet, state } = opened()
    meet(acme, 1, second)
    assert.strictEqual(state("a", second), "half_open")
    assert.isFalse(admits(acme, second))
    assert.isTrue(admits(other, second))
    meet(other, 1, second)
    assert.strictEqual(closedFor("a", second), 2 * second)
  })

  it("opens for longer at once if its probe meets an outage", () => {
    const { closedFor, meet } = opened()
    meet(acme, 1, second, outage)
    assert.strictEqual(closedFor("a", second), 2 * second)
  })

  it("closes with the probe of any organization", () => {
    const { admits, state, succeed } = opened()
    succeed("a", second, acme)
    assert.strictEqual(state("a", second), "closed")
    assert.isTrue(admits(other, second))
  })
})

describe("a route that is open for one organization", () => {
  it("lets it probe, one request at a time", () => {
    const { admitted, admits, circuit, meet } = driven("a", "b")
    meet(acme, 5, 0)
    const permit = admitted("a", second, acme)
    assert.isFalse(admits(acme, second))
    assert.isTrue(admits(other, second))
    circuit("a").leave(permit)
    assert.isTrue(admits(acme, second))
  })

  it("lets it probe again if its probe met an outage", () => {
    const { admits, meet } = driven("a", "b")
    meet(acme, 5, 0)
    meet(acme, 1, second, outage)
    assert.isTrue(admits(acme, second))
  })

  it("is open for at most 5 s if the organization has no other route", () => {
    const { admits, meet } = driven("a", "b")
    const late = failure("retry", 503, { retryAfterSeconds: 600 })
    meet(acme, 1, 0, late)
    assert.isFalse(admits(acme, 5 * second))
    meet(acme, 1, 5 * second, late, "b")
    assert.isTrue(admits(acme, 10 * second, "b"))
  })

  it("is closed by a reset", () => {
    const { admits, circuit, meet } = driven("a", "b")
    meet(acme, 5, 0)
    circuit("a").reset()
    assert.isTrue(admits(acme, 0))
  })

  it("is dropped ten minutes after its time, and after a thousand others have failed", () => {
    const { circuit, meet } = driven("a", "b")
    const open = (now: number) => circuit("a").openForOrganizations(now)
    meet(acme, 5, 0)
    assert.deepStrictEqual([open(10 * minute), open(10 * minute + 2 * second)], [1, 0])
    const late = failure("retry", 503, { retryAfterSeconds: 1 })
    const permits = Array.from({ length: 1_500 }, (_, at) => ({ epoch: 1e9, org: OrgId.make(`org-${at}`) }))
    for (const permit of permits) circuit("a").fail(permit, late, 20 * minute, 0)
    assert.isAtMost(open(20 * minute), 1_000)
  })
})
