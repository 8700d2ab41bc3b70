import type { Writable } from "node:stream"
import { Context, Effect, Layer } from "effect"
import { toUsdText } from "../../domain/Money.ts"
import { pluralize } from "../../domain/Wording.ts"
import { Catalog } from "../catalog/Catalog.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { type RequestSummary, totalCostOf } from "../requests/RequestRecord.ts"
import { monotonicMillisOf } from "../runtime/System.ts"

/** A finished request: its response was sent, or the client disconnected before that (status 499). */
export interface AnsweredRequest {
  readonly requestId: string
  /** An endpoint type such as `chat`, a group of read endpoints, `media`, `system` or `none`. */
  readonly surface: string
  readonly method: string
  /** The endpoint's path without ids. Undefined if there is no such endpoint. */
  readonly path: string | undefined
  readonly status: number
  readonly code: string | null
  /** In milliseconds of the monotonic clock. Undefined if the HTTP request could not be parsed. */
  readonly startedAt: number | undefined
  /** Only for authenticated requests to generation endpoints. */
  readonly summary?: RequestSummary | undefined
}

/** Durations in milliseconds. */
interface Times {
  readonly total: number
  readonly firstByte: number | undefined
  readonly providers: number
  /** The time that was not spent waiting for providers. For a stream, only the time until its first output counts. */
  readonly own: number | undefined
}

const timesOf = ({ summary, startedAt }: AnsweredRequest, now: number): Times | undefined => {
  if (startedAt === undefined) return undefined
  const total = now - startedAt
  const firstByte = summary?.firstByteAt === undefined ? undefined : summary.firstByteAt - startedAt
  let providers = 0
  for (const { ms } of summary?.attempts.list ?? []) providers += ms
  const until = summary?.stream === true && firstByte !== undefined ? firstByte : total
  const own = summary?.attempts.list.length ? Math.max(0, until - providers) : undefined
  return { total, firstByte, providers, own }
}

export const timeOfDay = (at: Date): string => at.toISOString().slice(11, 23)

type Write = (answered: AnsweredRequest, times: Times | undefined, model: string) => void

const unloggedPaths: ReadonlySet<string | undefined> = new Set(["/healthz", "/readyz", "/metrics"])

const failedAttemptsOf = ({ summary }: AnsweredRequest) =>
  summary?.attempts.list
    .filter(({ outcome }) => outcome !== "ok")
    .map(({ outcome, route, status }) => {
      return { route, outcome, status }
    })

const jsonLine = (answered: AnsweredRequest, times: Times | undefined, model: string, worker: number | undefined) => {
  const { code, method, path, summary, requestId, status, surface } = answered
  const failed = failedAttemptsOf(answered)
  return JSON.stringify({
    timestamp: new Date().toISOString(),
    logLevel: "INFO",
    message: "request",
    request_id: requestId,
    surface,
    method,
    path,
    status,
    code: code ?? undefined,
    key_id: summary?.caller.key,
    organization: summary?.caller.org,
    model: model === "" ? undefined : model,
    route: summary?.route?.id,
    preferred_route: summary?.attempts.preferredRoute,
    attempts: summary?.attempts.list.length,
    failed: failed?.length ? failed : undefined,
    prompt_tokens: summary?.usage?.prompt,
    completion_tokens: summary?.usage?.completion,
    cached_tokens: summary?.usage?.cached || undefined,
    charge_usd: summary === undefined ? undefined : toUsdText(summary.charge),
    first_byte_ms: times?.firstByte,
    total_ms: times?.total,
    provider_ms: summary === undefined ? undefined : times?.providers,
    worker
  })
}

const prettyLine = (answered: AnsweredRequest, times: Times | undefined, model: string, worker: number | undefined) => {
  const { code, method, path, summary, requestId, status } = answered
  const usage = summary?.usage
  const preferred = summary?.attempts.preferredRoute
  const failed = failedAttemptsOf(answered)?.map(({ outcome, route, status }) => `${route} ${outcome} ${status ?? "-"}`)
  const parts = [
    [method, path ?? "-", status, code].filter(Boolean).join(" "),
    model,
    summary?.route?.id ?? "",
    preferred === undefined || preferred === summary?.route?.id ? "" : `preferred: ${preferred}`,
    times === undefined ? "" : `${times.total} ms`,
    usage?.prompt === undefined ? "" : `${usage.prompt}+${usage.completion} tokens`,
    usage?.cached ? `${usage.cached} cached` : "",
    summary === undefined || summary.charge === 0n ? "" : `${toUsdText(summary.charge)} USD`,
    failed?.length ? `failed: ${failed.join(", ")}` : "",
    summary?.caller.key ?? "",
    requestId,
    worker === undefined ? "" : `worker ${worker}`
  ]
  return `[${timeOfDay(new Date())}] INFO: ${parts.filter((part) => part !== "").join(" · ")}`
}

