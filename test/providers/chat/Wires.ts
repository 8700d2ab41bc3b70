import { rules as anthropic } from "../../../src/providers/anthropic/AnthropicRequest.ts"
import { openAiRules } from "../../../src/providers/chat/WireRules.ts"
import { rules as gemini } from "../../../src/providers/gemini/GeminiRequest.ts"
import { rules as openAiChat } from "../../../src/providers/openai-chat/OpenAiChatRequest.ts"

/** The rules of each wire without options. */
export const wireRules = [
  ["openai-chat", openAiChat],
  ["openai-responses", openAiRules],
  ["anthropic", anthropic],
  ["gemini", gemini]
] as const
