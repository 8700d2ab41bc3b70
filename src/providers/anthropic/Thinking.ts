import type { ChatRequest } from "../../domain/Chat.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import type { Options } from "./Options.ts"

export type WireThinking =
  | { type: "enabled"; budget_tokens: number }
  | { type: "adaptive"; display: "summarized" }
  | { type: "disabled" }
  | { type: "between_tools" }

export interface ThinkingFields {
  thinking?: WireThinking
  output_config?: { effort: "low" }
}

const leastBudget = 1_024
const leastAnswer = 512

/** Thinking comes out of `max_tokens`: half of it, and what is left has to hold an answer. */
const budget = (maxTokens: number): WireThinking | undefined => {
  if (maxTokens < leastBudget + leastAnswer) return undefined
  const tokens = Math.min(Math.max(Math.floor(maxTokens / 2), leastBudget), maxTokens - leastAnswer)
  return { type: "enabled", budget_tokens: tokens }
}

export const forcesTool = ({ toolChoice, tools }: ChatRequest): boolean =>
  tools.length > 0 && toolChoice !== undefined && toolChoice !== "auto" && toolChoice !== "none"

/** With a budget such a turn must open with its signed thinking, which the chat-completions wire does not carry. */
const goesOn = ({ messages }: ChatRequest): boolean => {
  const last = messages.findLast(({ role }) => role === "assistant")
  return (
    last !== undefined && (last === messages.at(-1) || ("tool_calls" in last && (last.tool_calls ?? []).length > 0))
  )
}

export const thinkingFields = (options: Options, request: ChatRequest): ThinkingFields => {
  const asked = request.reasoningEffort !== undefined
  if (options.thinking === "always") {
    return asked ? { thinking: { type: "adaptive", display: "summarized" } } : { output_config: { effort: "low" } }
  }
  // Models differ in whether they think before a forced tool call, and all take one without thinking.
  const on = asked && !forcesTool(request)
  if (on && options.thinking === "adaptive") return { thinking: { type: "adaptive", display: "summarized" } }
  const thinking = on && !goesOn(request) ? budget(request.maxTokens) : undefined
  if (thinking !== undefined) return { thinking }
  return options.thinking_off === undefined ? {} : { thinking: { type: options.thinking_off } }
}

/** Whether what the model writes is all there is to count: it does not think, or was told not to. */
export const isCountable = ({
  options,
  quirks,
  request
}: Pick<ChatCall<Options, { readonly thinking: boolean }>, "options" | "quirks" | "request">): boolean => {
  const type = quirks.thinking ? thinkingFields(options, request).thinking?.type : undefined
  return options.thinking !== "always" && type !== "enabled" && type !== "adaptive"
}