const lossLine = (format: Options["format"], lost: number): string => {
  const at = new Date()
  const message = `${pluralize(lost, "line of requests is", "lines of requests are")} lost: the log is read too slowly`
  return format === "json"
    ? JSON.stringify({ timestamp: at.toISOString(), logLevel: "WARN", message })
    : `[${timeOfDay(at)}] WARN: ${message}`
}

interface Options {
  readonly format: "pretty" | "json"
  readonly worker: number | undefined
}

/** Above this many buffered bytes, further lines are dropped, because the output is too slow. */
const maxBuffered = 1024 * 1024

/**
 * Writes lines in batches, once per turn of the event loop. Not a logger, because that runs several fiber operations per
 * line.
 */
const make = ({ format, worker }: Options, output: Writable) => {
  const lineOf = format === "json" ? jsonLine : prettyLine
  let buffer = ""
  let lost = 0
  const flush = () => {
    const text = buffer
    buffer = ""
    if (text !== "") output.write(text)
  }
  const write: Write = (answered, times, model) => {
    if (unloggedPaths.has(answered.path)) return
    if (output.writableLength + buffer.length > maxBuffered) {
      lost += 1
      return
    }
    if (buffer === "") setImmediate(flush)
    if (lost > 0) buffer += `${lossLine(format, lost)}\n`
    lost = 0
    buffer += `${lineOf(answered, times, model, worker)}\n`
  }
  return { flush, write }
}

const ignoreError = () => {}

/** Writes one line to the log for each request. */
export class RequestLines extends Context.Reference<RequestLines>()("gateway/RequestLines", {
  defaultValue: (): { readonly write: Write | undefined } => ({ write: undefined })
}) {
  static readonly layer = (options: Options, output: Writable = process.stderr) =>
    Layer.scoped(
      RequestLines,
      Effect.acquireRelease(
        Effect.sync(() => {
          // Without a listener, a closed output would end the gateway. Removing it first avoids a second one from another
          // layer.
          output.off("error", ignoreError).on("error", ignoreError)
          return make(options, output)
        }),
        ({ flush }) => Effect.sync(flush)
      )
    )
}

const defaultReasons: Readonly<Record<number, string>> = { 400: "invalid_request", 404: "not_found", 503: "busy" }

/** Returns undefined unless the request was refused before any attempt. */
const refusalReasonOf = ({ code, summary, status }: AnsweredRequest): string | undefined => {
  const isRefusal = status === 503 || (status >= 400 && status < 499)
  return isRefusal && !summary?.attempts.list.length ? (code ?? defaultReasons[status] ?? "other") : undefined
}

const observe = (surface: string, model: string, { firstByte, own, total }: Times): void => {
  const labels = { surface, model }
  Metrics.unsafeUpdate(Metrics.requestSeconds, total / 1000, labels)
  if (firstByte !== undefined) Metrics.unsafeUpdate(Metrics.firstByteSeconds, firstByte / 1000, labels)
  if (own !== undefined) Metrics.unsafeUpdate(Metrics.overheadSeconds, own / 1000, { surface })
}

/** Records metrics and writes a log line for each request, once. */
export class RequestReporter extends Context.Tag("gateway/RequestReporter")<
  RequestReporter,
  { readonly report: (answered: AnsweredRequest) => void }
>() {
  static readonly layer = Layer.effect(
    RequestReporter,
    Effect.gen(function* () {
      const catalog = yield* Catalog
      const clock = yield* Effect.clock
      const { write } = yield* RequestLines
      /**
       * All unknown models share the label `unknown`, because customers may send any name and each label adds a metric
       * series.
       */
      const labelOf = (model: string | undefined) => {
        return model === undefined ? "" : (catalog.current.find(model)?.id ?? "unknown")
      }
      return RequestReporter.of({
        report: (answered) => {
          const { code, summary, status, surface } = answered
          const model = labelOf(summary?.model)
          Metrics.unsafeCount(Metrics.requests, { surface, model, status: String(status), code: code ?? "" })
          const reason = refusalReasonOf(answered)
          if (reason !== undefined) Metrics.unsafeCount(Metrics.refused, { reason })
          const times = timesOf(answered, monotonicMillisOf(clock))
          if (times !== undefined) observe(surface, model, times)
          write?.(answered, times, model)
          if (summary !== undefined) Metrics.costNanoUsd.unsafeUpdate(totalCostOf(summary), [])
        }
      })
    })
  )
}
