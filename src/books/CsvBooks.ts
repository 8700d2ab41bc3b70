import { createReadStream } from "node:fs"
import { pipeline } from "node:stream/promises"
import { CsvError, parse } from "csv-parse"
import { Array as Arr, Effect, Either } from "effect"
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
import { parseTime, toCount, toNano } from "./Values.ts"

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
  const at = parseTime(cell("time") ?? "")
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

/** The entries of a file within a period; of those outside it, only their number and times. */
class FileEntries {
  readonly #columns: CsvColumns
  readonly #period: Range
  readonly #calls: Array<BookEntry> = []
  readonly #sums = new Map<string, BookEntry>()
  readonly #hours = new Map<number, Span>()
  #places: Places | undefined
  #isByDay = true

  constructor(columns: CsvColumns, period: Range) {
    this.#columns = columns
    this.#period = period
  }

  /** Takes the names first, then each row. Fails with what is wrong with the line. */
  addRow(cells: Cells, line: number): Either.Either<void, string> {
    if (this.#places === undefined) {
      return Either.map(findPlaces(cells, this.#columns), (places) => void (this.#places = places))
    }
    return Either.flatMap(readEntry(cells, this.#places, line), (entry) => this.#add(entry))
  }

  get hasNames(): boolean {
    return this.#places !== undefined
  }

  toBook(): Book {
    const isByCall = this.#columns.has("request_id")
    const hasTokens = this.#columns.has("prompt_tokens") || this.#columns.has("completion_tokens")
    const entries = isByCall ? this.#calls : Array.from(this.#sums.values())
    const days = Arr.groupBy(entries, ({ at }) => String(Math.floor(at / day)))
    return {
      unit: isByCall ? "request" : this.#isByDay ? "day" : "hour",
      states: hasTokens ? ["usd", "tokens"] : ["usd"],
      finalAfter: 0,
      read: ({ from, to }) => {
        const read = Array.from({ length: Math.ceil(to / day) - Math.floor(from / day) }, (_, index) => {
          const found = days[String(Math.floor(from / day) + index)] ?? []
          return found.filter(({ at }) => at >= from && at < to)
        })
        return Effect.succeed(read.flat())
      },
      spanOutside: ({ from, to }) =>
        Array.from(this.#hours).reduce<Span | undefined>(
          (outside, [at, span]) => (at < from || at >= to ? joinSpans(span, outside) : outside),
          undefined
        )
    }
  }

  #add(entry: BookEntry): Either.Either<void, string> {
    const { at, model, requestId } = entry
    const start = Math.floor(at / hour) * hour
    this.#hours.set(start, joinSpans({ rows: 1, first: at, last: at }, this.#hours.get(start)))
    if (at % day !== 0) this.#isByDay = false
    if (at < this.#period.from || at >= this.#period.to) return Either.void
    if (requestId !== undefined) this.#calls.push(entry)
    else {
      const key = `${start} ${model}`
      this.#sums.set(key, { key, at: start, model, ...addAmounts(this.#sums.get(key) ?? {}, entry) })
    }
    return this.#calls.length + this.#sums.size > maxEntries
      ? Either.left(`the period has more than ${maxEntries} rows: compare a shorter one`)
      : Either.void
  }
}

const explain = (error: unknown): string => {
  if (error instanceof CsvError && error.code === "CSV_QUOTE_NOT_CLOSED") return "a quote is never closed"
  if (error instanceof CsvError && error.code === "CSV_MAX_RECORD_SIZE") {
    return `the line is longer than ${maxLineLength} characters: a quote may never be closed`
  }
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
 * which must have a day of margin around the period that is compared.
 */
export const csvBooks = Effect.fn("Books.readCsv")(function* (file: string, columns: CsvColumns, period: Range) {
  const entries = new FileEntries(columns, period)
  const parser = parse({
    // A file may have both.
    record_delimiter: ["\r\n", "\n"],
    relax_column_count: true,
    relax_quotes: true,
    trim: true,
    max_record_size: maxLineLength,
    skip_records_with_empty_values: true,
    on_record: (cells: Cells, { lines }) => {
      const added = entries.addRow(cells, lines)
      if (Either.isLeft(added)) throw new BooksUnreadable({ message: `${file}:${lines}: ${added.left}` })
    }
  })
  yield* Effect.tryPromise({
    try: (signal) => pipeline(createReadStream(file), textsOf, parser.resume(), { signal }),
    catch: (error) => {
      if (error instanceof BooksUnreadable) return error
      const code = errorCode(error)
      if (code === "ENOENT") return new BooksUnreadable({ message: `${file}: there is no such file` })
      return new BooksUnreadable({ message: `${file}:${parser.info.lines}: ${explain(error)}` })
    }
  })
  if (!entries.hasNames) return yield* new BooksUnreadable({ message: `${file}:1: there is no line of names` })
  return [entries.toBook()]
})
