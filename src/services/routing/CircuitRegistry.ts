import type { RouteBase } from "../../domain/Model.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { CircuitBreaker, type CircuitState } from "./CircuitBreaker.ts"

/** Times are Unix milliseconds. */
export interface RouteReport {
  readonly route: string
  readonly provider: string
  readonly model: string
  readonly circuit: CircuitState
  readonly openUntil: number | undefined
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

const states: ReadonlyArray<CircuitState> = ["closed", "open", "half_open"]

export class CircuitRegistry {
  readonly #byRoute = new Map<string, CircuitBreaker>()
  #unixOffset = 0

  of(model: Routed, route: RouteBase): CircuitBreaker {
    const known = this.#byRoute.get(route.id)
    if (known !== undefined) return known
    const siblings: Array<CircuitBreaker> = []
    for (const { id, provider } of model.routes) {
      const circuit = new CircuitBreaker({ route: id, provider: provider.name, model: model.id }, siblings)
      siblings.push(circuit)
      this.#byRoute.set(id, circuit)
    }
    return this.#byRoute.get(route.id) ?? this.of({ id: model.id, routes: [route] }, route)
  }

  publish(now: number): void {
    for (const circuit of this.#byRoute.values()) {
      const { model, route } = circuit
      const current = circuit.state(now)
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
    return [...this.#byRoute.values()].map((circuit) => ({
      route: circuit.route,
      provider: circuit.provider,
      model: circuit.model,
      circuit: circuit.state(now),
      openUntil: unix(circuit.openUntil),
      lastError: circuit.lastError,
      lastErrorAt: unix(circuit.lastErrorAt),
      latencyMs: circuit.latencyMs,
      requests: circuit.requests,
      failures: circuit.failures
    }))
  }
}
