import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { APICallError, type LanguageModelUsage } from "ai"
import { Effect } from "effect"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { costOf, model } from "./SandboxChat.ts"

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

export const callError = (error: unknown): APICallError => {
  if (!APICallError.isInstance(error)) throw new Error("it is no APICallError", { cause: error })
  return error
}
