import { Effect } from "effect"
import { BooksUnreadable } from "../services/reconcile/ProviderBooks.ts"

interface Page<A> {
  readonly entries: ReadonlyArray<A>
  readonly next: string | undefined
}

const mostPages = 10_000
const mostEntries = 5_000_000

/** All entries of pages that name their next one. */
export const readPages = <A>(
  vendor: string,
  readPage: (cursor: string | undefined) => Effect.Effect<Page<A>, BooksUnreadable>
): Effect.Effect<ReadonlyArray<A>, BooksUnreadable> =>
  Effect.gen(function* () {
    const all: Array<A> = []
    const seen = new Set<string>()
    let cursor: string | undefined
    do {
      const { entries, next }: Page<A> = yield* readPage(cursor)
      for (const entry of entries) all.push(entry)
      if (all.length > mostEntries) {
        return yield* new BooksUnreadable({
          message: `${vendor}: it lists more than can be compared at once: begin later.`
        })
      }
      if (next !== undefined && (seen.has(next) || seen.size >= mostPages)) {
        return yield* new BooksUnreadable({ message: `${vendor}: its pages do not end.` })
      }
      if (next !== undefined) seen.add(next)
      cursor = next
    } while (cursor !== undefined)
    return all
  })

/** Where the next page of `has_more` and `next_page` is. */
export const nextOf = (page: Readonly<Record<string, unknown>>, name: string): string | undefined => {
  const next = page[name]
  return page["has_more"] !== false && typeof next === "string" && next !== "" ? next : undefined
}
