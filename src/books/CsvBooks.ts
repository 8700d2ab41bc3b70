import { createReadStream } from "node:fs"
import { pipeline } from "node:stream/promises"
import { parse } from "csv-parse"
import { Array as Arr, Effect, Either } from "effect"
import { instant } from "../domain/Moment.ts"
import { TextFileDecoder } from "../domain/TextDecoding.ts"
import {
  type Book,
  type BookEntry,
  BooksUnreadable,
  joinSpans,
  type Span
} from "../services/reconcile/ProviderBooks.ts"
import { addAmounts } from "../services/reconcile/Verdict.ts"
import { errorCode } from "../services/runtime/System.ts"
import type { Range } from "../services/telemetry/UsageRanges.ts"
import { toCount, toNano } from "./Vendors.ts"

export const csvFields = ["time", "model", "usd", "request_id", "prompt_tokens", "completion_tokens"] as const
export type CsvField = (typeof csvFields)[number]

/** The file's columns by what they hold. */
export type CsvColumns = ReadonlyMap<CsvField, string>

type Cells = ReadonlyArray<string>
type Places = ReadonlyMap<CsvField, number>

const hour = 3_600_000
const day = 24 * hour

/** A quote that is never closed ends here, and not with the memory. */
const maxLineLength = 100_000
/** Calls, or sums by hour and model, of one period: about a gigabyte. */
const maxEntries = 2_000_000

/** Fails with why there are none. */
const findPlaces = (names: Cells, columns: CsvColumns): Either.Either<Places, string> => {
  const places = new Map<CsvField, number>()
  for (const [field, column] of columns) {
    const place = names.findIndex((name) => name.trim() === column)
    if (place < 0) return Either.left(`there is no column ${column}`)
    places.set(field, place)
  }
  return Either.right(places)
}

/** Fails with why the line has no entry. */
const readEntry = (cells: Cells, places: Places, line: number): Either.Either<BookEntry, string> => {
  const cell = (field: CsvField) => {
    const place = places.get(field)
    return place === undefined ? undefined : (cells[place] ?? "").trim()
  }
  const at = instant(cell("time") ?? "")
  if (at === undefined) return Either.left("time is no date or time")
  const model = cell("model") ?? ""
  if (model === "") return Either.left("model is empty")
  const usd = toNano((cell("usd") ?? "").replace(/^\$/, ""))
  if (usd === undefined) return Either.left("usd is no plausible amount")
  const requestId = cell("request_id")
  if (requestId === "") return Either.left("request_id is empty")
  if (requestId !== undefined && /\p{Cc}/u.test(requestId)) return Either.left("request_id has control characters")
  const counts: { promptTokens?: number; completionTokens?: number } = {}
  for (const [name, field] of [
    ["promptTokens", "prompt_tokens"],
    ["completionTokens", "completion_tokens"]
  ] as const) {
    const text = cell(field) ?? ""
    if (text === "") continue
    const count = /^\d+$/.test(text) ? toCount(Number(text)) : undefined
    if (count === undefined) return Either.left(`${field} is no plausible count`)
    counts[name] = count
  }
  return Either.right({ key: requestId ?? String(line), at, model: model.slice(0, 300), requestId, usd, ...counts })
}

const problems: Readonly<Record<string, string>> = {
  CSV_MAX_RECORD_SIZE: `the line is longer than ${maxLineLength} characters: a quote may never be closed`,
  CSV_QUOTE_NOT_CLOSED: "a quote is never closed",
  ENOENT: "there is no such file"
}

const explain = (error: unknown): string => {
  const known = problems[errorCode(error) ?? ""]
  if (known !== undefined) return known
  return error instanceof Error ? error.message : String(error)
}

const textsOf = async function* (bytes: AsyncIterable<Uint8Array>) {
  const decoder = new TextFileDecoder()
  const orThrow = Either.getOrThrowWith((reason: string) => new Error(reason))
  for await (const some of bytes) yield orThrow(decoder.decode(some))
  yield orThrow(decoder.end())
}

/**
 * Returns the books of any provider, exported into a file with a line of names. Holds only the entries within `period`,
 * which must have a day of margin around the period that is compared; of others only their number and times.
 */
export const csvBooks = Effect.fn("Books.readCsv")(function* (file: string, columns: CsvColumns, period: Range) {
  const isByCall = columns.has("request_id")
  const calls: Array<BookEntry> = []
  const sums = new Map<string, BookEntry>()
  const spans = new Map<number, Span>()
  let places: Places | undefined
  let isByDay = true

  const add = (entry: BookEntry): Either.Either<void, string> => {
    const { at, model } = entry
    const start = Math.floor(at / hour) * hour
    spans.set(start, joinSpans({ rows: 1, first: at, last: at }, spans.get(start)))
    if (at % day !== 0) isByDay = false
    if (at < period.from || at >= period.to) return Either.void
    const key = `${start} ${model}`
    if (isByCall) calls.push(entry)
    else sums.set(key, { key, at: start, model, ...addAmounts(sums.get(key) ?? {}, entry) })
    return calls.length + sums.size > maxEntries
      ? Either.left(`the period has more than ${maxEntries} rows: compare a shorter one`)
      : Either.void
  }

  const addLine = (cells: Cells, line: number): Either.Either<void, string> =>
    places === undefined
      ? Either.map(findPlaces(cells, columns), (found) => void (places = found))
      : Either.flatMap(readEntry(cells, places, line), add)

  const parser = parse({
    // A file may have both.
    record_delimiter: ["\r\n", "\n"],
    relax_column_count: true,
    relax_quotes: true,
    trim: true,
    max_record_size: maxLineLength,
    skip_records_with_empty_values: true,
    on_record: (cells: Cells, { lines }) => {
      const added = addLine(cells, lines)
      if (Either.isLeft(added)) throw new BooksUnreadable({ message: `${file}:${lines}: ${added.left}` })
    }
  })
  yield* Effect.tryPromise({
    try: (signal) => pipeline(createReadStream(file), textsOf, parser.resume(), { signal }),
    catch: (error) => {
      if (error instanceof BooksUnreadable) return error
      const place = errorCode(error) === "ENOENT" ? file : `${file}:${parser.info.lines}`
      return new BooksUnreadable({ message: `${place}: ${explain(error)}` })
    }
  })
  if (places === undefined) return yield* new BooksUnreadable({ message: `${file}:1: there is no line of names` })

  const days = Arr.groupBy(isByCall ? calls : sums.values(), ({ at }) => String(Math.floor(at / day)))
  const book: Book = {
    unit: isByCall ? "request" : isByDay ? "day" : "hour",
    states: columns.has("prompt_tokens") || columns.has("completion_tokens") ? ["usd", "tokens"] : ["usd"],
    finalAfter: 0,
    read: ({ from, to }) => {
      const first = Math.floor(from / day)
      const read = Array.from({ length: Math.ceil(to / day) - first }, (_, index) => days[String(first + index)] ?? [])
      return Effect.succeed(read.flat().filter(({ at }) => at >= from && at < to))
    },
    spanOutside: ({ from, to }) =>
      Array.from(spans).reduce<Span | undefined>(
        (outside, [at, span]) => (at < from || at >= to ? joinSpans(span, outside) : outside),
        undefined
      )
  }
  return [book]
})
