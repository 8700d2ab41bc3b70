import { type Context, Effect } from "effect"
import type { ChatRequest, Usage } from "../domain/Chat.ts"
import type { ChatModel } from "../domain/Model.ts"
import * as Pricing from "../domain/Pricing.ts"
import type { Tokens } from "./Tokens.ts"

export interface Measured {
  /** What the provider charges for. */
  readonly usage: Usage
  /** What the customer pays for. */
  readonly billed: Usage
  /** Whether any of it is the gateway's own count. */
  readonly estimated: boolean
}

/**
 * What the provider reported; where it reported nothing, or nothing beside text it sent, our own count.
 */
export const usageOf = Effect.fnUntraced(function* (
  tokens: Context.Tag.Service<Tokens>,
  { model, request }: { readonly model: ChatModel; readonly request: ChatRequest },
  { produced, reported }: { readonly reported: Usage | undefined; readonly produced: string }
) {
  const usage = reported === undefined ? Pricing.noUsage : Pricing.sanitizeUsage(reported)
  const countPrompt = usage.prompt === 0
  const countCompletion = usage.completion === 0 && produced !== ""
  const whole = (counted: Usage, estimated: boolean): Measured => {
    return { usage: counted, billed: Pricing.capped(counted, request.maxTokens), estimated }
  }
  if (!countPrompt && !countCompletion) return whole(usage, false)
  const prompt = countPrompt ? yield* tokens.prompt(request, model.imageTokens) : usage.prompt
  const completion = countCompletion ? yield* tokens.count(produced) : usage.completion
  return whole({ ...usage, prompt, completion }, true)
})
