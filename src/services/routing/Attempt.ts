import { type Clock, Duration, Effect, Random } from "effect"
import type { ChatEvent } from "../../domain/Chat.ts"
import type { RouteBase } from "../../domain/Model.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import type { AttemptEntry, Attempts } from "./Attempts.ts"
import type { CircuitBreaker, Permit } from "./CircuitBreaker.ts"
import { isFinal } from "./Outcome.ts"
import type { ProviderFailure } from "./Provider.ts"

/** What a route's provider charges for what it had made, in nano-USD; undefined where the operator has not said. */
export type CostOf<R extends RouteBase> = (route: R, spent: NonNullable<ProviderFailure["spent"]>) => bigint | undefined

const usageIn = (events: ReadonlyArray<ChatEvent> = []) => events.findLast((event) => event.type === "usage")?.usage

/**
 * One request's try of one route. What comes of it is told once and goes to the route's circuit, to the request's
 * attempts and to the counters alike.
 */
export class Attempt<R extends RouteBase> {
  readonly route: R
  readonly #circuit: CircuitBreaker
  readonly #permit: Permit
  readonly #attempts: Attempts
  readonly #costOf: CostOf<R> | undefined
  readonly #clock: Clock.Clock
  readonly #startedAt: number
  #answeredAs: number | undefined
  #over = false

  constructor(
    route: R,
    circuit: CircuitBreaker,
    permit: Permit,
    { attempts, costOf }: { readonly attempts: Attempts; readonly costOf?: CostOf<R> | undefined },
    clock: Clock.Clock
  ) {
    this.route = route
    this.#circuit = circuit
    this.#permit = permit
    this.#attempts = attempts
    this.#costOf = costOf
    this.#clock = clock
    this.#startedAt = Monotonic.millisOf(clock)
  }

  /** The answer is here, or the first delta of a stream: from here on the route is the request's. */
  answered(): void {
    const now = Monotonic.millisOf(this.#clock)
    this.#circuit.answered(now - this.#startedAt)
    this.#note("ok", 200, now)
  }

  /** The answer was whole. */
  whole(): void {
    if (!this.#close("ok")) return
    this.#circuit.succeed(this.#permit)
  }

  /** `blame`: whether the failure says anything about the route. */
  failed(failure: ProviderFailure, blame: boolean): Effect.Effect<void> {
    return Effect.flatMap(Random.next, (random) => this.#failed(failure, blame, random))
  }

  #failed(failure: ProviderFailure, blame: boolean, random: number): Effect.Effect<void> {
    if (!this.#close(failure.class)) return Effect.void
    const now = Monotonic.millisOf(this.#clock)
    const cost = this.#costOfFailing(failure)
    this.#attempts.underway = undefined
    this.#note(failure.class, failure.status, now, { detail: failure.detail, ...(cost !== undefined && { cost }) })
    if (!blame || isFinal(failure.class)) return Effect.sync(() => this.#circuit.leave(this.#permit))
    const hasOpened = this.#circuit.fail(this.#permit, failure, now, random)
    return Effect.zipRight(this.#logFailure(now), hasOpened ? this.#logOpening(now) : Effect.void)
  }

  #logFailure(now: number): Effect.Effect<void> {
    const omitted = this.#circuit.failureLog.enter(now)
    if (omitted === undefined) return Effect.void
    const more = omitted === 0 ? "" : ` (${omitted} more failures since the last such line)`
    return Effect.logWarning(`Route ${this.route.id} failed: ${this.#circuit.lastError ?? ""}${more}`)
  }

  #logOpening(now: number): Effect.Effect<void> {
    const time = Duration.format(Duration.millis(Math.round((this.#circuit.openUntil ?? now) - now)))
    return Effect.logWarning(`Route ${this.route.id} is left out for ${time}: its circuit has opened`)
  }

  /** Ended by us or by the client. */
  left(outcome: "cancelled" | "defect"): void {
    if (!this.#close(outcome)) return
    if (this.#answeredAs === undefined) this.#note(outcome, undefined, Monotonic.millisOf(this.#clock))
    this.#circuit.leave(this.#permit)
  }

  #close(outcome: string): boolean {
    if (this.#over) return false
    this.#over = true
    Metrics.unsafeCount(Metrics.attempts, { provider: this.route.provider.name, outcome })
    return true
  }

  /** Of a stream that has sent output, whoever has that says what it costs. */
  #costOfFailing(failure: ProviderFailure): bigint | undefined {
    if (this.#answeredAs !== undefined) return undefined
    const spent = failure.spent ?? usageIn(this.#attempts.underway?.events)
    return spent && this.#costOf?.(this.route, spent)
  }

  #note(outcome: string, status: number | undefined, now: number, more?: Pick<AttemptEntry, "detail" | "cost">): void {
    const entry = {
      route: this.route.id,
      provider: this.route.provider.name,
      outcome,
      status,
      ms: now - this.#startedAt,
      ...more
    }
    if (this.#answeredAs === undefined) this.#answeredAs = this.#attempts.add(entry)
    else this.#attempts.replace(this.#answeredAs, entry)
  }
}
