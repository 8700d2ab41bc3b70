import type { IncomingMessage, ServerResponse } from "node:http"
import { type Span, startServerSpan, type Tracer } from "./Tracing.ts"

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
    tracer: Tracer,
    { headers, method = "" }: IncomingMessage,
    { path, surface }: TracedEndpoint,
    requestId: string
  ): RequestTrace | undefined => {
    const span = startServerSpan(tracer, path === undefined ? method : `${method} ${path}`, headers)
    if (span === undefined) return undefined
    span.set({ "http.request.method": method, "http.route": path })
    return new RequestTrace(span.set({ "gateway.request_id": requestId, "gateway.surface": surface }))
  }

  /** Names the trace to the client. */
  announce(response: ServerResponse): void {
    response.setHeader("traceresponse", this.span.traceparent)
  }

  /** Returns the parent of what the request does next. */
  identify(organization: string): Span {
    this.#admission = this.span.start("admission", { startedAt: this.span.startedAt })
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
