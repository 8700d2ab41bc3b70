import { Effect } from "effect"
import type { Book } from "../services/reconcile/ProviderBooks.ts"
import { type Access, booksClient } from "./BooksClient.ts"
import { type BucketResult, bucketReader } from "./Buckets.ts"
import { Reader } from "./Values.ts"

const vendor = "Anthropic"
const hour = 3_600_000
const cents = 2

/** What tells one line of a day's costs from another. */
const dimensions = [
  "description",
  "model",
  "token_type",
  "cost_type",
  "context_window",
  "service_tier",
  "inference_geo"
]

/** `GET /v1/organizations/usage_report/messages` by hour and model, `GET /v1/organizations/cost_report` by day. */
export const anthropic = (access: Access): ReadonlyArray<Book> => {
  const read = new Reader(vendor)
  const client = booksClient(vendor, access, (key) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }))

  const readBuckets = bucketReader(vendor, client, {
    start: "starting_at",
    end: "ending_at",
    encode: (millis) => new Date(millis).toISOString()
  })

  const promptTokensOf = Effect.fnUntraced(function* (result: BucketResult) {
    const written = yield* read.record(result["cache_creation"] ?? {}, "cache_creation")
    const parts = [
      yield* read.count(result["uncached_input_tokens"], "uncached_input_tokens"),
      yield* read.count(result["cache_read_input_tokens"], "cache_read_input_tokens"),
      yield* read.count(written["ephemeral_5m_input_tokens"], "ephemeral_5m_input_tokens"),
      yield* read.count(written["ephemeral_1h_input_tokens"], "ephemeral_1h_input_tokens")
    ]
    return parts.reduce((sum, part) => sum + part, 0)
  })

  const usage: Book = {
    unit: "hour",
    states: ["tokens"],
    finalAfter: hour,
    read: (range) =>
      readBuckets({
        path: "/v1/organizations/usage_report/messages",
        range,
        query: [
          ["bucket_width", "1h"],
          ["group_by[]", "model"],
          ["limit", 168]
        ],
        toEntry: (result, at) =>
          Effect.gen(function* () {
            const model = yield* read.text(result["model"] ?? "(no model)", "model")
            const promptTokens = yield* promptTokensOf(result)
            const completionTokens = yield* read.count(result["output_tokens"], "output_tokens")
            return { key: model, at, model, promptTokens, completionTokens }
          })
      })
  }

  const costs: Book = {
    unit: "day",
    states: ["usd"],
    finalAfter: 24 * hour,
    read: (range) =>
      readBuckets({
        path: "/v1/organizations/cost_report",
        range,
        query: [
          ["bucket_width", "1d"],
          ["group_by[]", "description"],
          ["limit", 31]
        ],
        toEntry: (result, at) =>
          Effect.gen(function* () {
            if (result["currency"] !== "USD") return yield* read.refuse("currency", "USD")
            const model = yield* read.text(result["model"] ?? result["description"] ?? "(no description)", "model")
            const usd = yield* read.usd(result["amount"], "amount", cents)
            return { key: JSON.stringify(dimensions.map((name) => result[name] ?? null)), at, model, usd }
          })
      })
  }
  return [usage, costs]
}
