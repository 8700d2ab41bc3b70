import { FileSystem } from "@effect/platform"
import type { PlatformError } from "@effect/platform/Error"
import { Effect, Either, Stream } from "effect"
import { TextFileDecoder } from "../domain/TextDecoding.ts"
import { type Book, type BookEntry, BooksUnreadable } from "../services/reconcile/ProviderBooks.ts"
import { CsvReader, longestRow } from "./CsvReader.ts"
import { makeEntrySpool } from "./EntrySpool.ts"
import { parseTime, toCount, toNano } from "./Values.ts"

export const csvFields = ["time", "model", "usd", "request_id", "prompt_tokens", "completion_tokens"] as const
export type CsvField = (typeof csvFields)[number]

/** The file's columns by what they hold. */
export type CsvColumns = ReadonlyMap<CsvField, string>

type Cells = ReadonlyArray<string>

const day = 86_400_000

type Places = ReadonlyMap<CsvField, number>

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

const reasonOf = (error: PlatformError): string =>
  error._tag === "SystemError" && error.reason === "NotFound" ? "there is no such file" : error.message

/** The books of any provider, exported into a file with a line of names. */
export const csvBooks = Effect.fn("Books.readCsv")(function* (file: string, columns: CsvColumns) {
  const files = yield* FileSystem.FileSystem
  const spool = yield* makeEntrySpool()
  const csv = new CsvReader()
  const refuse = (line: number, why: string) => new BooksUnreadable({ message: `${file}:${line}: ${why}` })
  let line = 0
  let places: Places = new Map()
  let isByDay = true

  const takeLine = (cells: Cells): Either.Either<void, string> => {
    line += 1
    if (line === 1) return Either.map(findPlaces(cells, columns), (found) => void (places = found))
    if (cells.every((cell) => cell.trim() === "")) return Either.void
    return Either.map(readEntry(cells, places, line), (entry) => {
      if (entry.at % day !== 0) isByDay = false
      spool.add(entry)
    })
  }

  const take = (rows: ReadonlyArray<Cells>) =>
    Effect.suspend(() => {
      for (const cells of rows) {
        const taken = takeLine(cells)
        if (Either.isLeft(taken)) return refuse(line, taken.left)
      }
      return spool.makeRoom
    })

  const decoder = new TextFileDecoder()
  const textOf = Either.mapLeft((reason: string) => refuse(line + 1, reason))
  const takeText = (text: string) =>
    Effect.zipRight(
      take(csv.read(text)),
      csv.isTooLong
        ? refuse(line + 1, `the line is longer than ${longestRow} characters: a quote may never be closed`)
        : Effect.void
    )

  yield* files.stream(file).pipe(
    Stream.mapError((error) => new BooksUnreadable({ message: `${file}: ${reasonOf(error)}` })),
    Stream.runForEach((bytes) => Effect.flatMap(textOf(decoder.decode(bytes)), takeText))
  )
  yield* Effect.flatMap(textOf(decoder.end()), takeText)
  const rest = csv.end()
  if (rest === undefined) return yield* refuse(line + 1, "a quote is never closed")
  yield* take(rest)
  if (line === 0) return yield* refuse(1, "there is no line of names")

  const book: Book = {
    unit: columns.has("request_id") ? "request" : isByDay ? "day" : "hour",
    states: columns.has("prompt_tokens") || columns.has("completion_tokens") ? ["usd", "tokens"] : ["usd"],
    finalAfter: 0,
    read: spool.read,
    spanOutside: spool.spanOutside
  }
  return [book]
})
