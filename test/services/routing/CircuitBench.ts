import { OrgId } from "../../../src/domain/Organization.ts"
import { CircuitRegistry } from "../../../src/services/routing/CircuitRegistry.ts"
import { acme, failure, model, route } from "../../fakes/ProviderFake.ts"
import { assert } from "../../harness/It.ts"

export const second = 1000
export const minute = 60 * second
/** No request causes it. */
export const outage = failure("network", undefined)
/** A request may cause it. */
export const fault = failure("retry", 503)
export { acme }
export const other = OrgId.make("other")

/** Circuits of the named routes of one model, driven by hand; `random` steers the jitter. */
export const bench = (...names: ReadonlyArray<string>) => {
  const circuits = new CircuitRegistry()
  const routed = model(...names.map((name) => route(name)))
  const circuit = (name: string) => circuits.of(routed, route(name))
  const enter = (name: string, now: number, org = acme) => circuit(name).enter(now, org)
  const admitted = (name: string, now: number, org = acme) => {
    const permit = enter(name, now, org)
    assert.isDefined(permit, `${name} lets nobody through at ${now}`)
    return permit ?? { epoch: -1, org }
  }
  const fail = (name: string, now: number, what = outage, random = 0, org = acme) =>
    circuit(name).fail(admitted(name, now, org), what, now, random)
  const succeed = (name: string, now: number, org = acme) => circuit(name).succeed(admitted(name, now, org))
  const trip = (name: string, now: number, random = 0) => {
    for (let times = 0; times < 5; times++) fail(name, now, outage, random)
  }
  const state = (name: string, now: number) => circuits.health(now, now).find((one) => one.provider === name)?.circuit
  /** Milliseconds from `now` until the route lets a request through. */
  const closedFor = (name: string, now: number) => (circuit(name).openUntil ?? now) - now
  return { admitted, circuit, circuits, closedFor, enter, fail, state, succeed, trip }
}
