import { Cause, type Clock, Duration, Effect, Exit, Option, Random } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { Route, RouteBase } from "../../domain/Model.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { pluralize } from "../../domain/Wording.ts"
import * as Metrics from "../metrics/Metrics.ts"
import type { Deadlines } from "../runtime/Deadlines.ts"
import { monotonicMillisOf } from "../runtime/System.ts"
import type { Span, SpanParent } from "../tracing/Tracing.ts"
import type { Permit } from "./Circuit.ts"
import type { CircuitBreaker, OpenedCircuit } from "./CircuitBreaker.ts"
import { type CurrentAttempt, isFinal, mayDependOnRequest, ProviderFailure } from "./Provider.ts"

interface ReceivedEvents {
  readonly route: Route
  readonly events: ReadonlyArray<ChatEvent>
}

export interface AttemptEntry {
  readonly route: string
  readonly provider: string
  /** `ok`, the class of the failure, `skipped` by an open circuit, or `cancelled` by the gateway. */
  readonly outcome: string
  readonly status: number | undefined
  /** Milliseconds until the complete answer, the first delta of a stream, or the failure. */
  readonly ms: number
  /** Cost of a failed attempt in nano-USD; undefined if none or unknown. */
  readonly cost?: bigint | undefined
  /** The cost that the provider reported for a failed attempt, in nano-USD. */
  readonly statedCost?: bigint | undefined
  readonly detail?: string
  /** For the operator, to quote to the provider's support. */
  readonly providerRequestId?: string | undefined
  /** Set if a stream is cancelled after its first event. The prompt is then charged if the client disconnected. */
  readonly received?: ReceivedEvents
}

/** The attempts of a request. Routing adds each as soon as it ends, so the log has them however the request ends. */
export class AttemptHistory {
  readonly org: OrgId
  /** Parent of the attempts' spans. */
  readonly trace: SpanParent | undefined
  /** The id of the route with the conversation's prompt cache. */
  preferredRoute: string | undefined
  /** The id of the only route to attempt; undefined: all. */
  onlyRoute: string | undefined
  readonly #list: Array<AttemptEntry> = []

  constructor(org: OrgId, trace?: SpanParent) {
    this.org = org
    this.trace = trace
  }

  get list(): ReadonlyArray<AttemptEntry> {
    return this.#list
  }

  /** Returns the index of the entry, with which `replace` can change it if its stream breaks later. */
  add(attempt: AttemptEntry): number {
    return this.#list.push(attempt) - 1
  }

  replace(index: number, attempt: AttemptEntry): void {
    this.#list[index] = attempt
  }

  addCost(cost: bigint): void {
    this.#addToLast({ cost })
  }

  /** Adds the cost that the provider reported to the last attempt, which has failed. */
  addStatedCost(statedCost: bigint | undefined): void {
    if (statedCost !== undefined) this.#addToLast({ statedCost })
  }

  #addToLast(costs: Pick<AttemptEntry, "cost" | "statedCost">): void {
    const last = this.#list.pop()
    if (last !== undefined) this.#list.push({ ...last, ...costs })
  }
}

/** Returns the cost of a failed attempt in nano-USD; undefined if the catalog has no cost. */
export type CostOf<R extends RouteBase> = (route: R, usage: NonNullable<ProviderFailure["spent"]>) => bigint | undefined

/** The failure of a stream that exceeds the gateway's own limit. The route is not blamed for it. */
export const streamTimeout = new ProviderFailure({
  class: "timeout",
  status: 200,
  detail: "the stream took too long"
})

/** Attributes of an attempt's span, apart from those of its route. */
export interface SpanInfo<T extends RouteBase> {
  /** Returns the vendor's model name. Default: the model of the route. */
  readonly upstreamModel?: ((route: T) => string | undefined) | undefined
  readonly output: "text" | "image" | "video"
}

/** Attributes follow the OpenTelemetry semantic conventions for generative AI. */
export const startSpan = <T extends RouteBase>(
  trace: SpanParent,
  { output, upstreamModel }: SpanInfo<T>,
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
  /** The time until the deadline. */
  readonly limitMillis: number
  /** The deadline once the provider generates, on the monotonic clock. */
  readonly endsAt: number
  /** True if the limit is long enough to blame the route for a timeout. */
  readonly mayBlameRoute: boolean
  readonly span: Span | undefined
  /** On the monotonic clock. */
  readonly startedAt: number
}

/**
 * One attempt of one route. It holds a permit of the route's circuit. `record` and `succeed` release the permit: call
 * one of them exactly once, in an uninterruptible region.
 */
export class Attempt<R extends RouteBase> implements CurrentAttempt {
  readonly route: R
  received: ReceivedEvents | undefined
  readonly span: Span | undefined
  providerRequestId: string | undefined
  /** When the provider began to generate, on the monotonic clock. */
  outputSince: number | undefined
  abortedBy: ProviderFailure | undefined
  endCall: ((failure: ProviderFailure | undefined) => void) | undefined
  readonly #options: Options<R>
  readonly #startedAt: number
  #cancelDeadline = () => {}
  /** The index of the entry, set once the route has answered. Only a stream can fail after that. */
  #answerIndex: number | undefined

  constructor(route: R, options: Options<R>) {
    this.route = route
    this.#options = options
    this.span = options.span
    this.#startedAt = options.startedAt
  }

