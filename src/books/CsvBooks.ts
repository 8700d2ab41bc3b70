import { FileSystem } from "@effect/platform"
import { Effect, Stream } from "effect"
import { type Book, type BookEntry, BooksUnreadable } from "../services/reconcile/ProviderBooks.ts"
import { CsvReader, longestRow } from "./CsvReader.ts"
import { parseTime, toCount, toNano } from "./Values.ts"

export const csvFields = ["time", "model", "usd", "request_id", "prompt_tokens", "completion_tokens"] as const
export type CsvField = (typeof csvFields)[number]

/** The file's columns by what they hold. */
export type CsvColumns = ReadonlyMap<CsvField, string>

const day = 86_400_000
const dayOf = (at: number) => Math.floor(at / day)

/** The books of any provider, exported into a file with a line of names. */
export const csvBooks = Effect.fn("Books.readCsv")(function* (file: string, columns: CsvColumns) {
  const files = yield* FileSystem.FileSystem
  const refuse = (line: number, why: string) => new BooksUnreadable({ message: `${file}:${line}: ${why}` })
  const byDay = new Map<number, Array<BookEntry>>()
  const places = new Map<CsvField, number>()
  let isByDay = true

  const readHead = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
    for (const [field, column] of columns) {
      const place = names.findIndex((name) => name.trim() === column)
      if (place < 0) return yield* refuse(1, `there is no column ${column}`)
      places.set(field, place)
    }
  })

  const readLine = Effect.fnUntraced(function* (cells: ReadonlyArray<string>, line: number) {
    const cell = (field: CsvField) => {
      const place = places.get(field)
      return place === undefined ? undefined : (cells[place] ?? "").trim()
    }
    const count = (field: CsvField) => {
      const text = cell(field)
      if (text === undefined || text === "") return Effect.succeed(undefined)
      const value = /^\d+$/.test(text) ? toCount(Number(text)) : undefined
      return value === undefined ? refuse(line, `${field} is no plausible count`) : Effect.succeed(value)
    }
    const at = parseTime(cell("time") ?? "")
    if (!Number.isFinite(at)) return yield* refuse(line, "time is no date or time")
    const model = cell("model") ?? ""
    if (model === "") return yield* refuse(line, "model is empty")
    const usd = toNano((cell("usd") ?? "").replace(/^\$/, ""))
    if (usd === undefined) return yield* refuse(line, "usd is no plausible amount")
    const requestId = cell("request_id")
    if (requestId === "") return yield* refuse(line, "request_id is empty")
    const entry: BookEntry = {
      key: requestId ?? String(line),
      at,
      model: model.slice(0, 300),
      requestId,
      usd,
      promptTokens: yield* count("prompt_tokens"),
      completionTokens: yield* count("completion_tokens")
    }
    if (at % day !== 0) isByDay = false
    const known = byDay.get(dayOf(at))
    if (known === undefined) byDay.set(dayOf(at), [entry])
    else known.push(entry)
  })

  const csv = new CsvReader()
  let line = 0
  const take = (rows: ReadonlyArray<ReadonlyArray<string>>) =>
    Effect.forEach(
      rows,
      (cells) => {
        line += 1
        if (line === 1) return readHead(cells)
        return cells.every((cell) => cell.trim() === "") ? Effect.void : readLine(cells, line)
      },
      { discard: true }
    )
  yield* files.stream(file).pipe(
    Stream.mapError((error) => refuse(0, error._tag === "SystemError" ? error.reason : error.message)),
    Stream.decodeText("utf8"),
    Stream.runForEach((text) =>
      Effect.zipRight(
        take(csv.read(text)),
        csv.isTooLong
          ? refuse(line + 1, `the line is longer than ${longestRow} characters: a quote may never be closed`)
          : Effect.void
      )
    )
  )
  const rest = csv.end()
  if (rest === undefined) return yield* refuse(line + 1, "a quote is never closed")
  yield* take(rest)
  if (line === 0) return yield* refuse(1, "there is no line of names")

  const book: Book = {
    unit: columns.has("request_id") ? "request" : isByDay ? "day" : "hour",
    states: columns.has("prompt_tokens") || columns.has("completion_tokens") ? ["usd", "tokens"] : ["usd"],
    finalAfter: 0,
    read: ({ from, to }) =>
      Effect.sync(() => {
        const found: Array<BookEntry> = []
        for (let number = dayOf(from); number * day < to; number += 1) {
          for (const entry of byDay.get(number) ?? []) if (entry.at >= from && entry.at < to) found.push(entry)
        }
        return found
      })
  }
  return [book]
})
