import { Effect } from "effect"
import type { Book, BookEntry, BooksUnreadable } from "../services/reconcile/ProviderBooks.ts"
import type { Range } from "../services/telemetry/UsageRanges.ts"
import { type Access, booksClient } from "./BooksClient.ts"
import { nextOf, readPages } from "./Pages.ts"
import { Reader } from "./Values.ts"

const vendor = "Anthropic"
const hour = 3_600_000
const cents = 2

type Result = Readonly<Record<string, unknown>>

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
  const { ask } = booksClient(vendor, access, (key) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }))

  const readBuckets = (
    path: string,
    { from, to }: Range,
    query: ReadonlyArray<readonly [string, string | number]>,
    toEntry: (result: Result, at: number) => Effect.Effect<BookEntry, BooksUnreadable>
  ) =>
    readPages(vendor, (cursor) =>
      Effect.gen(function* () {
        const times = [
          ["starting_at", new Date(from).toISOString()] as const,
          ["ending_at", new Date(to).toISOString()] as const
        ]
        const page = yield* Effect.flatMap(
          ask({ path, query: [...times, ...query, ...(cursor === undefined ? [] : [["page", cursor] as const])] }),
          (answer) => read.record(answer, path)
        )
        const entries: Array<BookEntry> = []
        for (const one of yield* read.list(page["data"], `${path} data`)) {
          const bucket = yield* read.record(one, `${path} bucket`)
          const at = yield* read.time(bucket["starting_at"], `${path} starting_at`)
          if (at < from || at >= to) continue
          for (const found of yield* read.list(bucket["results"], `${path} results`)) {
            entries.push(yield* toEntry(yield* read.record(found, `${path} result`), at))
          }
        }
        return { entries, next: nextOf(page, "next_page") }
      })
    )

  const promptTokensOf = Effect.fnUntraced(function* (result: Result) {
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
      readBuckets(
        "/v1/organizations/usage_report/messages",
        range,
        [
          ["bucket_width", "1h"],
          ["group_by[]", "model"],
          ["limit", 168]
        ],
        (result, at) =>
          Effect.gen(function* () {
            const model = yield* read.text(result["model"] ?? "(no model)", "model")
            const promptTokens = yield* promptTokensOf(result)
            const completionTokens = yield* read.count(result["output_tokens"], "output_tokens")
            return { key: model, at, model, promptTokens, completionTokens }
          })
      )
  }

  const costs: Book = {
    unit: "day",
    states: ["usd"],
    finalAfter: 24 * hour,
    read: (range) =>
      readBuckets(
        "/v1/organizations/cost_report",
        range,
        [
          ["bucket_width", "1d"],
          ["group_by[]", "description"],
          ["limit", 31]
        ],
        (result, at) =>
          Effect.gen(function* () {
            if (result["currency"] !== "USD") return yield* read.refuse("currency", "USD")
            const model = yield* read.text(result["model"] ?? result["description"] ?? "(no description)", "model")
            const usd = yield* read.usd(result["amount"], "amount", cents)
            return { key: JSON.stringify(dimensions.map((name) => result[name] ?? null)), at, model, usd }
          })
      )
  }
  return [usage, costs]
}
