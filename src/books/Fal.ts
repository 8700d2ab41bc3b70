import { Effect, Either } from "effect"
import type { Book, BookEntry } from "../services/reconcile/ProviderBooks.ts"
import { type Access, booksClient } from "./BooksClient.ts"
import { nextOf, readPages } from "./Pages.ts"
import { Reader } from "./Values.ts"

const vendor = "fal"
const nanoDecimals = 9

/** `GET /models/billing-events`: what each request cost, by its id. */
export const fal = (access: Access): ReadonlyArray<Book> => {
  const read = new Reader(vendor)
  const { ask } = booksClient(vendor, access, (key) => ({ authorization: `Key ${key}` }))

  const toEntry = (item: unknown) =>
    Either.gen(function* () {
      const event = yield* read.record(item, "billing event")
      const requestId = yield* read.text(event["request_id"], "request_id")
      const model = yield* read.text(event["endpoint_id"], "endpoint_id")
      const nano = event["cost_estimate_nano_usd"]
      const entry: BookEntry = {
        key: requestId,
        requestId,
        at: yield* read.time(event["timestamp"], "timestamp"),
        model,
        usd:
          nano === undefined || nano === null
            ? yield* read.usd(event["cost_total"], "cost_total")
            : yield* read.usd(nano, "cost_estimate_nano_usd", nanoDecimals)
      }
      return entry
    })

  return [
    {
      unit: "request",
      states: ["usd"],
      finalAfter: 3_600_000,
      read: ({ from, to }) =>
        readPages(vendor, (cursor) =>
          Effect.gen(function* () {
            const page = yield* Effect.flatMap(
              ask({
                path: "/models/billing-events",
                query: [
                  ["start", new Date(from).toISOString()],
                  ["end", new Date(to).toISOString()],
                  ["limit", 1_000],
                  ...(cursor === undefined ? [] : [["cursor", cursor] as const])
                ]
              }),
              (answer) => read.record(answer, "/models/billing-events")
            )
            const events = yield* read.list(page["billing_events"], "billing_events")
            const entries = yield* Either.all(events.map(toEntry))
            return { entries: entries.filter(({ at }) => at >= from && at < to), next: nextOf(page, "next_cursor") }
          })
        )
    }
  ]
}
