/**
 * Starts the exported spans of sampled requests, which callers pass on explicitly. Does not use `Effect.withSpan`, for four
 * reasons (costs are fiber operations in Effect 3.22, as `test/http/Operations.slow.test.ts` counts them):
 *
 * - A request that is not sampled costs nothing. With the tracer off, `withSpan` costs 35, `annotateCurrentSpan` 8 and
 *   `makeSpan` 2. A chat with one of each took 48 more.
 * - A sampled chat takes 10 more. A fiber with a tracer, a parent and `withTracerEnabled(true)` would take another 72. Then
 *   each named `Effect.fn` and each SQL statement would add a span to the user's trace.
 * - `withSpan` ends a span with the whole cause, whose texts and stack the exporter sends. This module sends only an error's tag.
 * - The spans `admission` and `video` are created after they have started, and Effect's options have no start time.
 */

import type { IncomingMessage } from "node:http"
import { Cause, Context, Effect, Exit, Option, Tracer } from "effect"

/** May contain ids, names and amounts, but never bodies, API keys or customers' texts. */
type Attributes = Readonly<Record<string, string | number | boolean | undefined>>

export interface SpanSource {
  readonly tracer: Tracer.Tracer
  /** Unix time in nanoseconds. */
  readonly now: () => bigint
  /** `parent` is the span of another process, or undefined for a new trace. */
  readonly isSampled: (parent: Tracer.ExternalSpan | undefined) => boolean
}

/** `source` is undefined unless traces are exported. */
export class Tracing extends Context.Reference<Tracing>()("gateway/Tracing", {
  defaultValue: (): { readonly source: SpanSource | undefined } => ({ source: undefined })
}) {}

interface SpanOptions {
  readonly kind?: Tracer.SpanKind
  readonly attributes?: Attributes
  readonly startedAt?: bigint
}

/** A parent for new spans, which may be a span of another process. */
export class SpanParent {
  readonly source: SpanSource
  /** Undefined for a new trace. */
  readonly parent: Tracer.AnySpan | undefined
  /** The request's `tracestate`. */
  readonly state: string | undefined

  constructor(source: SpanSource, parent: Tracer.AnySpan | undefined, state?: string) {
    this.source = source
    this.parent = parent
    this.state = state
  }

  start(name: string, { attributes = {}, kind = "internal", startedAt = this.source.now() }: SpanOptions = {}): Span {
    const parent = Option.fromNullable(this.parent)
    const span = this.source.tracer.span(name, parent, Context.empty(), [], startedAt, kind)
    return new Span(this.source, span, this.state).set(attributes)
  }
}

export class Span extends SpanParent {
  readonly span: Tracer.Span

  constructor(source: SpanSource, span: Tracer.Span, state: string | undefined) {
    super(source, span, state)
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

  /** Only the first call has an effect. `error` is the error's tag or code. */
  end(error?: string): void {
    if (this.span.status._tag === "Ended") return
    this.set({ "error.type": error })
    this.span.end(this.source.now(), error === undefined ? Exit.void : Exit.fail(error))
  }
}

type Header = string | ReadonlyArray<string> | undefined

const traceparentForm = /^(?!ff)([\da-f]{2})-(?!0+-)([\da-f]{32})-(?!0+-)([\da-f]{16})-([\da-f]{2})(-.*)?$/

/** Returns undefined for a malformed header. Accepts more fields, which later versions of the standard may add. */
const parseTraceparent = (traceparent: Header): Tracer.ExternalSpan | undefined => {
  const [, version, traceId, spanId, flags = "", extra] = traceparentForm.exec(String(traceparent)) ?? []
  if (traceId === undefined || spanId === undefined || (version === "00" && extra !== undefined)) return undefined
  return Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 })
}

const stateForm = /^[\x20-\x7e]{1,512}$/
const stateOf = (tracestate: Header): string | undefined =>
  typeof tracestate === "string" && stateForm.test(tracestate) ? tracestate : undefined

/** Returns a parent for spans that continue a stored trace, which another process may have started. */
export const resume = (source: SpanSource | undefined, traceparent: string | null): SpanParent | undefined => {
  if (source === undefined || traceparent === null) return undefined
  const parent = parseTraceparent(traceparent)
  return parent && new SpanParent(source, parent)
}

const errorOf = (cause: Cause.Cause<unknown>): string => {
  const failure = Cause.failureOrCause(cause)
  if (failure._tag === "Right") return Cause.isInterruptedOnly(cause) ? "interrupted" : "defect"
  const { left } = failure
  return left instanceof Object && "_tag" in left ? String(left._tag) : "failure"
}

/** Runs the effect in a new span, or without one if there is no parent. */
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
  /** The path without ids. Undefined if there is no such endpoint. */
  readonly path: string | undefined
}

/** The root span of a request. Manages its child span `admission`. */
export class RequestTrace extends Span {
  #admission: Span | undefined
  #code: string | null = null
  #error: string | undefined

  /** Returns undefined if the request is not sampled. */
  static readonly begin = (
    source: SpanSource,
    { headers, method = "" }: IncomingMessage,
    { path, surface }: TracedEndpoint,
    requestId: string
  ): RequestTrace | undefined => {
    const parent = parseTraceparent(headers["traceparent"])
    if (!source.isSampled(parent)) return undefined
    const origin = new SpanParent(source, parent, parent && stateOf(headers["tracestate"]))
    const { span, state } = origin.start(path === undefined ? method : `${method} ${path}`, {
      kind: "server",
      attributes: {
        "http.request.method": method,
        "http.route": path,
        "gateway.request_id": requestId,
        "gateway.surface": surface
      }
    })
    return new RequestTrace(source, span, state)
  }

  /** Call when the caller is known. Starts the span `admission`. */
  identify(organization: string): void {
    this.#admission = this.start("admission", { startedAt: this.span.status.startTime })
    this.set({ "gateway.organization_id": organization })
  }

  /** `model` is a catalog id. */
  resolve(model: string, isStream = false): void {
    this.set({ "gateway.model": model, "gateway.stream": isStream })
  }

  /** Call when the hold is placed. Ends the span `admission`. */
  admit(): void {
    this.#admission?.end()
  }

  /** Sets status and code as in the request log. */
  answer({ code, status }: { readonly status: number; readonly code: string | null }): void {
    this.#code = code
    if (status >= 500 || code === "stream_error") this.#error = code ?? String(status)
    this.set({ "http.response.status_code": status, "gateway.error_code": code ?? undefined })
  }

  /** Also ends `admission`, if it has not ended. */
  override end(): void {
    this.#admission?.end(this.#code ?? undefined)
    super.end(this.#error)
  }
}
