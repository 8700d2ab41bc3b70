import { type Context, Effect } from "effect"
import type { ChatRequest, Usage } from "../domain/Chat.ts"
import type { ChatModel } from "../domain/Model.ts"
import * as Pricing from "../domain/Pricing.ts"
import type { Tokens } from "./Tokens.ts"

/** What the provider reported; where it reported nothing, or nothing beside text it sent, our own count. */
export const usageOf = Effect.fnUntraced(function* (
  tokens: Context.Tag.Service<Tokens>,
  { model, request }: { readonly model: ChatModel; readonly request: ChatRequest },
  { produced, reported }: { readonly reported: Usage | undefined; readonly produced: string }
) {
  const usage = reported === undefined ? Pricing.noUsage : Pricing.sanitizeUsage(reported)
  const countPrompt = usage.prompt === 0
  const countCompletion = usage.completion === 0 && produced !== ""
  if (!countPrompt && !countCompletion) return { usage, estimated: false }
  const prompt = countPrompt ? yield* tokens.prompt(request, model.imageTokens) : usage.prompt
  const completion = countCompletion ? yield* tokens.count(produced) : usage.completion
  return { usage: { ...usage, prompt, completion }, estimated: true }
})
