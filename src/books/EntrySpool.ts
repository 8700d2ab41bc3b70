import { FileSystem } from "@effect/platform"
import type { PlatformError } from "@effect/platform/Error"
import { Effect, Scope, Stream } from "effect"
import { type BookEntry, BooksUnreadable, joinSpans, type Span } from "../services/reconcile/ProviderBooks.ts"
import type { Range } from "../services/telemetry/UsageRanges.ts"

const day = 86_400_000
const dayOf = (at: number) => Math.floor(at / day)
const hour = 3_600_000

interface Chunk {
  readonly offset: number
  readonly bytes: number
}

interface SpooledDay {
  readonly chunks: Array<Chunk>
  pending: string
}

const refuse = ({ message }: PlatformError) =>
  new BooksUnreadable({ message: `No temporary file can be used: ${message}` })

const countOf = (text: string | undefined) => (text === undefined || text === "" ? undefined : Number(text))

/** Entries in any order, kept by day; in a temporary file once they are many, for as long as the scope lasts. */
export const makeEntrySpool = Effect.fnUntraced(function* (mostPendingCharacters = 4 * 1024 * 1024) {
  const files = yield* FileSystem.FileSystem
  const scope = yield* Effect.scope
  const temporaryFile = yield* Effect.cached(
    Scope.extend(files.makeTempFileScoped({ prefix: "gateway-books-" }), scope)
  )
  const days = new Map<number, SpooledDay>()
  const hours = new Map<number, Span>()
  const models: Array<string> = []
  const numbers = new Map<string, number>()
  let pendingCharacters = 0
  let end = 0

  const numberOf = (model: string): number => {
    const known = numbers.get(model)
    if (known !== undefined) return known
    numbers.set(model, models.length)
    return models.push(model) - 1
  }

  const add = ({ at, completionTokens, key, model, promptTokens, requestId, usd }: BookEntry): void => {
    const fields = [at, usd ?? "", promptTokens ?? "", completionTokens ?? "", numberOf(model), key, requestId ?? ""]
    const line = `${fields.join("\t")}\n`
    const known = days.get(dayOf(at))
    if (known === undefined) days.set(dayOf(at), { chunks: [], pending: line })
    else known.pending += line
    pendingCharacters += line.length
    const number = Math.floor(at / hour)
    hours.set(number, joinSpans({ rows: 1, first: at, last: at }, hours.get(number)))
  }

  const flush = Effect.gen(function* () {
    const path = yield* temporaryFile
    const parts: Array<Uint8Array> = []
    for (const spooled of days.values()) {
      if (spooled.pending === "") continue
      const part = Buffer.from(spooled.pending)
      spooled.chunks.push({ offset: end, bytes: part.length })
      spooled.pending = ""
      parts.push(part)
      end += part.length
    }
    pendingCharacters = 0
    yield* files.writeFile(path, Buffer.concat(parts), { flag: "a" })
  })

  const readChunk = ({ bytes, offset }: Chunk) =>
    Effect.flatMap(temporaryFile, (path) =>
      files.stream(path, { offset, bytesToRead: bytes }).pipe(Stream.decodeText("utf8"), Stream.mkString)
    )

  function* decode(text: string, { from, to }: Range): Generator<BookEntry> {
    for (const line of text.split("\n")) {
      const at = Number(line.slice(0, line.indexOf("\t")))
      if (line === "" || at < from || at >= to) continue
      const [, usd = "", promptTokens, completionTokens, model = "", key = "", requestId = ""] = line.split("\t")
      yield {
        key,
        at,
        model: models[Number(model)] ?? "",
        requestId: requestId === "" ? undefined : requestId,
        usd: usd === "" ? undefined : BigInt(usd),
        promptTokens: countOf(promptTokens),
        completionTokens: countOf(completionTokens)
      }
    }
  }

  const read = Effect.fnUntraced(function* (range: Range) {
    const entries: Array<BookEntry> = []
    for (let number = dayOf(range.from); number * day < range.to; number += 1) {
      const { chunks = [], pending = "" } = days.get(number) ?? {}
      for (const chunk of chunks) for (const entry of decode(yield* readChunk(chunk), range)) entries.push(entry)
      for (const entry of decode(pending, range)) entries.push(entry)
    }
    return entries
  }, Effect.mapError(refuse))

  const spanOutside = ({ from, to }: Range): Span | undefined => {
    let outside: Span | undefined
    for (const [number, span] of hours) {
      if (number * hour < from || number * hour >= to) outside = joinSpans(span, outside)
    }
    return outside
  }

  return {
    /** Neither its key nor its request id has a tab or an end of line. */
    add,
    /** To be run now and then while entries are added. */
    makeRoom: Effect.suspend(() =>
      pendingCharacters < mostPendingCharacters ? Effect.void : Effect.mapError(flush, refuse)
    ),
    /** Those of a day come in the order in which they were added. */
    read,
    /** Returns the span of the entries outside a range of whole hours. */
    spanOutside
  }
})
