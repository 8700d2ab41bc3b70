import { Equal } from "effect"
import type { RouteBase } from "../../domain/Model.ts"
import * as Metrics from "../metrics/Metrics.ts"
import type { CircuitState } from "./Circuit.ts"
import { CircuitBreaker } from "./CircuitBreaker.ts"

/** Times are Unix milliseconds. */
export interface RouteReport {
  readonly route: string
  readonly provider: string
  readonly model: string
  readonly circuit: CircuitState
  readonly openUntil: number | undefined
  /** How many organizations it is not closed for while it may be for all others. */
  readonly openForOrganizations: number
  readonly lastError: string | undefined
  readonly lastErrorAt: number | undefined
  /** Moving average, to the answer or a stream's first delta. */
  readonly latencyMs: number | undefined
  readonly requests: number
  readonly failures: number
}

export interface Routed {
  readonly id: string
  readonly routes: ReadonlyArray<RouteBase>
}

const states: ReadonlyArray<CircuitState | "disabled"> = ["closed", "open", "half_open", "disabled"]

interface Registered {
  readonly route: RouteBase
  readonly circuit: CircuitBreaker
}

const definitionOf = ({ model, options, provider: { adapter, baseUrl, headers } }: RouteBase): string =>
  JSON.stringify([model, options, adapter, baseUrl, headers])

/** Preference, weight and cost do not say how well a route works. */
const isSameUpstream = (one: RouteBase, other: RouteBase): boolean =>
  Equal.equals(one.provider.credential, other.provider.credential) && definitionOf(one) === definitionOf(other)

export class CircuitRegistry {
  /** Those of the current catalog. */
  #byRoute = new Map<string, Registered>()
  /** Requests in flight hold routes of earlier catalogs, too. */
  readonly #circuits = new WeakMap<RouteBase, CircuitBreaker>()
  readonly #disabled = new Set<string>()
  /** The models of routes in the metrics. */
  readonly #published = new Map<string, string>()
  #unixOffset = 0

  of(model: Routed, route: RouteBase): CircuitBreaker {
    const known = this.#circuits.get(route)
    if (known !== undefined) return known
    const registered = this.#byRoute.get(route.id)
    if (registered !== undefined && isSameUpstream(registered.route, route)) {
      this.#circuits.set(route, registered.circuit)
      return registered.circuit
    }
    this.#register(model, this.#byRoute)
    return this.#circuits.get(route) ?? this.of({ id: model.id, routes: [route] }, route)
  }

  /** Circuits of routes that are unchanged in the new catalog survive. */
  follow(models: ReadonlyArray<Routed>): void {
    const before = this.#byRoute
    this.#byRoute = new Map()
    for (const model of models) if (model.routes.some(({ id }) => before.has(id))) this.#register(model, before)
  }

  /** Exactly these routes get no new requests; `now` is monotonic. */
  disable(routes: ReadonlySet<string>, now: number): void {
    const added = [...routes].filter((route) => !this.#disabled.has(route))
    this.#disabled.clear()
    for (const route of routes) this.#disabled.add(route)
    for (const route of added) this.#byRoute.get(route)?.circuit.spareLastRoute(now)
  }

  /** Neither open, probing, nor disabled. */
  isClosed(model: Routed, route: RouteBase, now: number): boolean {
    return !this.#disabled.has(route.id) && this.of(model, route).state(now) === "closed"
  }

  reset(route: string): void {
    this.#byRoute.get(route)?.circuit.reset()
  }

  #register({ id: model, routes }: Routed, before: ReadonlyMap<string, Registered>): void {
    const siblings: Array<CircuitBreaker> = []
    for (const route of routes) {
      const { id, provider } = route
      const known = before.get(id)
      const circuit =
        known !== undefined && isSameUpstream(known.route, route)
          ? known.circuit
          : new CircuitBreaker({ route: id, provider: provider.name, model }, this.#disabled)
      circuit.siblings = siblings
      siblings.push(circuit)
      this.#circuits.set(route, circuit)
      if (!this.#byRoute.has(id)) this.#byRoute.set(id, { route, circuit })
    }
  }

  /** A route that a new catalog has removed gets 0 for every state. */
  publish(now: number): void {
    for (const { circuit } of this.#byRoute.values()) this.#published.set(circuit.route, circuit.model)
    for (const [route, model] of this.#published) {
      const circuit = this.#byRoute.get(route)?.circuit
      const current = this.#disabled.has(route) ? "disabled" : circuit?.state(now)
      Metrics.unsafeUpdate(Metrics.organizationCircuits, circuit?.openForOrganizations(now) ?? 0, { model, route })
      for (const state of states) {
        Metrics.unsafeUpdate(Metrics.circuits, state === current ? 1 : 0, { model, route, state })
      }
    }
  }

  /** `now` is monotonic, `at` the same moment in Unix milliseconds. */
  health(now: number, at: number): ReadonlyArray<RouteReport> {
    // Smaller differences are drift, not a clock that was set.
    if (Math.abs(at - now - this.#unixOffset) > 1_000) this.#unixOffset = at - now
    const unix = (time: number | undefined) => (time === undefined ? undefined : time + this.#unixOffset)
    return [...this.#byRoute.values()].map(({ circuit }) => ({
      route: circuit.route,
      provider: circuit.provider,
      model: circuit.model,
      circuit: circuit.state(now),
      openUntil: unix(circuit.openUntil),
      openForOrganizations: circuit.openForOrganizations(now),
      lastError: circuit.lastError,
      lastErrorAt: unix(circuit.lastErrorAt),
      latencyMs: circuit.latencyMs,
      requests: circuit.requests,
      failures: circuit.failures
    }))
  }
}
