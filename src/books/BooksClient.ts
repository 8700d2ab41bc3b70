import { Data, Effect, ParseResult, Redacted, Schedule, Schema } from "effect"
import { type Dispatcher, request } from "undici"
import { readAnswerBody } from "../node/AnswerBody.ts"
import { makeAgent } from "../node/Outgoing.ts"
import { type BookEntry, BooksUnreadable } from "../services/reconcile/ProviderBooks.ts"
import { errorCode } from "../services/runtime/System.ts"

export interface Access {
  readonly baseUrl: string
  readonly key: Redacted.Redacted
  /** Of the variable that the key comes from. */
  readonly variable: string
}

export type BooksQuery = ReadonlyArray<readonly [name: string, value: string | number]>

interface BooksRequest {
  readonly path: string
  readonly query?: BooksQuery
  /** With one the request is a POST. */
  readonly body?: unknown
}

interface Page {
  readonly entries: ReadonlyArray<BookEntry>
  /** As the vendor sends them. */
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
  /** Set if another attempt may succeed; how long the vendor asks to wait. */
  readonly retry?: { readonly afterMillis: number | undefined }
}> {}

const isBusy = (status: number) => status === 429 || status === 408 || status >= 500

/** Four more attempts: when the vendor says, else after 0.5, 1, 2 and 4 seconds. */
const retries = Schedule.identity<CallFailed>().pipe(
  Schedule.intersect(Schedule.exponential("500 millis")),
  Schedule.intersect(Schedule.recurs(4)),
  Schedule.modifyDelay(([[{ retry }]], delay) => retry?.afterMillis ?? delay)
)

const codeOf = (error: unknown): string => (error instanceof Error ? (errorCode(error) ?? error.name) : "error")

const millisOf = (header: string | ReadonlyArray<string> | undefined): number | undefined => {
  const text = typeof header === "string" ? header.trim() : ""
  return /^\d{1,6}(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : undefined
}

/** Reads a vendor's books. Bounds answers, repeats requests while the vendor is busy, and follows no redirect with the key. */
export const booksClient = (
  vendor: string,
  { baseUrl, key, variable }: Access,
  headersFor: (key: string) => Readonly<Record<string, string>>
) => {
  const refuse = (message: string) => new BooksUnreadable({ message: `${vendor}: ${message}` })

  const sendBy = (dispatcher: Dispatcher, { body, path, query = [] }: BooksRequest) =>
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
      // An error's text may quote the headers.
      catch: (error) =>
        new CallFailed({ message: `${path} did not answer: ${codeOf(error)}.`, retry: { afterMillis: undefined } })
    })

  const sendOnce = Effect.fnUntraced(function* (call: BooksRequest) {
    const fail = (message: string) => new CallFailed({ message: `${call.path} ${message}.` })
    const dispatcher = yield* makeAgent({ connectTimeoutMillis: timeoutMillis })
    const { bytes, headers, status } = yield* sendBy(dispatcher, call)
    if (bytes === undefined) return yield* fail(`answered with more than ${maxBytes} bytes`)
    if (!isBusy(status)) return { status, text: bytes.toString("utf8") }
    const afterMillis = millisOf(headers["retry-after"])
    if (afterMillis === undefined || afterMillis <= maxWaitMillis) {
      return yield* new CallFailed({ message: `${call.path} answered with status ${status}.`, retry: { afterMillis } })
    }
    return yield* fail(`asks for a pause of ${Math.ceil(afterMillis / 1000)} seconds: try again then`)
  }, Effect.scoped)

  const send = (call: BooksRequest) =>
    sendOnce(call).pipe(
      Effect.retry({ schedule: retries, while: ({ retry }) => retry !== undefined }),
      Effect.mapError(({ message }) => refuse(message))
    )

  const ask = Effect.fnUntraced(function* (call: BooksRequest) {
    const { status, text } = yield* send(call)
    const fail = (message: string) => refuse(`${call.path} ${message}.`)
    if (status === 401 || status === 403) return yield* fail(`refused the key in ${variable} with status ${status}`)
    if (status < 200 || status >= 300) return yield* fail(`answered with status ${status}`)
    return yield* Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: () => fail("answered with what is no JSON")
    })
  })

  // Says where and what the problem is, and never quotes the answer.
  const explain = (path: string) => (error: ParseResult.ParseError) => {
    const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
    return refuse(`${[path, ...(issue?.path ?? [])].map(String).join(" ")} ${issue?.message}.`)
  }

  /** The decoded JSON of a successful answer. */
  const read = <A, I>(call: BooksRequest, schema: Schema.Schema<A, I>): Effect.Effect<A, BooksUnreadable> =>
    Effect.flatMap(ask(call), (body) => Effect.mapError(Schema.decodeUnknown(schema)(body), explain(call.path)))

  /** All entries of pages that name their next one. */
  const readPages = Effect.fnUntraced(function* (
    readPage: (cursor: string | undefined) => Effect.Effect<Page, BooksUnreadable>
  ) {
    const all: Array<BookEntry> = []
    const seen = new Set<string>()
    let cursor: string | undefined
    do {
      const { entries, has_more, next }: Page = yield* readPage(cursor)
      for (const entry of entries) all.push(entry)
      if (all.length > maxEntries) return yield* refuse("it lists more than can be compared at once: begin later.")
      cursor = has_more !== false && typeof next === "string" && next !== "" ? next : undefined
      if (cursor === undefined) return all
      if (seen.has(cursor) || seen.size >= maxPages) return yield* refuse("its pages do not end.")
      seen.add(cursor)
    } while (true)
  })

  return { read, readPages, refuse }
}

export type BooksClient = ReturnType<typeof booksClient>
