import { Schema } from "effect"
import type { Usage } from "../../domain/Chat.ts"

const Count = Schema.NullOr(Schema.NumberFromString)

/** What a chat was charged for, by the log; null where it was not counted. */
export const RequestTokens = {
  promptTokens: Count,
  completionTokens: Count,
  cachedTokens: Count,
  cacheWriteTokens: Count,
  /** Of those, the ones kept for an hour. */
  cacheWriteHourTokens: Count,
  reasoningTokens: Count,
  webSearches: Count
}

export const toColumns = (usage: Usage | undefined) => ({
  prompt_tokens: usage?.prompt ?? null,
  completion_tokens: usage?.completion ?? null,
  cached_tokens: usage?.cached ?? null,
  cache_write_tokens: usage?.cacheWrite ?? null,
  cache_write_hour_tokens: usage?.cacheWriteHour ?? null,
  reasoning_tokens: usage?.reasoning ?? null,
  web_searches: usage?.webSearches ?? null
})