  /** Call when the provider starts to generate, even without visible output. */
  beginOutput(): void {
    this.outputSince ??= monotonicMillisOf(this.#options.clock)
  }

  traceUsage(usage: Usage | undefined): void {
    this.span?.set({ "gen_ai.usage.input_tokens": usage?.prompt, "gen_ai.usage.output_tokens": usage?.completion })
  }

  traceEvents(events: ReadonlyArray<ChatEvent>): void {
    if (this.span === undefined) return
    for (const event of events) if (event.type === "usage") this.traceUsage(event.usage)
  }

  get limitMillis(): number {
    return this.#options.limitMillis
  }

  /** On the monotonic clock. Undefined before the provider generates. */
  get mayGenerateUntil(): number | undefined {
    return this.outputSince === undefined ? undefined : this.#options.endsAt
  }

  /** Returns the failure for a missed deadline. */
  timeout(): ProviderFailure {
    if (this.outputSince !== undefined) return streamTimeout
    const detail = `no response within ${this.limitMillis} ms`
    return new ProviderFailure({ class: "timeout", status: undefined, detail })
  }

  /** Schedules the abort of the call at its deadline, for adapters that cancel their own calls. */
  abortAtDeadline(deadlines: Deadlines): void {
    this.#cancelDeadline = deadlines.schedule(this.#startedAt + this.limitMillis, () => {
      this.abortedBy = this.timeout()
      this.#cancelCall(this.abortedBy)
    })
  }

  /** Call when the route has answered. No other route is tried after that. */
  answer(): void {
    this.#cancelDeadline()
    const { attempts, circuit, clock } = this.#options
    const now = monotonicMillisOf(clock)
    circuit.measure(now - this.#startedAt)
    this.#observeDuration(now)
    this.#answerIndex = attempts.add(this.#entry("ok", 200, now))
  }

  succeed(): void {
    const { circuit, permit } = this.#options
    this.#finish("ok", 200)
    circuit.succeed(permit)
  }

  /** Records the end of the attempt, and cancels a call that still runs. */
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

  /** Ends an attempt that was cancelled or failed with a defect. The provider is not blamed. */
  #end(outcome: "cancelled" | "defect"): void {
    const { circuit, clock, permit } = this.#options
    const entry = this.#entry(outcome, undefined, monotonicMillisOf(clock))
    this.#finish(outcome, undefined)
    if (this.#answerIndex === undefined) this.#add(this.received ? { ...entry, received: this.received } : entry)
    circuit.leave(permit)
  }

  #fail(failure: ProviderFailure, random: number): Effect.Effect<void> {
    const { circuit, clock, permit } = this.#options
    const now = monotonicMillisOf(clock)
    const usage = this.#spentByFailing(failure)
    const cost = usage && this.#options.costOf?.(this.route, usage)
    const statedCost = typeof usage === "object" ? usage.statedCost : undefined
    this.#finish(failure.class, failure.status)
    if (this.#answerIndex === undefined) this.#observeDuration(now)
    this.#add({
      ...this.#entry(failure.class, failure.status, now),
      detail: failure.detail,
      ...(cost !== undefined && { cost }),
      ...(typeof statedCost === "bigint" && { statedCost })
    })
    if (!this.#isRouteAtFault(failure)) return Effect.sync(() => circuit.leave(permit))
    const openedCircuit = circuit.fail(permit, failure, now, random, this.#isRequestDependent(failure))
    return Effect.zipRight(this.#logFailure(now), openedCircuit ? this.#logOpening(openedCircuit, now) : Effect.void)
  }

  #isRouteAtFault(failure: ProviderFailure): boolean {
    if (isFinal(failure.class) || failure === streamTimeout) return false
    return failure.class !== "timeout" || this.#options.mayBlameRoute || this.#answerIndex !== undefined
  }

  /**
   * Returns whether the request may have caused the failure. A stream that breaks after its first delta may be its
   * fault.
   */
  #isRequestDependent(failure: ProviderFailure): boolean {
    return mayDependOnRequest(failure) || (failure.class === "network" && this.#answerIndex !== undefined)
  }

  #logFailure(now: number): Effect.Effect<void> {
    const { circuit } = this.#options
    const omittedCount = circuit.failureLog.enter(now)
    if (omittedCount === undefined) return Effect.void
    const suffix = omittedCount === 0 ? "" : ` (${pluralize(omittedCount, "more failure")} since the last log line)`
    return Effect.logWarning(`Route ${this.route.id} failed: ${circuit.lastError ?? ""}${suffix}`)
  }

  #logOpening({ org, until }: OpenedCircuit, now: number): Effect.Effect<void> {
    const duration = Duration.format(Duration.millis(Math.round(until - now)))
    const scope = org === undefined ? "" : ` for requests of ${org}`
    return Effect.logWarning(`Route ${this.route.id} is skipped for ${duration}${scope}: its circuit opened`)
  }

  /**
   * Returns the usage that a failed attempt costs; undefined for a stream with output, whose cost the caller counts.
   */
  #spentByFailing(failure: ProviderFailure): ProviderFailure["spent"] {
    if (this.#answerIndex !== undefined) return undefined
    return failure.spent ?? this.received?.events.findLast((event) => event.type === "usage")?.usage
  }

  #finish(outcome: string, status: number | undefined): void {
    const { id, provider } = this.route
    Metrics.unsafeCount(Metrics.attempts, { route: id, provider: provider.name, outcome })
    this.span
      ?.set({ "gateway.outcome": outcome, "http.response.status_code": status })
      .end(outcome === "ok" || outcome === "cancelled" ? undefined : outcome)
  }

  #observeDuration(now: number): void {
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
    if (this.#answerIndex === undefined) attempts.add(entry)
    else attempts.replace(this.#answerIndex, entry)
  }
}
