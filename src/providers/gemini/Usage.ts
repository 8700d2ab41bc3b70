import type { Unread, Usage } from "../../domain/Chat.ts"
import { usageOf } from "../chat/Answer.ts"
import { unexplainedIn } from "../chat/HostUsage.ts"
import { asCount, asFields, asList, asText } from "../client/Json.ts"
import type { Options } from "./Options.ts"

/** Each query once, however often the model repeats it. */
export const queriesOf = (candidate: unknown): ReadonlyArray<string> =>
  asList(asFields(asFields(candidate).groundingMetadata).webSearchQueries).flatMap((query) => asText(query) || [])

export const countSearches = (queries: ReadonlySet<string>, { search_fee: fee = "search" }: Options): number =>
  fee === "request" ? Math.min(queries.size, 1) : queries.size

/** Thoughts are counted beside the answer, search results beside the prompt. */
const countsIn = (meta: unknown, webSearches: number) => {
  const counts = asFields(meta)
  const reasoning = asCount(counts.thoughtsTokenCount)
  return {
    prompt: asCount(counts.promptTokenCount) + asCount(counts.toolUsePromptTokenCount),
    completion: asCount(counts.candidatesTokenCount) + reasoning,
    cached: asCount(counts.cachedContentTokenCount),
    cacheWrite: 0,
    reasoning,
    webSearches
  }
}

export const decodeUsage = (meta: unknown, webSearches: number): Usage | undefined =>
  usageOf(countsIn(meta, webSearches))

/** The tokens that the counts of an ended answer do not explain. */
export const unexplainedUsage = (meta: unknown): Unread | undefined => {
  const whole = { ...countsIn(meta, 0), cached: 0, reasoning: 0 }
  return unexplainedIn({ ...whole, total: asCount(asFields(meta).totalTokenCount) })
}
