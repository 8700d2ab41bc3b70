import { Data, Effect, Queue } from "effect"
import { request } from "undici"
import { pluralize } from "../domain/Plural.ts"
import { makeAgent } from "../node/Outgoing.ts"
import { backoff } from "../services/runtime/Schedules.ts"
import { errorCode } from "../services/runtime/System.ts"
import type { Span } from "../services/tracing/Tracing.ts"

export interface ExporterOptions {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly encode: (spans: ReadonlyArray<Span>) => { readonly contentType: string; readonly body: Uint8Array }
}

class ExportFailed extends Data.TaggedError("ExportFailed")<{
  readonly reason: string
  readonly mayRetry: boolean
}> {}

const interval = "1 second"
const batchSize = 512
/** Spans that wait at most; further ones are lost. */
const capacity = 16_384
const timeoutMillis = 10_000
const flushTimeout = "3 seconds"
const transient: ReadonlySet<number> = new Set([408, 429, 502, 503, 504])
const untilBack = backoff("1 second", "30 seconds")

const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return errorCode(error) ?? error.name
}

/** Spans wait in a bounded queue; nothing here delays or fails a request. */
export const makeExporter = Effect.fnUntraced(function* (options: ExporterOptions) {
  const { encode, headers, url } = options
  const agent = yield* makeAgent({ connectTimeoutMillis: timeoutMillis, connections: 1 })
  const { origin, pathname } = new URL(url)
  // A query may hold a credential.
  const address = origin + pathname
  const waiting: Array<Span> = []
  const wakeups = yield* Queue.sliding<void>(1)
  let isFailing = false
  let lost = 0

  const post = (spans: ReadonlyArray<Span>) =>
    Effect.tryPromise({
      try: async (signal) => {
        const { body, contentType } = encode(spans)
        const response = await request(url, {
          method: "POST",
          headers: { ...headers, "content-type": contentType, "user-agent": "generation-gateway" },
          body,
          signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMillis)]),
          dispatcher: agent
        })
        await response.body.dump()
        return response.statusCode
      },
      catch: (error) => new ExportFailed({ reason: reasonOf(error), mayRetry: true })
    }).pipe(
      Effect.filterOrFail(
        (status) => status >= 200 && status < 300,
        (status) => new ExportFailed({ reason: `status ${status}`, mayRetry: transient.has(status) })
      )
    )

  const reportFailure = ({ reason }: ExportFailed) => {
    if (isFailing) return Effect.void
    isFailing = true
    return Effect.logWarning(`Traces cannot be sent to ${address}: ${reason}`)
  }
  const reportSuccess = Effect.suspend(() => {
    if (!isFailing) return Effect.void
    const message = `Traces are sent to ${address} again; ${pluralize(lost, "span was", "spans were")} lost`
    isFailing = false
    lost = 0
    return Effect.logInfo(message)
  })

  const sendBatch = Effect.suspend(() => {
    const batch = waiting.slice(0, batchSize)
    const remove = () => void waiting.splice(0, batch.length)
    return post(batch).pipe(
      Effect.zipRight(Effect.sync(remove)),
      Effect.zipRight(reportSuccess),
      Effect.tapError(reportFailure),
      Effect.catchIf(
        ({ mayRetry }) => !mayRetry,
        () =>
          Effect.sync(() => {
            lost += batch.length
            remove()
          })
      )
    )
  })
  const flush = Effect.whileLoop({ while: () => waiting.length > 0, body: () => sendBatch, step: () => {} })

  yield* Effect.addFinalizer(() =>
    flush.pipe(
      Effect.interruptible,
      Effect.timeout(flushTimeout),
      Effect.catchAll(() => Effect.logWarning(`${pluralize(waiting.length, "span")} could not be sent before the stop`))
    )
  )
  yield* Queue.take(wakeups).pipe(
    Effect.timeoutOption(interval),
    Effect.zipRight(Effect.retry(flush, untilBack)),
    Effect.forever,
    Effect.interruptible,
    Effect.forkScoped
  )

  return (span: Span): void => {
    if (waiting.length >= capacity) {
      lost += 1
      return
    }
    waiting.push(span)
    if (waiting.length === batchSize) wakeups.unsafeOffer(undefined)
  }
})
