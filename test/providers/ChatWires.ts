import type { ChatWire } from "../contracts/ChatHosts.ts"
import { anthropic } from "./anthropic/Wire.ts"
import { gemini } from "./gemini/Wire.ts"
import { openAiChat } from "./openai-chat/Wire.ts"
import { openAiResponses } from "./openai-responses/Wire.ts"

/** All chat wires. Each is tested against the contract and with clients of every dialect. */
export const chatWires: ReadonlyArray<ChatWire> = [openAiChat, openAiResponses, gemini, anthropic]
