// Read by the console too: it imports nothing but types.
import type { Usage } from "../../domain/Chat.ts"

/** What a request used: a chat tokens and searches, and pictures and clips these. */
export interface RequestUsage extends Partial<Omit<Usage, "statedCost">> {
  readonly images?: number | undefined
  /** Of the clip. */
  readonly seconds?: number | undefined
}

interface Count<Name extends string, Source extends keyof RequestUsage> {
  /** On the wire. */
  readonly name: Name
  /** Where its value comes from. */
  readonly usage: Source
  readonly title: string
  readonly unit: "tokens" | "searches" | "images" | "seconds"
  /** The column whose value includes it. */
  readonly partOf?: string
  /** `sums`: customers see it of a request, and summed; `request`: of a request only. */
  readonly customers: "sums" | "request" | "nothing"
  /** What customers are told. */
  readonly description?: string
  /** Whether the operators' reports of usage have a column of it; their JSON has each. */
  readonly isReported?: boolean
}

const count = <const Name extends string, const Source extends keyof RequestUsage>(column: Count<Name, Source>) =>
  column

/** What a request counts, by the columns of `request_log` and of `usage_totals`; null where it was not counted. */
export const requestCounts = {
  prompt_tokens: count({
    name: "prompt_tokens",
    usage: "prompt",
    title: "Prompt tokens",
    unit: "tokens",
    customers: "sums",
    description: "Of chats.",
    isReported: true
  }),
  completion_tokens: count({
    name: "completion_tokens",
    usage: "completion",
    title: "Completion tokens",
    unit: "tokens",
    customers: "sums",
    description: "Of chats.",
    isReported: true
  }),
  cached_tokens: count({
    name: "cached_tokens",
    usage: "cached",
    title: "Cached tokens",
    unit: "tokens",
    partOf: "prompt_tokens",
    customers: "sums",
    description: "Of `prompt_tokens`, those that a provider read from its cache."
  }),
  cache_write_tokens: count({
    name: "cache_write_tokens",
    usage: "cacheWrite",
    title: "Cache-write tokens",
    unit: "tokens",
    partOf: "prompt_tokens",
    customers: "sums",
    description: "Prompt tokens written to the providers' caches."
  }),
  cache_write_hour_tokens: count({
    name: "cache_write_1h_tokens",
    usage: "cacheWriteHour",
    title: "One-hour cache-write tokens",
    unit: "tokens",
    partOf: "cache_write_tokens",
    customers: "request",
    description: "Of those written, the ones kept for an hour."
  }),
  reasoning_tokens: count({
    name: "reasoning_tokens",
    usage: "reasoning",
    title: "Reasoning tokens",
    unit: "tokens",
    partOf: "completion_tokens",
    customers: "request"
  }),
  web_searches: count({
    name: "web_searches",
    usage: "webSearches",
    title: "Web searches",
    unit: "searches",
    customers: "sums",
    description: "Those that are charged."
  }),
  images: count({
    name: "images",
    usage: "images",
    title: "Images",
    unit: "images",
    customers: "sums",
    description: "Pictures made.",
    isReported: true
  }),
  seconds: count({
    name: "seconds",
    usage: "seconds",
    title: "Seconds of video",
    unit: "seconds",
    customers: "sums",
    description: "Length of the clips that were charged.",
    isReported: true
  })
}

type CountColumn = keyof typeof requestCounts
export type RequestCount = (typeof requestCounts)[CountColumn]

const counts: ReadonlyArray<RequestCount> = Object.values(requestCounts)

export const customerCounts = counts.filter(({ customers }) => customers !== "nothing")
export const customerSums = counts.filter(({ customers }) => customers === "sums")
export const reportedCounts = counts.filter(({ isReported = false }) => isReported)
/** Those of a chat: a provider that counts its tokens leaves out kinds that there were none of. */
export const isOfChat = ({ unit }: RequestCount): boolean => unit === "tokens" || unit === "searches"
export const tokenCounts = counts.filter(({ unit }) => unit === "tokens")

/** Each followed by its parts. */
export const countsByWhole = (whole?: string): ReadonlyArray<RequestCount> =>
  Object.entries(requestCounts).flatMap(([column, count]) =>
    count.partOf === whole ? [count, ...countsByWhole(column)] : []
  )
