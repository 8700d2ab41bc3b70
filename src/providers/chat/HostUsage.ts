import { Predicate } from "effect"
import type { Unread, Usage } from "../../domain/Chat.ts"
import { asCount, type Fields } from "../client/Json.ts"
import { usageOf } from "./Answer.ts"

/** Hosts' names for prompt tokens that they read from a cache or wrote to one, in the details or beside them. */
const readNames = ["cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens", "cache_read_tokens"]
const writeNames = ["cache_write_tokens", "cache_creation_input_tokens", "cache_creation_tokens"]
/** Objects that divide what was written by how long it is kept. */
const splitNames = ["cache_creation_token_details", "cache_creation"]

const countIn = (names: ReadonlyArray<string>, fields: Fields): number => {
  for (const name of names) {
    const counted = asCount(fields[name])
    if (counted > 0) return counted
  }
  return 0
}

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

const splitIn = (fields: Fields): Fields | undefined => {
  for (const name of splitNames) if (Predicate.isRecord(fields[name])) return fields[name]
  return undefined
}

interface CacheCounts {
  readonly cached: number
  readonly cacheWrite: number
  /** Undefined: the host does not divide what it wrote. */
  readonly cacheWriteHour: number | undefined
}

/** `details` is the object that holds the parts of the prompt. */
export const readCacheCounts = (usage: Fields, details: Fields): CacheCounts => {
  const cached = countIn(readNames, details) || countIn(readNames, usage)
  const named = countIn(writeNames, details) || countIn(writeNames, usage)
  const split = splitIn(details) ?? splitIn(usage)
  const hour = split?.ephemeral_1h_input_tokens ?? details.cache_write_1h_tokens
  const sum = asCount(split?.ephemeral_5m_input_tokens) + asCount(split?.ephemeral_1h_input_tokens)
  return {
    cached,
    cacheWrite: Math.max(named, sum),
    cacheWriteHour: isGiven(hour) ? asCount(hour) : undefined
  }
}

/** The counts of a host: parts may be inside or beside the prompt and the completion. */
export interface HostCounts extends Usage {
  /** The total of prompt and completion; 0: the host gives none. */
  readonly total: number
}

interface Apart {
  /** Cached and written tokens that the host counts beside the prompt. */
  readonly prompt: number
  /** Reasoning that it counts beside the completion. */
  readonly completion: number
  /** Tokens of the total that no part accounts for. */
  readonly unexplained: number
}

/**
 * Finds which parts make up what the total has above the prompt and the completion. A part that is larger than its whole
 * is beside it, whatever the total says. With `isHidden` a part of the prompt that fits into it is inside: the total has
 * more for another cause.
 */
const explain = (counts: HostCounts, isHidden: boolean): Apart => {
  const { cached, cacheWrite, completion, prompt, reasoning, total } = counts
  const inCache = cached + cacheWrite
  const besidePrompt = inCache > prompt ? inCache : 0
  const above = total - prompt - completion
  if (above <= 0) {
    const besideCompletion = total === 0 && reasoning > completion ? reasoning : 0
    return { prompt: besidePrompt, completion: besideCompletion, unexplained: 0 }
  }
  const inPrompt = isHidden ? [besidePrompt] : [0, inCache, cacheWrite, cached]
  for (const ofPrompt of inPrompt) {
    if (prompt + ofPrompt < inCache) continue
    for (const ofCompletion of [0, reasoning]) {
      if (ofPrompt + ofCompletion === above) return { prompt: ofPrompt, completion: ofCompletion, unexplained: 0 }
    }
  }
  return { prompt: besidePrompt, completion: 0, unexplained: Math.max(0, above - besidePrompt) }
}

/**
 * The usage that a host counts. With `isHidden` what its total has above all parts is reasoning, which it counts nowhere
 * else; a count without a prompt has no such rest.
 */
export const readUsage = (counts: HostCounts, isHidden = false): Usage | undefined => {
  const { cached, cacheWrite, cacheWriteHour, completion, prompt, reasoning, webSearches } = counts
  const apart = explain(counts, isHidden)
  const hidden = isHidden && prompt > 0 ? apart.unexplained : 0
  return usageOf({
    prompt: prompt + apart.prompt,
    completion: completion + apart.completion + hidden,
    cached,
    cacheWrite,
    cacheWriteHour,
    reasoning: reasoning + hidden,
    webSearches
  })
}

/** Undefined if the parts of a count explain its total. */
export const unexplainedIn = (counts: HostCounts, isHidden = false): Unread | undefined => {
  const { completion, prompt, total } = counts
  const { unexplained } = explain(counts, isHidden)
  if (unexplained === 0 || (isHidden && prompt > 0)) return undefined
  return {
    part: "usage",
    detail: `${total} tokens in all, ${prompt} of the prompt and ${completion} of the completion`
  }
}
