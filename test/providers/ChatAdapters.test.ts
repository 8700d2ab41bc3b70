import { chatAdapterContract } from "../contracts/ChatAdapter.ts"
import { harnesses } from "../contracts/ChatHosts.ts"
import { anthropic } from "./anthropic/Wire.ts"
import { gemini } from "./gemini/Wire.ts"
import { openAiChat } from "./openai-chat/Wire.ts"
import { openAiResponses } from "./openai-responses/Wire.ts"

for (const wire of [openAiChat, openAiResponses, gemini, anthropic]) harnesses(wire).forEach(chatAdapterContract)
