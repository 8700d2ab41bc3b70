import { Clock, Effect } from "effect"
import { type Book, type BookEntry, BooksUnreadable } from "../services/reconcile/ProviderBooks.ts"
import { type Access, booksClient } from "./BooksClient.ts"
import { Reader } from "./Values.ts"

const vendor = "OpenRouter"
const day = 86_400_000
const keptDays = 30

/** `GET /activity`: each of the last 30 completed UTC days by model and endpoint. */
export const openRouter = (access: Access): ReadonlyArray<Book> => {
  const read = new Reader(vendor)
  const { ask } = booksClient(vendor, access, (key) => ({ authorization: `Bearer ${key}` }))

  const toEntry = Effect.fnUntraced(function* (item: unknown) {
    const found = yield* read.record(item, "activity")
    const date = yield* read.text(found["date"], "date")
    const model = yield* read.text(found["model"], "model")
    const entry: BookEntry = {
      key: JSON.stringify([model, found["endpoint_id"] ?? null, found["provider_name"] ?? null]),
      at: yield* read.time(date.slice(0, 10), "date"),
      model,
      usd: yield* read.usd(found["usage"], "usage"),
      promptTokens: yield* read.count(found["prompt_tokens"], "prompt_tokens"),
      completionTokens: yield* read.count(found["completion_tokens"], "completion_tokens")
    }
    return entry
  })

  const readDay = (at: number) =>
    Effect.gen(function* () {
      const date = new Date(at).toISOString().slice(0, 10)
      const answer = yield* Effect.flatMap(ask({ path: "/activity", query: [["date", date]] }), (answer) =>
        read.record(answer, "/activity")
      )
      const entries = yield* Effect.forEach(yield* read.list(answer["data"], "data"), toEntry)
      return entries.filter((entry) => entry.at === at)
    })

  return [
    {
      unit: "day",
      states: ["tokens", "usd"],
      finalAfter: 3_600_000,
      read: ({ from, to }) =>
        Effect.gen(function* () {
          const today = Math.floor((yield* Clock.currentTimeMillis) / day) * day
          const oldest = today - keptDays * day
          if (from < oldest) {
            const since = new Date(oldest).toISOString().slice(0, 10)
            const message = `${vendor} lists its last ${keptDays} days only: begin with --since ${since}.`
            return yield* new BooksUnreadable({ message })
          }
          const days = Array.from({ length: Math.max(0, (Math.min(to, today) - from) / day) }, (_, n) => from + n * day)
          return (yield* Effect.forEach(days, readDay)).flat()
        })
    }
  ]
}
