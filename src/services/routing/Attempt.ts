import { Cause, type Clock, Duration, Effect, Exit, Option, Random } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { RouteBase } from "../../domain/Model.ts"
import { pluralize } from "../../domain/Plural.ts"
import * as Metrics from "../metrics/Metrics.ts"
import type { Deadlines } from "../runtime/Deadlines.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import type { Span, SpanParent } from "../tracing/Tracing.ts"
import type { AttemptEntry, AttemptHistory, Received } from "./AttemptHistory.ts"
import type { Permit } from "./Circuit.ts"
import type { CircuitBreaker, Opened } from "./CircuitBreaker.ts"
import { type CurrentAttempt, isFinal, mayDependOnRequest, ProviderFailure } from "./Provider.ts"

/** In nano-USD; undefined where the catalog names no cost. */
export type CostOf<R extends RouteBase> = (route: R, spent: NonNullable<ProviderFailure["spent"]>) => bigint | undefined

/** The gateway's own limit: not the route's fault. */
export const streamTimeout = new ProviderFailure({
  class: "timeout",
  status: 200,
  detail: "the stream took too long"
})

/** The attributes of an attempt's span beside its route. */
export interface Traced<T extends RouteBase> {
  /** The vendor's name of what is asked; by default the route's. */
  readonly upstreamModel?: ((route: T) => string | undefined) | undefined
  readonly output: "text" | "image" | "video"
}

/** In the words of the semantic conventions for generative AI. */
export const startSpan = <T extends RouteBase>(
  trace: SpanParent,
  { output, upstreamModel }: Traced<T>,
  route: T
): Span => {
  const operation = output === "text" ? "chat" : "generate_content"
  const model = upstreamModel?.(route) ?? route.model
  return trace.start(`${operation} ${model}`, {
    kind: "client",
    attributes: {
      "gen_ai.operation.name": operation,
      "gen_ai.provider.name": route.provider.name,
      "gen_ai.request.model": model,
      "gen_ai.output.type": output,
      "gateway.route": route.id
    }
  })
}

interface Options<R extends RouteBase> {
  readonly circuit: CircuitBreaker
  readonly permit: Permit
  readonly attempts: AttemptHistory
  readonly costOf: CostOf<R> | undefined
  readonly clock: Clock.Clock
  /** Until its deadline. */
  readonly allowedMillis: number
  /** Its deadline once the provider generates, on the monotonic clock. */
  readonly endsAt: number
  /** Its time is long enough to blame the route for a timeout. */
  readonly isFair: boolean
  readonly span: Span | undefined
  /** On the monotonic clock. */
  readonly startedAt: number
}

/**
 * One try of one route, which holds a permit of its circuit from the start. `record` or `succeed` returns the permit: call
 * one of them once, in a region that cannot be interrupted.
 */
export class Attempt<R extends RouteBase> implements CurrentAttempt {
  readonly route: R
  received: Received | undefined
  readonly span: Span | undefined
  providerRequestId: string | undefined
  /** When the provider began to generate, on the monotonic clock. */
  outputSince: number | undefined
  abortedBy: ProviderFailure | undefined
  endCall: ((failure: ProviderFailure | undefined) => void) | undefined
  readonly #options: Options<R>
  readonly #startedAt: number
  #cancelDeadline = () => {}
  /** Its index in the request's attempts; what fails from then on is a stream. */
  #answeredAs: number | undefined

  constructor(route: R, options: Options<R>) {
    this.route = route
    this.#options = options
    this.span = options.span
    this.#startedAt = options.startedAt
  }

