import type { Writable } from "node:stream"
import { Context, Effect, Layer } from "effect"
import { toUsdText } from "../../domain/Money.ts"
import { pluralize } from "../../domain/Plural.ts"
import type { RequestSummary } from "../requests/RequestRecord.ts"

/** An answer that leaves, or 499 for a client that left before it. */
export interface AnsweredRequest {
  readonly requestId: string
  /** A generating surface, a group of reads, `media`, `system` or `none`. */
  readonly surface: string
  readonly method: string
  /** The endpoint's, without ids; undefined: no endpoint's. */
  readonly path: string | undefined
  readonly status: number
  readonly code: string | null
  /** On the monotonic clock; undefined: the request could not be read. */
  readonly startedAt: number | undefined
  /** Undefined for a request that generates nothing, or whose caller is unknown. */
  readonly summary?: RequestSummary | undefined
}

/** In milliseconds. */
export interface Times {
  readonly total: number
  readonly firstByte: number | undefined
  readonly providers: number
  /** The gateway's own share, of a stream up to its first output. */
  readonly own: number | undefined
}

export const timesOf = ({ summary, startedAt }: AnsweredRequest, now: number): Times | undefined => {
  if (startedAt === undefined) return undefined
  const total = now - startedAt
  const firstByte = summary?.firstByteAt === undefined ? undefined : summary.firstByteAt - startedAt
  let providers = 0
  for (const { ms } of summary?.attempts.list ?? []) providers += ms
  const until = summary?.stream === true && firstByte !== undefined ? firstByte : total
  const own = summary?.attempts.list.length ? Math.max(0, until - providers) : undefined
  return { total, firstByte, providers, own }
}

/** UTC, whatever the time zone of the process. */
export const timeOfDay = (at: Date): string => at.toISOString().slice(11, 23)

type Write = (answered: AnsweredRequest, times: Times | undefined, model: string) => void

const quiet: ReadonlySet<string | undefined> = new Set(["/healthz", "/readyz", "/metrics"])

const failedOf = ({ summary }: AnsweredRequest) =>
  summary?.attempts.list
    .filter(({ outcome }) => outcome !== "ok")
    .map(({ outcome, route, status }) => {
      return { route, outcome, status }
    })

/** Undefined fields are left out. */
const jsonLine = (answered: AnsweredRequest, times: Times | undefined, model: string, worker: number | undefined) => {
  const { code, method, path, summary, requestId, status, surface } = answered
  const failed = failedOf(answered)
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
  const failed = failedOf(answered)?.map(({ outcome, route, status }) => `${route} ${outcome} ${status ?? "-"}`)
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
  const message = `${pluralize(lost, "line of requests is", "lines of requests are")} lost: the log is not read fast enough`
  return format === "json"
    ? JSON.stringify({ timestamp: at.toISOString(), logLevel: "WARN", message })
    : `[${timeOfDay(at)}] WARN: ${message}`
}

interface Options {
  readonly format: "pretty" | "json"
  readonly worker: number | undefined
}

/** Bytes that wait for a reader who is slow; further lines are lost. */
const maxBuffered = 1024 * 1024

/** A logger would cost each request some fiber operations; these lines are written once a turn. */
const make = ({ format, worker }: Options, output: Writable) => {
  const lineOf = format === "json" ? jsonLine : prettyLine
  let waiting = ""
  let lost = 0
  const flush = () => {
    const text = waiting
    waiting = ""
    if (text !== "") output.write(text)
  }
  const write: Write = (answered, times, model) => {
    if (quiet.has(answered.path)) return
    if (output.writableLength + waiting.length > maxBuffered) {
      lost += 1
      return
    }
    if (waiting === "") setImmediate(flush)
    if (lost > 0) waiting += `${lossLine(format, lost)}\n`
    lost = 0
    waiting += `${lineOf(answered, times, model, worker)}\n`
  }
  return { flush, write }
}

const ignoreError = () => {}

/** One line for each answer. */
export class RequestLines extends Context.Reference<RequestLines>()("gateway/RequestLines", {
  defaultValue: (): { readonly write: Write | undefined } => ({ write: undefined })
}) {
  static readonly layer = (options: Options, output: Writable = process.stderr) =>
    Layer.scoped(
      RequestLines,
      Effect.acquireRelease(
        Effect.sync(() => {
          // A closed output must not end the gateway. The layers of a process share one listener.
          output.off("error", ignoreError).on("error", ignoreError)
          return make(options, output)
        }),
        ({ flush }) => Effect.sync(flush)
      )
    )
}
