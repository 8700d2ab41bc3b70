import type { ChatAnswer, ChatEvent, Usage } from "../../src/domain/Chat.ts"
import { SseEncoder } from "../../src/http/chat/ChatAnswer.ts"

export const usage: Usage = { prompt: 12, completion: 7, cached: 4, cacheWrite: 1, reasoning: 3 }
export const wireUsage = {
  prompt_tokens: 12,
  completion_tokens: 7,
  total_tokens: 19,
  prompt_tokens_details: { cached_tokens: 4 },
  completion_tokens_details: { reasoning_tokens: 3 }
}

export const name = { id: "chatcmpl-1", created: 1_700_000_000, model: "m-1" }
export const encoder = (includeUsage: boolean) => new SseEncoder({ ...name, includeUsage })

export const content = (text: string): ChatEvent => ({ type: "content", text })
export const reasoning = (text: string): ChatEvent => ({ type: "reasoning", text })
export const stop: ChatEvent = { type: "finish", reason: "stop" }

export const toolEvents: ReadonlyArray<ChatEvent> = [
  { type: "tool_call", index: 0, id: "call_a", name: "weather", arguments: "" },
  { type: "tool_call", index: 0, arguments: '{"city":' },
  { type: "tool_call", index: 0, arguments: '"Wien"}' },
  { type: "tool_call", index: 1, id: "call_b", name: "time", arguments: "{}" },
  { type: "finish", reason: "tool_calls" },
  { type: "usage", usage }
]

export const spokenAnswer: ChatAnswer = {
  content: "Servus",
  reasoning: undefined,
  toolCalls: [],
  finish: "stop",
  usage
}
export const callingAnswer: ChatAnswer = {
  content: "",
  reasoning: "Which city?",
  toolCalls: [{ id: "call_a", type: "function", function: { name: "weather", arguments: '{"city":"Wien"}' } }],
  finish: "tool_calls",
  usage: undefined
}
