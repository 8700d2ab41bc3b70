import { Effect } from "effect"
import type { BookEntry, BooksUnreadable } from "../services/reconcile/ProviderBooks.ts"
import type { Range } from "../services/telemetry/UsageRanges.ts"
import type { BooksClient, BooksQuery } from "./BooksClient.ts"
import { nextOf, readPages } from "./Pages.ts"
import { Reader } from "./Values.ts"

/** How a vendor names and writes the bounds of time. */
interface TimeBounds {
  readonly start: string
  readonly end: string
  readonly encode: (millis: number) => string | number
}

export type BucketResult = Readonly<Record<string, unknown>>

interface BucketRequest {
  readonly path: string
  readonly range: Range
  readonly query: BooksQuery
  readonly toEntry: (result: BucketResult, at: number) => Effect.Effect<BookEntry, BooksUnreadable>
}

/** Reads books that are pages of buckets of time, each with its results. */
export const bucketReader = (vendor: string, { ask }: BooksClient, { encode, end, start }: TimeBounds) => {
  const read = new Reader(vendor)
  return ({ path, query, range: { from, to }, toEntry }: BucketRequest) => {
    const bounded: BooksQuery = [[start, encode(from)], [end, encode(to)], ...query]
    return readPages(vendor, (cursor) =>
      Effect.gen(function* () {
        const answer = yield* ask({ path, query: cursor === undefined ? bounded : [...bounded, ["page", cursor]] })
        const page = yield* read.record(answer, path)
        const entries: Array<BookEntry> = []
        for (const one of yield* read.list(page["data"], `${path} data`)) {
          const bucket = yield* read.record(one, `${path} bucket`)
          const at = yield* read.time(bucket[start], `${path} ${start}`)
          if (at < from || at >= to) continue
          for (const found of yield* read.list(bucket["results"], `${path} results`)) {
            entries.push(yield* toEntry(yield* read.record(found, `${path} result`), at))
          }
        }
        return { entries, next: nextOf(page, "next_page") }
      })
    )
  }
}
