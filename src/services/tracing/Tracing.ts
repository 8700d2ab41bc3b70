import type { IncomingMessage } from "node:http"
import { Cause, Context, Effect, Exit, Option, Tracer } from "effect"

/** Ids, names and amounts; never bodies, keys or a customer's words. */
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

export interface SpanSource {
  readonly tracer: Tracer.Tracer
  /** Unix time in nanoseconds. */
  readonly now: () => bigint
  /** Decides for a new trace, or one that comes from outside. */
  readonly isSampled: (parent: Tracer.ExternalSpan | undefined) => boolean
}

/** Off unless traces are exported. */
export class Tracing extends Context.Reference<Tracing>()("gateway/Tracing", {
  defaultValue: (): { readonly source: SpanSource | undefined } => ({ source: undefined })
}) {}

interface SpanOptions {
  readonly kind?: Tracer.SpanKind
  readonly attributes?: Attributes
  readonly startedAt?: bigint
}

/** Where spans begin: another span, or one of another process. */
export class SpanParent {
  readonly source: SpanSource
  readonly parent: Option.Option<Tracer.AnySpan>
  /** The `tracestate` that came with the request. */
  readonly state: string | undefined

  constructor(source: SpanSource, parent: Option.Option<Tracer.AnySpan>, state?: string) {
    this.source = source
    this.parent = parent
    this.state = state
  }

  start(name: string, { attributes = {}, kind = "internal", startedAt = this.source.now() }: SpanOptions = {}): Span {
    const span = this.source.tracer.span(name, this.parent, Context.empty(), [], startedAt, kind)
    return new Span(this.source, span, this.state).set(attributes)
  }
}

export class Span extends SpanParent {
  readonly span: Tracer.Span

  constructor(source: SpanSource, span: Tracer.Span, state: string | undefined) {
    super(source, Option.some(span), state)
    this.span = span
  }

  get traceparent(): string {
    const { sampled, spanId, traceId } = this.span
    return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`
  }

  set(attributes: Attributes): this {
    for (const key in attributes) {
      const value = attributes[key]
      if (value !== undefined) this.span.attribute(key, value)
    }
    return this
  }

  /** Only the first call counts; `error` names what kind it was. */
  end(error?: string): void {
    if (this.span.status._tag === "Ended") return
    this.set({ "error.type": error })
    this.span.end(this.source.now(), error === undefined ? Exit.void : Exit.fail(error))
  }
}

type Header = string | ReadonlyArray<string> | undefined

const form = /^(?!ff)([\da-f]{2})-(?!0+-)([\da-f]{32})-(?!0+-)([\da-f]{16})-([\da-f]{2})(-.*)?$/

/** None for what is malformed, which starts a trace of its own. Later versions may have more fields. */
const parse = (traceparent: Header): Option.Option<Tracer.ExternalSpan> => {
  const [, version, traceId, spanId, flags = "", more] = form.exec(String(traceparent)) ?? []
  if (traceId === undefined || spanId === undefined || (version === "00" && more !== undefined)) return Option.none()
  return Option.some(Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }))
}

const stateForm = /^[\x20-\x7e]{1,512}$/
const stateOf = (tracestate: Header): string | undefined =>
  typeof tracestate === "string" && stateForm.test(tracestate) ? tracestate : undefined

export const resume = (source: SpanSource | undefined, traceparent: string | null): SpanParent | undefined => {
  if (source === undefined || traceparent === null) return undefined
  const parent = parse(traceparent)
  return Option.isSome(parent) ? new SpanParent(source, parent) : undefined
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
  options?: Pick<SpanOptions, "kind" | "attributes">
): Effect.Effect<A, E, R> => {
  if (parent === undefined) return effect
  return Effect.suspend(() => {
    const span = parent.start(name, options)
    return Effect.onExit(effect, (exit) =>
      Effect.sync(() => span.end(Exit.isFailure(exit) ? errorOf(exit.cause) : undefined))
    )
  })
}

export interface TracedEndpoint {
  readonly surface: string
  /** Without ids; undefined: no endpoint's. */
  readonly path: string | undefined
}

/** The root span of a request, and its first part. */
export class RequestTrace {
  readonly span: Span
  #admission: Span | undefined
  #code: string | null = null
  #error: string | undefined

  private constructor(span: Span) {
    this.span = span
  }

  /** Undefined where the request is not sampled. */
  static readonly begin = (
    source: SpanSource,
    { headers, method = "" }: IncomingMessage,
    { path, surface }: TracedEndpoint,
    requestId: string
  ): RequestTrace | undefined => {
    const parent = parse(headers["traceparent"])
    if (!source.isSampled(Option.getOrUndefined(parent))) return undefined
    const origin = new SpanParent(source, parent, Option.isSome(parent) ? stateOf(headers["tracestate"]) : undefined)
    const span = origin.start(path === undefined ? method : `${method} ${path}`, { kind: "server" })
    span.set({ "http.request.method": method, "http.route": path })
    return new RequestTrace(span.set({ "gateway.request_id": requestId, "gateway.surface": surface }))
  }

  /** Returns the parent of what the request does next. */
  identify(organization: string): Span {
    this.#admission = this.span.start("admission", { startedAt: this.span.span.status.startTime })
    return this.span.set({ "gateway.organization_id": organization })
  }

  /** `model` is an id of the catalog. */
  resolve(model: string, isStream = false): void {
    this.span.set({ "gateway.model": model, "gateway.stream": isStream })
  }

  /** The hold is placed. */
  admit(): void {
    this.#admission?.end()
  }

  /** As in the request log. */
  answer({ code, status }: { readonly status: number; readonly code: string | null }): void {
    this.#code = code
    if (status >= 500 || code === "stream_error") this.#error = code ?? String(status)
    this.span.set({ "http.response.status_code": status, "gateway.error_code": code ?? undefined })
  }

  end(): void {
    this.#admission?.end(this.#code ?? undefined)
    this.span.end(this.#error)
  }
}
