import { Effect } from "effect"
import type { Book } from "../services/reconcile/ProviderBooks.ts"
import { type Access, booksClient } from "./BooksClient.ts"
import { bucketReader } from "./Buckets.ts"
import { Reader } from "./Values.ts"

const vendor = "OpenAI"
const hour = 3_600_000

/** `GET /organization/usage/completions` by hour and model, `GET /organization/costs` by day and line item. */
export const openAi = (access: Access): ReadonlyArray<Book> => {
  const read = new Reader(vendor)
  const client = booksClient(vendor, access, (key) => ({ authorization: `Bearer ${key}` }))

  const readBuckets = bucketReader(vendor, client, {
    start: "start_time",
    end: "end_time",
    encode: (millis) => millis / 1000
  })

  const usage: Book = {
    unit: "hour",
    states: ["tokens"],
    finalAfter: hour,
    read: (range) =>
      readBuckets({
        path: "/organization/usage/completions",
        range,
        query: [
          ["bucket_width", "1h"],
          ["group_by", "model"],
          ["limit", 168]
        ],
        toEntry: (result, at) =>
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
      })
  }

  const costs: Book = {
    unit: "day",
    states: ["usd"],
    finalAfter: 24 * hour,
    read: (range) =>
      readBuckets({
        path: "/organization/costs",
        range,
        query: [
          ["bucket_width", "1d"],
          ["group_by", "line_item"],
          ["limit", 31]
        ],
        toEntry: (result, at) =>
          Effect.gen(function* () {
            const amount = yield* read.record(result["amount"], "amount")
            const currency = yield* read.text(amount["currency"], "currency")
            if (currency.toLowerCase() !== "usd") return yield* read.refuse("currency", "usd")
            const item = yield* read.text(result["line_item"] ?? "(no line item)", "line_item")
            const [model = item] = item.split(", ")
            return { key: item, at, model, usd: yield* read.usd(amount["value"], "amount") }
          })
      })
  }
  return [usage, costs]
}
