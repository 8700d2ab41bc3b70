import { createReadStream } from "node:fs"
import { pipeline } from "node:stream/promises"
import { parse } from "csv-parse"
import { Array as Arr, Effect, Either } from "effect"
import { instant } from "../domain/Moment.ts"
import { TextFileDecoder } from "../domain/TextDecoding.ts"
import {
  type InvoiceEntry,
  type InvoiceSource,
  InvoicesUnreadable,
  joinSpans,
  type Span
} from "../services/reconcile/ProviderInvoices.ts"
import { addAmounts } from "../services/reconcile/Verdict.ts"
import { errorCode } from "../services/runtime/System.ts"
import type { Range } from "../services/telemetry/Usage.ts"
import { toCount, toNano } from "./VendorInvoices.ts"

export const csvFields = ["time", "model", "usd", "request_id", "prompt_tokens", "completion_tokens"] as const
export type CsvField = (typeof csvFields)[number]

/** The name of the CSV column for each field. */
export type CsvColumns = ReadonlyMap<CsvField, string>

type Cells = ReadonlyArray<string>
type ColumnIndexes = ReadonlyMap<CsvField, number>

const hour = 3_600_000
const day = 24 * hour

/** Limits the memory that a quote without an end can use. */
const maxLineLength = 100_000
/** Limits the memory. This many entries take about a gigabyte. */
const maxEntries = 2_000_000

/** Finds the column of each field in the header line. Fails with a message for the operator. */
const findColumns = (names: Cells, columns: CsvColumns): Either.Either<ColumnIndexes, string> => {
  const indexes = new Map<CsvField, number>()
  for (const [field, column] of columns) {
    const index = names.findIndex((name) => name.trim() === column)
    if (index < 0) return Either.left(`there is no column ${column}`)
    indexes.set(field, index)
  }
  return Either.right(indexes)
}

/** Reads an invoice entry from the cells of a line. Fails with a message for the operator. */
const readEntry = (cells: Cells, indexes: ColumnIndexes, line: number): Either.Either<InvoiceEntry, string> => {
  const cell = (field: CsvField) => {
    const index = indexes.get(field)
    return index === undefined ? undefined : (cells[index] ?? "").trim()
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
  const problem = problems[errorCode(error) ?? ""]
  if (problem !== undefined) return problem
  return error instanceof Error ? error.message : String(error)
}

const decodeText = async function* (bytes: AsyncIterable<Uint8Array>) {
  const decoder = new TextFileDecoder()
  const orThrow = Either.getOrThrowWith((reason: string) => new Error(reason))
  for await (const chunk of bytes) yield orThrow(decoder.decode(chunk))
  yield orThrow(decoder.end())
}

/**
 * Reads a provider's invoices from a CSV file with a header line. Keeps in memory only the entries within `period`, which must
 * extend the compared period by a day on both sides. Other entries are only counted, with their first and last time.
 */
export const csvInvoices = Effect.fn("Invoices.readCsv")(function* (file: string, columns: CsvColumns, period: Range) {
  const isByRequest = columns.has("request_id")
  const calls: Array<InvoiceEntry> = []
  const sums = new Map<string, InvoiceEntry>()
  const spans = new Map<number, Span>()
  let indexes: ColumnIndexes | undefined
  let isByDay = true

  const add = (entry: InvoiceEntry): Either.Either<void, string> => {
    const { at, model } = entry
    const start = Math.floor(at / hour) * hour
    spans.set(start, joinSpans({ rows: 1, first: at, last: at }, spans.get(start)))
    if (at % day !== 0) isByDay = false
    if (at < period.from || at >= period.to) return Either.void
    const key = `${start} ${model}`
    if (isByRequest) calls.push(entry)
    else sums.set(key, { key, at: start, model, ...addAmounts(sums.get(key) ?? {}, entry) })
    return calls.length + sums.size > maxEntries
      ? Either.left(`the period has more than ${maxEntries} rows: compare a shorter one`)
      : Either.void
  }

  const addLine = (cells: Cells, line: number): Either.Either<void, string> =>
    indexes === undefined
      ? Either.map(findColumns(cells, columns), (columnIndexes) => void (indexes = columnIndexes))
      : Either.flatMap(readEntry(cells, indexes, line), add)

  const parser = parse({
    // Accepts both line ends, because a file may mix them.
    record_delimiter: ["\r\n", "\n"],
    relax_column_count: true,
    relax_quotes: true,
    trim: true,
    max_record_size: maxLineLength,
    skip_records_with_empty_values: true,
    on_record: (cells: Cells, { lines }) => {
      const added = addLine(cells, lines)
      if (Either.isLeft(added)) throw new InvoicesUnreadable({ message: `${file}:${lines}: ${added.left}` })
    }
  })
  yield* Effect.tryPromise({
    try: (signal) => pipeline(createReadStream(file), decodeText, parser.resume(), { signal }),
    catch: (error) => {
      if (error instanceof InvoicesUnreadable) return error
      const place = errorCode(error) === "ENOENT" ? file : `${file}:${parser.info.lines}`
      return new InvoicesUnreadable({ message: `${place}: ${explain(error)}` })
    }
  })
  if (indexes === undefined) return yield* new InvoicesUnreadable({ message: `${file}:1: there is no header line` })

  const days = Arr.groupBy(isByRequest ? calls : sums.values(), ({ at }) => String(Math.floor(at / day)))
  const source: InvoiceSource = {
    unit: isByRequest ? "request" : isByDay ? "day" : "hour",
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
  return [source]
})
