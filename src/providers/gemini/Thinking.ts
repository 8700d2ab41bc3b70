import type { ChatRequest } from "../../domain/Chat.ts"
import type { ReasoningEffort } from "../../domain/Model.ts"
import type { Options } from "./Options.ts"

export interface WireThinking {
  includeThoughts?: boolean
  thinkingLevel?: "LOW" | "MEDIUM" | "HIGH"
  thinkingBudget?: number
}

const levels = { low: "LOW", medium: "MEDIUM", high: "HIGH", xhigh: "HIGH" } as const

/** In tokens, as the host's own endpoint for OpenAI's clients has them. */
const budgets: Readonly<Record<ReasoningEffort, number>> = { low: 1_024, medium: 8_192, high: 24_576, xhigh: 24_576 }
const leastBudget = 512

/** Thoughts count as output: half of what a request may put out is left for the answer itself. */
const budgetOf = (effort: ReasoningEffort, maxTokens: number): number => {
  const budget = Math.min(budgets[effort], Math.floor(maxTokens / 2))
  return budget < leastBudget ? 0 : budget
}

/** Gemini 3 thinks by levels, asked or not; Gemini 2.5 has a budget. A host refuses both in one request. */
export const encodeThinking = (request: ChatRequest, { thinking = "level" }: Options): WireThinking | undefined => {
  const effort = request.reasoningEffort
  if (thinking === "none") return undefined
  if (thinking === "level") {
    return effort === undefined ? { includeThoughts: true } : { includeThoughts: true, thinkingLevel: levels[effort] }
  }
  if (effort === undefined) return undefined
  const thinkingBudget = budgetOf(effort, request.maxTokens)
  return thinkingBudget === 0 ? { thinkingBudget } : { includeThoughts: true, thinkingBudget }
}
