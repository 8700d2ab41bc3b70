import { Context, Effect, Layer } from "effect"
import { Catalog } from "../catalog/Catalog.ts"
import * as Metrics from "../metrics/Metrics.ts"
import { totalCostOf } from "../requests/RequestRecord.ts"
import * as Monotonic from "../runtime/Monotonic.ts"
import { type AnsweredRequest, RequestLines, type Times, timesOf } from "./RequestLines.ts"

const uncoded: Readonly<Record<number, string>> = { 400: "invalid_request", 404: "not_found", 503: "busy" }

/** The code of a request that failed without an attempt. */
const refusalIn = ({ code, summary, status }: AnsweredRequest): string | undefined => {
  const isRefusal = status === 503 || (status >= 400 && status < 499)
  return isRefusal && !summary?.attempts.list.length ? (code ?? uncoded[status] ?? "other") : undefined
}

const observe = (surface: string, model: string, { firstByte, own, total }: Times): void => {
  const labels = { surface, model }
  Metrics.unsafeUpdate(Metrics.requestSeconds, total / 1000, labels)
  if (firstByte !== undefined) Metrics.unsafeUpdate(Metrics.firstByteSeconds, firstByte / 1000, labels)
  if (own !== undefined) Metrics.unsafeUpdate(Metrics.overheadSeconds, own / 1000, { surface })
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
      const { write } = yield* RequestLines
      /** Customers may ask for any name, and each would be a series. */
      const labelOf = (model: string | undefined) => {
        return model === undefined ? "" : (catalog.current.find(model)?.id ?? "unknown")
      }
      return RequestReporter.of({
        report: (answered) => {
          const { code, summary, status, surface } = answered
          const model = labelOf(summary?.model)
          Metrics.unsafeCount(Metrics.requests, { surface, model, status: String(status), code: code ?? "" })
          const reason = refusalIn(answered)
          if (reason !== undefined) Metrics.unsafeCount(Metrics.refused, { reason })
          const times = timesOf(answered, Monotonic.millisOf(clock))
          if (times !== undefined) observe(surface, model, times)
          write?.(answered, times, model)
          if (summary !== undefined) Metrics.costNanoUsd.unsafeUpdate(totalCostOf(summary), [])
        }
      })
    })
  )
}
