import type { IncomingHttpHeaders } from "node:http"
import { type Span, startServerSpan, type Tracer } from "./Tracing.ts"

interface Identity {
  readonly requestId: string
  readonly surface: string
  readonly caller: { readonly org: string }
}

/** The root span of a request, and its first part. */
export class RequestTrace {
  readonly span: Span
  readonly #admission: Span
  #code: string | null = null
  #error: string | undefined

  private constructor(span: Span) {
    this.span = span
    this.#admission = span.start("admission", { startedAt: span.startedAt })
  }

  /** Undefined where the request is not sampled. */
  static readonly begin = (
    tracer: Tracer,
    request: { readonly method: string; readonly route: string; readonly headers: IncomingHttpHeaders }
  ): RequestTrace | undefined => {
    const { headers, method, route } = request
    const span = startServerSpan(tracer, `${method} ${route}`, headers)
    return span && new RequestTrace(span.set({ "http.request.method": method, "http.route": route }))
  }

  identify({ caller, requestId, surface }: Identity): Span {
    return this.span.set({
      "gateway.request_id": requestId,
      "gateway.surface": surface,
      "gateway.organization_id": caller.org
    })
  }

  /** `model` is an id of the catalog. */
  resolve(model: string, isStream = false): void {
    this.span.set({ "gateway.model": model, "gateway.stream": isStream })
  }

  /** The hold is placed. */
  admit(): void {
    this.#admission.end()
  }

  /** As in the request log. */
  answer(status: number, code: string | null): void {
    this.#code = code
    if (status >= 500 || code === "stream_error") this.#error = code ?? String(status)
    this.span.set({ "http.response.status_code": status, "gateway.error_code": code ?? undefined })
  }

  end(): void {
    this.#admission.end(this.#code ?? undefined)
    this.span.end(this.#error)
  }
}
