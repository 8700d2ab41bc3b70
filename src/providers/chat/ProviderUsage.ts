import { Predicate } from "effect"
import type { UnknownPart, Usage } from "../../domain/Chat.ts"
import { asCount, type Fields } from "../client/JsonFields.ts"
import { usageOf } from "./AnswerReaders.ts"

/** Providers' names for prompt tokens read from or written to a cache, in the details or beside them. */
const cacheReadFields = ["cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "cache_read_tokens"]
const cacheWriteFields = ["cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens"]
/** Fields that divide cache writes by lifetime. */
const cacheSplitFields = ["cache_creation_token_details", "cache_creation"]

const findCount = (names: ReadonlyArray<string>, fields: Fields): number => {
  for (const name of names) {
    const count = asCount(fields[name])
    if (count > 0) return count
  }
  return 0
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null

const findSplit = (fields: Fields): Fields | undefined => {
  for (const name of cacheSplitFields) if (Predicate.isRecord(fields[name])) return fields[name]
  return undefined
}

interface CacheCounts {
  readonly cached: number
  readonly cacheWrite: number
  /** Undefined if the provider does not divide cache writes by lifetime. */
  readonly cacheWriteHour: number | undefined
}

/** `details` is the provider's object with the parts of the prompt count. */
export const readCacheCounts = (usage: Fields, details: Fields): CacheCounts => {
  const cached = findCount(cacheReadFields, details) || findCount(cacheReadFields, usage)
  const cacheWrites = findCount(cacheWriteFields, details) || findCount(cacheWriteFields, usage)
  const writesByLifetime = findSplit(details) ?? findSplit(usage)
  const hourWrites = writesByLifetime?.ephemeral_1h_input_tokens ?? details.cache_write_1h_tokens
  const writeSum =
    asCount(writesByLifetime?.ephemeral_5m_input_tokens) + asCount(writesByLifetime?.ephemeral_1h_input_tokens)
  return {
    cached,
    cacheWrite: Math.max(cacheWrites, writeSum),
    cacheWriteHour: isPresent(hourWrites) ? asCount(hourWrites) : undefined
  }
}

/** The counts that a provider reports. Prompt and completion may exclude cache tokens and reasoning. */
export interface ProviderCounts extends Usage {
  /** The total of prompt and completion, or 0 if the provider reports none. */
  readonly total: number
}

interface ExtraCounts {
  /** Cache reads and writes that the prompt count excludes. */
  readonly prompt: number
  /** Reasoning that the completion count excludes. */
  readonly completion: number
  /** Tokens of the total that no part explains. */
  readonly unexplained: number
}

/**
 * Some providers exclude cache tokens or reasoning from the prompt and completion counts. Returns the excluded parts:
 * those whose sum is the excess of the total, and any part larger than its count. With `hasHiddenReasoning`, reasoning
 * explains the excess, so the prompt includes cache tokens that don't exceed it.
 */
const findExtraCounts = (counts: ProviderCounts, hasHiddenReasoning: boolean): ExtraCounts => {
  const { cached, cacheWrite, completion, prompt, reasoning, total } = counts
  const cacheTokens = cached + cacheWrite
  const outsidePrompt = cacheTokens > prompt ? cacheTokens : 0
  const excess = total - prompt - completion
  if (excess <= 0) {
    const outsideCompletion = total === 0 && reasoning > completion ? reasoning : 0
    return { prompt: outsidePrompt, completion: outsideCompletion, unexplained: 0 }
  }
  const promptExtras = hasHiddenReasoning ? [outsidePrompt] : [0, cacheTokens, cacheWrite, cached]
  for (const promptExtra of promptExtras) {
    if (prompt + promptExtra < cacheTokens) continue
    for (const completionExtra of [0, reasoning]) {
      if (promptExtra + completionExtra === excess)
        return { prompt: promptExtra, completion: completionExtra, unexplained: 0 }
    }
  }
  return { prompt: outsidePrompt, completion: 0, unexplained: Math.max(0, excess - outsidePrompt) }
}

/**
 * Returns the usage that a provider counts. With `hasHiddenReasoning`, the unexplained rest of the total is reasoning,
 * unless the prompt count is zero.
 */
export const readUsage = (counts: ProviderCounts, hasHiddenReasoning = false): Usage | undefined => {
  const { cached, cacheWrite, cacheWriteHour, completion, prompt, reasoning, webSearches } = counts
  const extra = findExtraCounts(counts, hasHiddenReasoning)
  const hiddenReasoning = hasHiddenReasoning && prompt > 0 ? extra.unexplained : 0
  return usageOf({
    prompt: prompt + extra.prompt,
    completion: completion + extra.completion + hiddenReasoning,
    cached,
    cacheWrite,
    cacheWriteHour,
    reasoning: reasoning + hiddenReasoning,
    webSearches
  })
}

/** Describes a total that the parts don't explain. Undefined if they explain it. */
export const findUnexplained = (counts: ProviderCounts, hasHiddenReasoning = false): UnknownPart | undefined => {
  const { completion, prompt, total } = counts
  const { unexplained } = findExtraCounts(counts, hasHiddenReasoning)
  if (unexplained === 0 || (hasHiddenReasoning && prompt > 0)) return undefined
  return {
    part: "usage",
    detail: `${total} total tokens, but ${prompt} prompt tokens and ${completion} completion tokens`
  }
}
