// The console imports this file, so it imports only types.
import type { Usage } from "../../domain/Chat.ts"

/** The usage of a request: tokens and searches of a chat, images, or seconds of video. */
export interface RequestUsage extends Partial<Omit<Usage, "statedCost">> {
  readonly images?: number | undefined
  readonly seconds?: number | undefined
}

interface Count<Name extends string, Source extends keyof RequestUsage> {
  /** The name in the API. */
  readonly name: Name
  /** The field of `RequestUsage` with the count. */
  readonly usage: Source
  readonly title: string
  readonly unit: "tokens" | "searches" | "images" | "seconds"
  /** The column whose value includes this count. */
  readonly partOf?: string
  /** `sums`: customers see it for a request and in sums. `request`: for a request only. */
  readonly customers: "sums" | "request" | "nothing"
  /** Shown to customers in the API reference. */
  readonly description?: string
  /** Usage reports of operators have a column for it. Their JSON has all counts. */
  readonly isReported?: boolean
}

const defineCount = <const Name extends string, const Source extends keyof RequestUsage>(column: Count<Name, Source>) =>
  column

/** Counts of a request, keyed by column of `request_log` and `usage_totals`. Null means not counted. */
export const requestCounts = {
  prompt_tokens: defineCount({
    name: "prompt_tokens",
    usage: "prompt",
    title: "Prompt tokens",
    unit: "tokens",
    customers: "sums",
    description: "The prompt tokens of chat requests.",
    isReported: true
  }),
  completion_tokens: defineCount({
    name: "completion_tokens",
    usage: "completion",
    title: "Completion tokens",
    unit: "tokens",
    customers: "sums",
    description: "The completion tokens of chat requests.",
    isReported: true
  }),
  cached_tokens: defineCount({
    name: "cached_tokens",
    usage: "cached",
    title: "Cached tokens",
    unit: "tokens",
    partOf: "prompt_tokens",
    customers: "sums",
    description: "The part of `prompt_tokens` that providers read from their caches."
  }),
  cache_write_tokens: defineCount({
    name: "cache_write_tokens",
    usage: "cacheWrite",
    title: "Cache-write tokens",
    unit: "tokens",
    partOf: "prompt_tokens",
    customers: "sums",
    description: "Prompt tokens written to the providers' caches."
  }),
  cache_write_hour_tokens: defineCount({
    name: "cache_write_1h_tokens",
    usage: "cacheWriteHour",
    title: "One-hour cache-write tokens",
    unit: "tokens",
    partOf: "cache_write_tokens",
    customers: "request",
    description: "The part of the written tokens that is cached for an hour."
  }),
  reasoning_tokens: defineCount({
    name: "reasoning_tokens",
    usage: "reasoning",
    title: "Reasoning tokens",
    unit: "tokens",
    partOf: "completion_tokens",
    customers: "request"
  }),
  web_searches: defineCount({
    name: "web_searches",
    usage: "webSearches",
    title: "Web searches",
    unit: "searches",
    customers: "sums",
    description: "The charged web searches."
  }),
  images: defineCount({
    name: "images",
    usage: "images",
    title: "Images",
    unit: "images",
    customers: "sums",
    description: "The generated images.",
    isReported: true
  }),
  seconds: defineCount({
    name: "seconds",
    usage: "seconds",
    title: "Seconds of video",
    unit: "seconds",
    customers: "sums",
    description: "The total length of charged videos.",
    isReported: true
  })
}

type CountColumn = keyof typeof requestCounts
export type RequestCount = (typeof requestCounts)[CountColumn]

const counts: ReadonlyArray<RequestCount> = Object.values(requestCounts)

export const customerCounts = counts.filter(({ customers }) => customers !== "nothing")
export const customerSums = counts.filter(({ customers }) => customers === "sums")
export const reportedCounts = counts.filter(({ isReported = false }) => isReported)
/** Returns whether the count belongs to chat requests. Providers omit such counts if they are zero. */
export const isOfChat = ({ unit }: RequestCount): boolean => unit === "tokens" || unit === "searches"
export const tokenCounts = counts.filter(({ unit }) => unit === "tokens")

/** Returns the counts, each followed by its parts. */
export const countsByParent = (parent?: string): ReadonlyArray<RequestCount> =>
  Object.entries(requestCounts).flatMap(([column, count]) =>
    count.partOf === parent ? [count, ...countsByParent(column)] : []
  )
