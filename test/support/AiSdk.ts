import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import type { LanguageModelUsage } from "ai"
import { Effect } from "effect"
import { costOf, model } from "./SandboxChat.ts"
import * as Served from "./ServedGateway.ts"

/** A customer with the AI SDK's provider for hosts of the convention. */
export const customer = Effect.fnUntraced(function* (options: Parameters<typeof Served.customer>[0] = {}) {
  const account = yield* Served.customer(options)
  const provider = createOpenAICompatible({
    name: "gateway",
    baseURL: account.baseUrl,
    apiKey: account.secret,
    includeUsage: true,
    supportsStructuredOutputs: true
  })
  return { ...account, provider, model: provider(model) }
})

/** What the usage costs, in nano-USD. */
export const usageCost = ({ inputTokens, outputTokens }: LanguageModelUsage): bigint =>
  costOf(inputTokens, outputTokens)
