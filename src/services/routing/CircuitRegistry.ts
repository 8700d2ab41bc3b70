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
  /** The number of organizations whose own circuit is not closed. */
  readonly openForOrganizations: number
  readonly lastError: string | undefined
  readonly lastErrorAt: number | undefined
  /** Moving average of the time to the complete answer or first delta. */
  readonly latencyMs: number | undefined
  readonly requests: number
  readonly failures: number
}

export interface RoutedModel {
  readonly id: string
  readonly routes: ReadonlyArray<RouteBase>
}

const states: ReadonlyArray<CircuitState | "disabled"> = ["closed", "open", "half_open", "disabled"]

interface RegisteredRoute {
  readonly route: RouteBase
  readonly circuit: CircuitBreaker
}

const definitionOf = ({ model, options, provider: { adapter, baseUrl, headers } }: RouteBase): string =>
  JSON.stringify([model, options, adapter, baseUrl, headers])

/** Ignores preference, weight and cost, which do not affect route health. */
const isSameUpstream = (one: RouteBase, other: RouteBase): boolean =>
  Equal.equals(one.provider.credential, other.provider.credential) && definitionOf(one) === definitionOf(other)

export class CircuitRegistry {
  /** The routes of the current catalog, by id. */
  #byRoute = new Map<string, RegisteredRoute>()
  /** Includes routes of earlier catalogs, because requests in flight may still use them. */
  readonly #circuits = new WeakMap<RouteBase, CircuitBreaker>()
  readonly #disabled = new Set<string>()
  /** The model of each route that the metrics contain. */
  readonly #published = new Map<string, string>()
  #unixOffset = 0

  of(model: RoutedModel, route: RouteBase): CircuitBreaker {
    const existing = this.#circuits.get(route)
    if (existing !== undefined) return existing
    const registeredRoute = this.#byRoute.get(route.id)
    if (registeredRoute !== undefined && isSameUpstream(registeredRoute.route, route)) {
      this.#circuits.set(route, registeredRoute.circuit)
      return registeredRoute.circuit
    }
    this.#register(model, this.#byRoute)
    return this.#circuits.get(route) ?? this.of({ id: model.id, routes: [route] }, route)
  }

  /** Keeps the circuits of routes that are unchanged in the new catalog. */
  follow(models: ReadonlyArray<RoutedModel>): void {
    const previousRoutes = this.#byRoute
    this.#byRoute = new Map()
    for (const model of models)
      if (model.routes.some(({ id }) => previousRoutes.has(id))) this.#register(model, previousRoutes)
  }

  /** Disables exactly these routes for new requests. `now` is monotonic. */
  disable(routes: ReadonlySet<string>, now: number): void {
    const newRoutes = [...routes].filter((route) => !this.#disabled.has(route))
    this.#disabled.clear()
    for (const route of routes) this.#disabled.add(route)
    for (const route of newRoutes) this.#byRoute.get(route)?.circuit.shortenLastOpening(now)
  }

  isClosed(model: RoutedModel, route: RouteBase, now: number): boolean {
    return !this.#disabled.has(route.id) && this.of(model, route).state(now) === "closed"
  }

  reset(route: string): void {
    this.#byRoute.get(route)?.circuit.reset()
  }

  #register({ id: model, routes }: RoutedModel, previousRoutes: ReadonlyMap<string, RegisteredRoute>): void {
    const siblings: Array<CircuitBreaker> = []
    for (const route of routes) {
      const { id, provider } = route
      const existing = previousRoutes.get(id)
      const circuit =
        existing !== undefined && isSameUpstream(existing.route, route)
          ? existing.circuit
          : new CircuitBreaker({ route: id, provider: provider.name, model }, this.#disabled)
      circuit.siblings = siblings
      siblings.push(circuit)
      this.#circuits.set(route, circuit)
      if (!this.#byRoute.has(id)) this.#byRoute.set(id, { route, circuit })
    }
  }

  /** Publishes the metrics. Routes that a new catalog has removed get 0 for every state. */
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
    // A difference of up to a second is drift. A larger one means that the system clock was set.
    if (Math.abs(at - now - this.#unixOffset) > 1_000) this.#unixOffset = at - now
    const toUnix = (time: number | undefined) => (time === undefined ? undefined : time + this.#unixOffset)
    return [...this.#byRoute.values()].map(({ circuit }) => ({
      route: circuit.route,
      provider: circuit.provider,
      model: circuit.model,
      circuit: circuit.state(now),
      openUntil: toUnix(circuit.openUntil),
      openForOrganizations: circuit.openForOrganizations(now),
      lastError: circuit.lastError,
      lastErrorAt: toUnix(circuit.lastErrorAt),
      latencyMs: circuit.latencyMs,
      requests: circuit.requests,
      failures: circuit.failures
    }))
  }
}
