import { Context, Effect, Layer } from "effect"
import { Catalog } from "../catalog/Catalog.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import * as Metrics from "./Metrics.ts"
import type { RequestRecord } from "./RequestRecord.ts"

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
  /** Of an authenticated generating request. */
  readonly record?: RequestRecord | undefined
}

const uncoded: Readonly<Record<number, string>> = { 400: "invalid_request", 404: "not_found", 503: "busy" }

/** Of a request for which no provider was asked. */
const refusalIn = ({ code, record, status }: AnsweredRequest): string | undefined => {
  const isRefusal = status === 503 || (status >= 400 && status < 499)
  return isRefusal && !record?.attempts.list.length ? (code ?? uncoded[status] ?? "other") : undefined
}

/** In milliseconds. */
interface Times {
  readonly total: number
  readonly firstByte: number | undefined
  readonly providers: number
  /** The gateway's own share, of a stream up to its first output. */
  readonly own: number | undefined
}

const timesOf = ({ record, startedAt }: AnsweredRequest, now: number): Times | undefined => {
  if (startedAt === undefined) return undefined
  const total = now - startedAt
  const firstByte = record?.firstByteAt === undefined ? undefined : record.firstByteAt - startedAt
  let providers = 0
  for (const { ms } of record?.attempts.list ?? []) providers += ms
  const until = record?.stream === true && firstByte !== undefined ? firstByte : total
  const own = record?.attempts.list.length ? Math.max(0, until - providers) : undefined
  return { total, firstByte, providers, own }
}

const observe = (surface: string, { firstByte, own, total }: Times): void => {
  const labels = { surface }
  Metrics.unsafeUpdate(Metrics.requestSeconds, total / 1000, labels)
  if (firstByte !== undefined) Metrics.unsafeUpdate(Metrics.firstByteSeconds, firstByte / 1000, labels)
  if (own !== undefined) Metrics.unsafeUpdate(Metrics.overheadSeconds, own / 1000, labels)
}

/** Every answer passes here once. */
export class RequestReporter extends Context.Tag("gateway/RequestReporter")<
  RequestReporter,
  { readonly report: (answered: AnsweredRequest) => void }
>() {
  static readonly layer = Layer.effect(
    RequestReporter,
    Effect.gen(function* () {
      const catalog = yield* Catalog
      const clock = yield* Effect.clock
      /** Customers may ask for any name, and each would be a series. */
      const labelOf = (model: string | undefined) => {
        if (model === undefined) return ""
        return catalog.current.find(model) === undefined ? "unknown" : model
      }
      return RequestReporter.of({
        report: (answered) => {
          const { code, record, status, surface } = answered
          const model = labelOf(record?.model)
          Metrics.unsafeCount(Metrics.requests, { surface, model, status: String(status), code: code ?? "" })
          const reason = refusalIn(answered)
          if (reason !== undefined) Metrics.unsafeCount(Metrics.refused, { reason })
          const times = timesOf(answered, Monotonic.millisOf(clock))
          if (times !== undefined) observe(surface, times)
          if (record !== undefined) Metrics.costNanoUsd.unsafeUpdate(record.totalCost, [])
        }
      })
    })
  )
}