  /** The provider generates, although nothing may show yet. */
  beginOutput(): void {
    this.outputSince ??= Monotonic.millisOf(this.#options.clock)
  }

  traceUsage(usage: Usage | undefined): void {
    this.span?.set({ "gen_ai.usage.input_tokens": usage?.prompt, "gen_ai.usage.output_tokens": usage?.completion })
  }

  traceEvents(events: ReadonlyArray<ChatEvent>): void {
    if (this.span === undefined) return
    for (const event of events) if (event.type === "usage") this.traceUsage(event.usage)
  }

  get allowedMillis(): number {
    return this.#options.allowedMillis
  }

  /** Undefined: until its deadline. On the monotonic clock. */
  get mayGenerateUntil(): number | undefined {
    return this.outputSince === undefined ? undefined : this.#options.endsAt
  }

  /** The failure of an attempt whose deadline has passed. */
  timeout(): ProviderFailure {
    if (this.outputSince !== undefined) return streamTimeout
    const detail = `no answer within ${this.allowedMillis} ms`
    return new ProviderFailure({ class: "timeout", status: undefined, detail })
  }

  /** For an adapter that cancels its own calls. */
  abortAtDeadline(deadlines: Deadlines): void {
    this.#cancelDeadline = deadlines.schedule(this.#startedAt + this.allowedMillis, () => {
      this.abortedBy = this.timeout()
      this.#cancelCall(this.abortedBy)
    })
  }

  /** From here on no other route is asked. */
  answer(): void {
    this.#cancelDeadline()
    const { attempts, circuit, clock } = this.#options
    const now = Monotonic.millisOf(clock)
    circuit.measure(now - this.#startedAt)
    this.#observe(now)
    this.#answeredAs = attempts.add(this.#entry("ok", 200, now))
  }

  succeed(): void {
    const { circuit, permit } = this.#options
    this.#finish("ok", 200)
    circuit.succeed(permit)
  }

  /** Cancels the call if the attempt still waits for one. */
  record(exit: Exit.Exit<unknown, ProviderFailure>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#cancelDeadline()
      this.#cancelCall()
      if (Exit.isSuccess(exit)) return Effect.sync(() => this.succeed())
      const failure = Cause.failureOption(exit.cause)
      if (Option.isSome(failure)) return Effect.flatMap(Random.next, (random) => this.#fail(failure.value, random))
      return Effect.sync(() => this.#end(Cause.isInterrupted(exit.cause) ? "cancelled" : "defect"))
    })
  }

  #cancelCall(failure?: ProviderFailure): void {
    const { endCall } = this
    this.endCall = undefined
    endCall?.(failure)
  }

  /** Without a failure of the provider's. */
  #end(outcome: "cancelled" | "defect"): void {
    const { circuit, clock, permit } = this.#options
    const entry = this.#entry(outcome, undefined, Monotonic.millisOf(clock))
    this.#finish(outcome, undefined)
    if (this.#answeredAs === undefined) this.#add(this.received ? { ...entry, received: this.received } : entry)
    circuit.leave(permit)
  }

  #fail(failure: ProviderFailure, random: number): Effect.Effect<void> {
    const { circuit, clock, permit } = this.#options
    const now = Monotonic.millisOf(clock)
    const spent = this.#spentByFailing(failure)
    const cost = spent && this.#options.costOf?.(this.route, spent)
    const statedCost = typeof spent === "object" ? spent.statedCost : undefined
    this.#finish(failure.class, failure.status)
    if (this.#answeredAs === undefined) this.#observe(now)
    this.#add({
      ...this.#entry(failure.class, failure.status, now),
      detail: failure.detail,
      ...(cost !== undefined && { cost }),
      ...(typeof statedCost === "bigint" && { statedCost })
    })
    if (!this.#isRouteAtFault(failure)) return Effect.sync(() => circuit.leave(permit))
    const opened = circuit.fail(permit, failure, now, random, this.#isRequestDependent(failure))
    return Effect.zipRight(this.#logFailure(now), opened ? this.#logOpening(opened, now) : Effect.void)
  }

  #isRouteAtFault(failure: ProviderFailure): boolean {
    if (isFinal(failure.class) || failure === streamTimeout) return false
    return failure.class !== "timeout" || this.#options.isFair || this.#answeredAs !== undefined
  }

  /** A stream that breaks off has been answered. */
  #isRequestDependent(failure: ProviderFailure): boolean {
    return mayDependOnRequest(failure) || (failure.class === "network" && this.#answeredAs !== undefined)
  }

  #logFailure(now: number): Effect.Effect<void> {
    const { circuit } = this.#options
    const omitted = circuit.failureLog.enter(now)
    if (omitted === undefined) return Effect.void
    const more = omitted === 0 ? "" : ` (${pluralize(omitted, "more failure")} since the last such line)`
    return Effect.logWarning(`Route ${this.route.id} failed: ${circuit.lastError ?? ""}${more}`)
  }

  #logOpening({ org, until }: Opened, now: number): Effect.Effect<void> {
    const time = Duration.format(Duration.millis(Math.round(until - now)))
    const whose = org === undefined ? "" : ` for requests of ${org}`
    return Effect.logWarning(`Route ${this.route.id} is left out for ${time}${whose}: its circuit has opened`)
  }

  /** The caller counts what a stream costs that has sent output. */
  #spentByFailing(failure: ProviderFailure): ProviderFailure["spent"] {
    if (this.#answeredAs !== undefined) return undefined
    return failure.spent ?? this.received?.events.findLast((event) => event.type === "usage")?.usage
  }

  #finish(outcome: string, status: number | undefined): void {
    const { id, provider } = this.route
    Metrics.unsafeCount(Metrics.attempts, { route: id, provider: provider.name, outcome })
    this.span
      ?.set({ "gateway.outcome": outcome, "http.response.status_code": status })
      .end(outcome === "ok" || outcome === "cancelled" ? undefined : outcome)
  }

  #observe(now: number): void {
    Metrics.unsafeUpdate(Metrics.attemptSeconds, (now - this.#startedAt) / 1000, { route: this.route.id })
  }

  #entry(outcome: string, status: number | undefined, now: number): AttemptEntry {
    const { id, provider } = this.route
    const { providerRequestId } = this
    const entry = { route: id, provider: provider.name, outcome, status, ms: now - this.#startedAt }
    return providerRequestId === undefined ? entry : { ...entry, providerRequestId }
  }

  #add(entry: AttemptEntry): void {
    const { attempts } = this.#options
    if (this.#answeredAs === undefined) attempts.add(entry)
    else attempts.replace(this.#answeredAs, entry)
  }
}
