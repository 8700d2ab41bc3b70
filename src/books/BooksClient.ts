import { Duration, Effect, ParseResult, Redacted, Schema } from "effect"
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

const limitBytes = 32 * 1024 * 1024
const timeoutMillis = 60_000
const attempts = 5
const maxWaitMillis = 120_000
const maxPages = 10_000
const maxEntries = 5_000_000

interface Answer {
  readonly status: number
  readonly retryAfterMillis: number | undefined
  readonly text: string
}

const codeOf = (error: unknown): string => (error instanceof Error ? (errorCode(error) ?? error.name) : "error")

const secondsOf = (header: string | ReadonlyArray<string> | undefined): number | undefined => {
  const text = typeof header === "string" ? header.trim() : ""
  return /^\d{1,6}(?:\.\d+)?$/.test(text) ? Number(text) * 1000 : undefined
}

/** Reads a vendor's books: bounded, repeated where the vendor is busy, and never redirected, which would give the key away. */
export const booksClient = (
  vendor: string,
  { baseUrl, key, variable }: Access,
  headersFor: (key: string) => Readonly<Record<string, string>>
) => {
  const refuse = (message: string) => new BooksUnreadable({ message: `${vendor}: ${message}` })

  const sendBy = (dispatcher: Dispatcher, { body, path, query = [] }: BooksRequest) =>
    Effect.tryPromise({
      try: async (signal): Promise<Answer | "too large"> => {
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
        const bytes = await readAnswerBody(answer.body, limitBytes)
        if (bytes === undefined) return "too large"
        const text = bytes.toString("utf8")
        return { status: answer.statusCode, retryAfterMillis: secondsOf(answer.headers["retry-after"]), text }
      },
      // An error's text may quote the headers.
      catch: (error) => refuse(`${path} did not answer: ${codeOf(error)}.`)
    })

  const send = (call: BooksRequest) =>
    Effect.scoped(
      Effect.flatMap(makeAgent({ connectTimeoutMillis: timeoutMillis }), (dispatcher) => sendBy(dispatcher, call))
    )

  const isBusy = (status: number) => status === 429 || status === 408 || status >= 500

  const sendPatiently = (call: BooksRequest, attempt = 1): Effect.Effect<Answer, BooksUnreadable> =>
    Effect.matchEffect(send(call), {
      onFailure: (error) =>
        attempt >= attempts ? Effect.fail(error) : Effect.delay(sendPatiently(call, attempt + 1), pause(attempt)),
      onSuccess: (answer) => {
        if (answer === "too large") return refuse(`${call.path} answered with more than ${limitBytes} bytes.`)
        if (!isBusy(answer.status) || attempt >= attempts) return Effect.succeed(answer)
        const wait = answer.retryAfterMillis ?? pause(attempt)
        if (wait > maxWaitMillis) {
          return refuse(`${call.path} asks for a pause of ${Math.ceil(wait / 1000)} seconds: try again then.`)
        }
        return Effect.delay(sendPatiently(call, attempt + 1), Duration.millis(wait))
      }
    })

  const pause = (attempt: number) => 250 * 2 ** attempt

  const parse = ({ status, text }: Answer, path: string) => {
    if (status === 401 || status === 403) return refuse(`${path} refused the key in ${variable} with status ${status}.`)
    if (status < 200 || status >= 300) return refuse(`${path} answered with status ${status}.`)
    return Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: () => refuse(`${path} answered with what is no JSON.`)
    })
  }

  // Says where and what the problem is, and never quotes the answer.
  const explain = (path: string) => (error: ParseResult.ParseError) => {
    const [issue] = ParseResult.ArrayFormatter.formatErrorSync(error)
    return refuse(`${[path, ...(issue?.path ?? [])].map(String).join(" ")} ${issue?.message}.`)
  }

  /** The decoded JSON of a successful answer. */
  const read = <A, I>(call: BooksRequest, schema: Schema.Schema<A, I>): Effect.Effect<A, BooksUnreadable> =>
    Effect.flatMap(sendPatiently(call), (answer) => parse(answer, call.path)).pipe(
      Effect.flatMap((body) => Effect.mapError(Schema.decodeUnknown(schema)(body), explain(call.path)))
    )

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
