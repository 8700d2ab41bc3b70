import { randomBytes } from "node:crypto"
import { Cause, Context, Effect, Exit } from "effect"
import { format, parse, type TraceContext } from "./TraceContext.ts"

export type SpanKind = "internal" | "server" | "client"

/** Ids, names and amounts; never bodies, keys or a customer's words. */
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

export interface Tracer {
  /** Unix time in nanoseconds. */
  readonly now: () => bigint
  /** Decides for a new trace, or one that comes from outside. */
  readonly isSampled: (traceId: string, parent: TraceContext | undefined) => boolean
  /** Takes an ended span; never waits. */
  readonly export: (span: Span) => void
}

const newId = (bytes: number): string => randomBytes(bytes).toString("hex")

/** Where spans begin: another span, or one of another process. */
export class SpanParent {
  readonly tracer: Tracer
  readonly context: TraceContext

  constructor(tracer: Tracer, context: TraceContext) {
    this.tracer = tracer
    this.context = context
  }

  start(name: string, options?: Omit<SpanOptions, "parent">): Span {
    return new Span(this.tracer, this.context, name, { ...options, parent: this.context })
  }
}

interface SpanOptions {
  readonly kind?: SpanKind
  readonly attributes?: Attributes
  readonly startedAt?: bigint
  /** Undefined for the first span of a trace. */
  readonly parent?: TraceContext | undefined
}

export class Span extends SpanParent {
  name: string
  readonly kind: SpanKind
  readonly parent: TraceContext | undefined
  readonly startedAt: bigint
  endedAt: bigint | undefined
  isError = false
  readonly attributes: Record<string, string | number | boolean> = {}

  constructor(
    tracer: Tracer,
    { state, traceId }: Pick<TraceContext, "state" | "traceId">,
    name: string,
    options: SpanOptions
  ) {
    super(tracer, { traceId, spanId: newId(8), isSampled: true, state })
    this.name = name
    this.kind = options.kind ?? "internal"
    this.parent = options.parent
    this.startedAt = options.startedAt ?? tracer.now()
    if (options.attributes !== undefined) this.set(options.attributes)
  }

  get traceparent(): string {
    return format(this.context)
  }

  set(attributes: Attributes): this {
    for (const key in attributes) {
      const value = attributes[key]
      if (value !== undefined) this.attributes[key] = value
    }
    return this
  }

  /** Only the first call counts; `error` names what kind it was. */
  end(error?: string): void {
    if (this.endedAt !== undefined) return
    this.endedAt = this.tracer.now()
    if (error !== undefined) {
      this.isError = true
      this.set({ "error.type": error })
    }
    this.tracer.export(this)
  }
}

/** Off unless traces are exported. */
export class Tracing extends Context.Reference<Tracing>()("gateway/Tracing", {
  defaultValue: (): { readonly tracer: Tracer | undefined } => ({ tracer: undefined })
}) {}

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

/** Undefined where the request is not sampled. */
export const startServerSpan = (
  tracer: Tracer,
  name: string,
  { traceparent, tracestate }: Headers
): Span | undefined => {
  const parent = parse(traceparent, tracestate)
  const traceId = parent?.traceId ?? newId(16)
  if (!tracer.isSampled(traceId, parent)) return undefined
  return new Span(tracer, { traceId, state: parent?.state }, name, { kind: "server", parent })
}

export const resume = (tracer: Tracer | undefined, traceparent: string | null): SpanParent | undefined => {
  const context = traceparent === null ? undefined : parse(traceparent)
  return tracer === undefined || context === undefined ? undefined : new SpanParent(tracer, context)
}

const errorOf = (cause: Cause.Cause<unknown>): string => {
  const failure = Cause.failureOrCause(cause)
  if (failure._tag === "Right") return Cause.isInterruptedOnly(cause) ? "interrupted" : "defect"
  const { left } = failure
  return left instanceof Object && "_tag" in left ? String(left._tag) : "failure"
}

/** Without a parent the effect itself. */
export const withSpan = <A, E, R>(
  parent: SpanParent | undefined,
  name: string,
  effect: Effect.Effect<A, E, R>,
  options?: { readonly kind?: SpanKind; readonly attributes?: Attributes }
): Effect.Effect<A, E, R> => {
  if (parent === undefined) return effect
  return Effect.suspend(() => {
    const span = parent.start(name, options)
    return Effect.onExit(effect, (exit) =>
      Effect.sync(() => span.end(Exit.isFailure(exit) ? errorOf(exit.cause) : undefined))
    )
  })
}
