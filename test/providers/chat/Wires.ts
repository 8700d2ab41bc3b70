import { rules as anthropic } from "../../../src/providers/anthropic/AnthropicRequest.ts"
import { rules as gemini } from "../../../src/providers/gemini/GeminiRequest.ts"
import { rules as openAiChat } from "../../../src/providers/openai-chat/OpenAiChatRequest.ts"
import { rules as openAiResponses } from "../../../src/providers/openai-responses/ResponsesRequest.ts"

/** The rules of each wire without options. */
export const wireRules = [
  ["openai-chat", openAiChat],
  ["openai-responses", openAiResponses],
  ["anthropic", anthropic],
  ["gemini", gemini]
] as const
