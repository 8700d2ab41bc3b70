import { type Context, Effect } from "effect"
import type { ChatAnswer, ChatRequest, Usage } from "../../domain/Chat.ts"
import type { ChatModel } from "../../domain/Model.ts"
import * as Pricing from "../../domain/Pricing.ts"
import type { TokenCounter } from "./TokenCounter.ts"
import { cutTo } from "./TokenLimit.ts"

export interface Measured {
  readonly usage: Usage
  readonly billed: Usage
  readonly estimated: boolean
  /** More was reported than the request could hold. */
  readonly isBounded: boolean
}

export interface Received {
  readonly reported: Usage | undefined
  readonly produced: string
  /** The host was sent the client's own body. */
  readonly isNative: boolean
  /** The provider may have reported less than it sent. */
  readonly isCut?: boolean | undefined
}

export const toReceived = ({ content, native, reasoning, toolCalls, usage }: ChatAnswer): Received => {
  let produced = (reasoning ?? "") + (content ?? "")
  for (const { function: called } of toolCalls) produced += called.name + called.arguments
  return { reported: usage, produced, isNative: native !== undefined }
}

/** Our own count where the provider reports nothing, or less than it sent. */
export const measureUsage = (
  tokens: Context.Tag.Service<TokenCounter>,
  { model, request }: { readonly model: ChatModel; readonly request: ChatRequest },
  { isCut = false, isNative, produced, reported = Pricing.noUsage }: Received
): Effect.Effect<Measured> => {
  const { isBounded, usage } = Pricing.boundUsage(reported, model, request)
  const countPrompt = usage.prompt === 0
  const countCompletion = produced !== "" && (isCut || usage.completion === 0)
  const toMeasured = (counted: Usage, estimated: boolean): Measured => {
    return { usage: counted, billed: Pricing.capUsage(counted, request), estimated, isBounded }
  }
  if (!countPrompt && !countCompletion) return Effect.succeed(toMeasured(usage, false))
  return Effect.zipWith(
    countPrompt
      ? Effect.map(tokens.prompt(isNative ? request : { ...request, native: undefined }, model.imageTokens), (prompt) =>
          Math.min(prompt, model.contextLength)
        )
      : Effect.succeed(usage.prompt),
    countCompletion ? tokens.count(produced) : Effect.succeed(0),
    (prompt, counted) => {
      const completion = Math.max(usage.completion, counted)
      return toMeasured({ ...usage, prompt, completion }, countPrompt || counted > usage.completion)
    }
  )
}

/** Some providers have a minimum above the requested cap. */
export const fitToCap = (
  tokens: Context.Tag.Service<TokenCounter>,
  { request }: { readonly request: ChatRequest },
  answer: ChatAnswer,
  { billed, usage }: Measured
): Effect.Effect<ChatAnswer> => {
  if (usage.completion <= billed.completion || answer.content === null) return Effect.succeed(answer)
  return Effect.map(cutTo(tokens.count, answer.content, request.maxTokens), ({ text, whole }) =>
    whole ? answer : { ...answer, content: text, finish: "length" }
  )
}

/** Returns the model's context length where a document cannot be counted. */
export const countRequest = (
  tokens: Context.Tag.Service<TokenCounter>,
  model: ChatModel,
  request: ChatRequest
): Effect.Effect<number> =>
  request.native?.extraTokens === Number.POSITIVE_INFINITY
    ? Effect.succeed(model.contextLength)
    : tokens.prompt(request, model.imageTokens)
