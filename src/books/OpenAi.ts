import { Effect } from "effect"
import type { Book, BookEntry, BooksUnreadable } from "../services/reconcile/ProviderBooks.ts"
import type { Range } from "../services/telemetry/UsageRanges.ts"
import { type Access, booksClient } from "./BooksClient.ts"
import { nextOf, readPages } from "./Pages.ts"
import { Reader } from "./Values.ts"

const vendor = "OpenAI"
const hour = 3_600_000

/** `GET /organization/usage/completions` by hour and model, `GET /organization/costs` by day and line item. */
export const openAi = (access: Access): ReadonlyArray<Book> => {
  const read = new Reader(vendor)
  const { ask } = booksClient(vendor, access, (key) => ({ authorization: `Bearer ${key}` }))

  const readBuckets = (
    path: string,
    { from, to }: Range,
    query: ReadonlyArray<readonly [string, string | number]>,
    toEntry: (
      result: Readonly<Record<string, unknown>>,
      at: number
    ) => Effect.Effect<BookEntry | undefined, BooksUnreadable>
  ) =>
    readPages(vendor, (cursor) =>
      Effect.gen(function* () {
        const times = [["start_time", from / 1000] as const, ["end_time", to / 1000] as const]
        const page = yield* Effect.flatMap(
          ask({ path, query: [...times, ...query, ...(cursor === undefined ? [] : [["page", cursor] as const])] }),
          (answer) => read.record(answer, path)
        )
        const entries: Array<BookEntry> = []
        for (const one of yield* read.list(page["data"], `${path} data`)) {
          const bucket = yield* read.record(one, `${path} bucket`)
          const at = yield* read.time(bucket["start_time"], `${path} start_time`)
          if (at < from || at >= to) continue
          for (const found of yield* read.list(bucket["results"], `${path} results`)) {
            const entry = yield* toEntry(yield* read.record(found, `${path} result`), at)
            if (entry !== undefined) entries.push(entry)
          }
        }
        return { entries, next: nextOf(page, "next_page") }
      })
    )

  const usage: Book = {
    unit: "hour",
    states: ["tokens"],
    finalAfter: hour,
    read: (range) =>
      readBuckets(
        "/organization/usage/completions",
        range,
        [
          ["bucket_width", "1h"],
          ["group_by", "model"],
          ["limit", 168]
        ],
        (result, at) =>
          Effect.gen(function* () {
            const model = yield* read.text(result["model"] ?? "(no model)", "model")
            return {
              key: model,
              at,
              model,
              promptTokens: yield* read.count(result["input_tokens"], "input_tokens"),
              completionTokens: yield* read.count(result["output_tokens"], "output_tokens")
            }
          })
      )
  }

  const costs: Book = {
    unit: "day",
    states: ["usd"],
    finalAfter: 24 * hour,
    read: (range) =>
      readBuckets(
        "/organization/costs",
        range,
        [
          ["bucket_width", "1d"],
          ["group_by", "line_item"],
          ["limit", 31]
        ],
        (result, at) =>
          Effect.gen(function* () {
            const amount = yield* read.record(result["amount"], "amount")
            const currency = yield* read.text(amount["currency"], "currency")
            if (currency.toLowerCase() !== "usd") return yield* read.refuse("currency", "usd")
            const item = yield* read.text(result["line_item"] ?? "(no line item)", "line_item")
            const [model = item] = item.split(", ")
            return { key: item, at, model, usd: yield* read.usd(amount["value"], "amount") }
          })
      )
  }
  return [usage, costs]
}
