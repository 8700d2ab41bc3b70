import { Data, Effect, ParseResult, Redacted, Schedule, Schema } from "effect"
import { type Dispatcher, request } from "undici"
import { makeAgent, readAnswerBody } from "../node/Outgoing.ts"
import { type InvoiceEntry, InvoicesUnreadable } from "../services/reconcile/ProviderInvoices.ts"
import { retries } from "../services/runtime/Schedules.ts"
import { errorCode } from "../services/runtime/System.ts"

export interface Access {
  readonly baseUrl: string
  readonly key: Redacted.Redacted
  /** The environment variable that holds the key. */
  readonly variable: string
}

export type InvoiceQuery = ReadonlyArray<readonly [name: string, value: string | number]>

interface InvoiceRequest {
  readonly path: string
  readonly query?: InvoiceQuery
  /** The body of a POST. Without it, the request is a GET. */
  readonly body?: unknown
}

interface Page {
  readonly entries: ReadonlyArray<InvoiceEntry>
  /** The vendor's values, which are not validated yet. */
  readonly has_more: unknown
  readonly next: unknown
}

const maxBytes = 32 * 1024 * 1024
const timeoutMillis = 60_000
const maxWaitMillis = 120_000
const maxPages = 10_000
const maxEntries = 5_000_000

class CallFailed extends Data.TaggedError("CallFailed")<{
  readonly message: string
  /** Set if a retry may succeed. `afterMillis` is the vendor's `Retry-After`. */
  readonly retry?: { readonly afterMillis: number | undefined }
}> {}

const isRetryable = (status: number) => status === 429 || status === 408 || status >= 500

/** Retries four times: after the vendor's `Retry-After`, or without one after 0.5, 1, 2 and 4 seconds. */
const schedule = Schedule.identity<CallFailed>().pipe(
  Schedule.intersect(retries("500 millis", 4)),
  Schedule.modifyDelay(([{ retry }], delay) => retry?.afterMillis ?? delay)
)

const codeOf = (error: unknown): string => (error instanceof Error ? (errorCode(error) ?? error.name) : "error")

const parseRetryAfter = (header: string | ReadonlyArray<string> | undefined): number | undefined => {
  const text = typeof header === "string" ? header.trim() : ""
  return /^\d{1,6}(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : undefined
}

/**
 * Returns a client of a vendor's invoice API. It limits the size of responses, repeats failed calls, and never sends the key
 * to a redirect's target.
 */
export const makeInvoiceClient = (
  vendor: string,
  { baseUrl, key, variable }: Access,
  headersFor: (key: string) => Readonly<Record<string, string>>
) => {
  const refuse = (message: string) => new InvoicesUnreadable({ message: `${vendor}: ${message}` })

  const sendWith = (dispatcher: Dispatcher, { body, path, query = [] }: InvoiceRequest) =>
    Effect.tryPromise({
      try: async (signal) => {
        const url = new URL(`${baseUrl.replace(/\/+$/, "")}${path}`)
        for (const [name, value] of query) url.searchParams.append(name, String(value))
        const answer = await request(url, {
          method: body === undefined ? "GET" : "POST",
          headers: {
            accept: "application/json",
            ...(body !== undefined && { "content-type": "application/json" }),
            ...headersFor(Redacted.value(key).trim())
          },
          ...(body !== undefined && { body: JSON.stringify(body) }),
          headersTimeout: timeoutMillis,
          bodyTimeout: timeoutMillis,
          dispatcher,
          signal
        })
        const bytes = await readAnswerBody(answer.body, maxBytes)
        return { status: answer.statusCode, headers: answer.headers, bytes }
      },
      // Omits the error's message, which may contain the headers and so the key.
      catch: (error) =>
        new CallFailed({ message: `${path} did not respond: ${codeOf(error)}.`, retry: { afterMillis: undefined } })
    })

  const sendOnce = Effect.fnUntraced(function* (call: InvoiceRequest) {
    const fail = (message: string) => new CallFailed({ message: `${call.path} ${message}.` })
    const dispatcher = yield* makeAgent({ connectTimeoutMillis: timeoutMillis })
    const { bytes, headers, status } = yield* sendWith(dispatcher, call)
    if (bytes === undefined) return yield* fail(`answered with more than ${maxBytes} bytes`)
    if (!isRetryable(status)) return { status, text: bytes.toString("utf8") }
    const afterMillis = parseRetryAfter(headers["retry-after"])
    if (afterMillis === undefined || afterMillis <= maxWaitMillis) {
      return yield* new CallFailed({ message: `${call.path} answered with status ${status}.`, retry: { afterMillis } })
    }
    return yield* fail(`asks for a pause of ${Math.ceil(afterMillis / 1000)} seconds. Try again after it`)
  }, Effect.scoped)

  const send = (call: InvoiceRequest) =>
    sendOnce(call).pipe(
      Effect.retry({ schedule, while: ({ retry }) => retry !== undefined }),
      Effect.mapError(({ message }) => refuse(message))
    )

  const requestJson = Effect.fnUntraced(function* (call: InvoiceRequest) {
    const { status, text } = yield* send(call)
    const fail = (message: string) => refuse(`${call.path} ${message}.`)
    if (status === 401 || status === 403) return yield* fail(`refused the key in ${variable} with status ${status}`)
    if (status < 200 || status >= 300) return yield* fail(`answered with status ${status}`)
    return yield* Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: () => fail("did not answer with JSON")
    })
  })

  // Returns a message with the field and the problem. It never quotes the response.
  const explainInvalid = (path: string) => (error: ParseResult.ParseError) => {
    const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
    return refuse(`${[path, ...(issue?.path ?? [])].map(String).join(" ")} ${issue?.message}.`)
  }

  /** Returns the decoded JSON of a successful response. */
  const read = <A, I>(call: InvoiceRequest, schema: Schema.Schema<A, I>): Effect.Effect<A, InvoicesUnreadable> =>
    Effect.flatMap(requestJson(call), (body) =>
      Effect.mapError(Schema.decodeUnknown(schema)(body), explainInvalid(call.path))
    )

  /** Returns the entries of all pages. */
  const readPages = Effect.fnUntraced(function* (
    readPage: (cursor: string | undefined) => Effect.Effect<Page, InvoicesUnreadable>
  ) {
    const all: Array<InvoiceEntry> = []
    const seen = new Set<string>()
    let cursor: string | undefined
    do {
      const { entries, has_more, next }: Page = yield* readPage(cursor)
      for (const entry of entries) all.push(entry)
      if (all.length > maxEntries)
        return yield* refuse("it lists more entries than can be compared at once. Use a later --since.")
      cursor = has_more !== false && typeof next === "string" && next !== "" ? next : undefined
      if (cursor === undefined) return all
      if (seen.has(cursor) || seen.size >= maxPages) return yield* refuse("it lists pages without an end.")
      seen.add(cursor)
    } while (true)
  })

  return { read, readPages, refuse }
}

export type InvoiceClient = ReturnType<typeof makeInvoiceClient>
