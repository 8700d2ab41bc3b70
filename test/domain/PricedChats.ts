import type { ChatRequest, Message } from "../../src/domain/Chat.ts"
import type { ChatModel, ChatPricing } from "../../src/domain/Model.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import * as Pricing from "../../src/domain/Pricing.ts"

export const usd = (nano: number | bigint) => NanoUsd(BigInt(nano))

export const flat: ChatPricing = {
  prompt: usd(1_500_000_000),
  completion: usd(7_500_000_000),
  cachedPrompt: usd(150_000_000),
  cacheWrite: undefined,
  longContext: undefined
}

export const tiered: ChatPricing = {
  ...flat,
  cacheWrite: usd(1_875_000_000),
  longContext: { above: 200_000, prompt: usd(3_000_000_000), completion: usd(11_250_000_000) }
}

export const agents: ChatPricing = { ...tiered, cacheWriteHour: usd(3_000_000_000), webSearch: usd(10_000_000_000) }

export const chatModel = (over: Partial<ChatModel> = {}): ChatModel => ({
  id: "m",
  surface: "chat",
  created: 0,
  routes: [],
  family: "A",
  contextLength: 1_048_576,
  maxOutput: 65_536,
  maxOutputPolicy: "clamp",
  sampling: true,
  reasoning: "none",
  capabilities: new Set(["tools", "vision", "web_search"]),
  pricing: flat,
  official: undefined,
  imageTokens: 2500,
  webSearchTokens: 10_000,
  maxWebSearches: 10,
  ...over
})

export const request = (messages: ReadonlyArray<Message>, over: Partial<ChatRequest> = {}): ChatRequest => ({
  model: "m",
  messages,
  stream: false,
  includeUsage: false,
  maxTokens: 100,
  stop: [],
  tools: [],
  webSearch: false,
  ...over
})

export const bound = (messages: ReadonlyArray<Message>, over: Partial<ChatRequest> = {}) =>
  Pricing.promptBound(chatModel(), request(messages, over))
export const user = (content: string): Message => ({ role: "user", content })
