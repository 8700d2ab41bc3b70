/**
 * The spans that are exported, made by a tracer of Effect's for sampled requests alone. They are made here rather than with
 * `Effect.withSpan`, and carried from call to call, for four reasons (Effect 3.22, in operations as
 * `test/http/Operations.slow.test.ts` counts them):
 *
 * - A request that is not sampled pays nothing here. With the tracer off, `withSpan` costs 35, `annotateCurrentSpan` 8 and
 *   `makeSpan` 2: a chat with one of each took 48 more.
 * - A sampled chat takes 10 more. To give its fiber a tracer, a parent and `withTracerEnabled(true)` costs 72 on top, and
 *   then each `Effect.fn` that has a name and each SQL statement adds a span of its own to the user's trace.
 * - `withSpan` ends a span with the whole cause, whose texts and stack the exporter sends; here it is only the kind of error.
 * - `admission` and `video` begin before they are made, for which Effect's options have no field.
 */

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
  /** Undefined: a trace of its own. */
  readonly parent: Tracer.AnySpan | undefined
  /** The `tracestate` that came with the request. */
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

  /** Only the first call counts; `error` names what kind it was. */
  end(error?: string): void {
    if (this.span.status._tag === "Ended") return
    this.set({ "error.type": error })
    this.span.end(this.source.now(), error === undefined ? Exit.void : Exit.fail(error))
  }
}

type Header = string | ReadonlyArray<string> | undefined

const form = /^(?!ff)([\da-f]{2})-(?!0+-)([\da-f]{32})-(?!0+-)([\da-f]{16})-([\da-f]{2})(-.*)?$/

/** Undefined for what is malformed, which starts a trace of its own. Later versions may have more fields. */
const parse = (traceparent: Header): Tracer.ExternalSpan | undefined => {
  const [, version, traceId, spanId, flags = "", more] = form.exec(String(traceparent)) ?? []
  if (traceId === undefined || spanId === undefined || (version === "00" && more !== undefined)) return undefined
  return Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 })
}

const stateForm = /^[\x20-\x7e]{1,512}$/
const stateOf = (tracestate: Header): string | undefined =>
  typeof tracestate === "string" && stateForm.test(tracestate) ? tracestate : undefined

/** The parent of what goes on in a trace that another process may have begun. */
export const resume = (source: SpanSource | undefined, traceparent: string | null): SpanParent | undefined => {
  if (source === undefined || traceparent === null) return undefined
  const parent = parse(traceparent)
  return parent && new SpanParent(source, parent)
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
export class RequestTrace extends Span {
  #admission: Span | undefined
  #code: string | null = null
  #error: string | undefined

  /** Undefined where the request is not sampled. */
  static readonly begin = (
    source: SpanSource,
    { headers, method = "" }: IncomingMessage,
    { path, surface }: TracedEndpoint,
    requestId: string
  ): RequestTrace | undefined => {
    const parent = parse(headers["traceparent"])
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

  /** The caller is known: what follows is done for this organization. */
  identify(organization: string): void {
    this.#admission = this.start("admission", { startedAt: this.span.status.startTime })
    this.set({ "gateway.organization_id": organization })
  }

  /** `model` is an id of the catalog. */
  resolve(model: string, isStream = false): void {
    this.set({ "gateway.model": model, "gateway.stream": isStream })
  }

  /** The hold is placed. */
  admit(): void {
    this.#admission?.end()
  }

  /** As in the request log. */
  answer({ code, status }: { readonly status: number; readonly code: string | null }): void {
    this.#code = code
    if (status >= 500 || code === "stream_error") this.#error = code ?? String(status)
    this.set({ "http.response.status_code": status, "gateway.error_code": code ?? undefined })
  }

  /** With the error of its answer. */
  override end(): void {
    this.#admission?.end(this.#code ?? undefined)
    super.end(this.#error)
  }
}
