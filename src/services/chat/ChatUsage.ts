import { type Context, Effect } from "effect"
import type { ChatAnswer, ChatRequest, FinishReason, UnknownPart, Usage } from "../../domain/Chat.ts"
import type { ChatModel } from "../../domain/Model.ts"
import * as Pricing from "../../domain/Pricing.ts"
import type { TokenCounter } from "./TokenCounter.ts"

type Count = typeof TokenCounter.Service.count

interface Piece {
  readonly text: string
  readonly tokens: number
  readonly isComplete: boolean
}

export const truncateText = Effect.fnUntraced(function* (count: Count, text: string, limit: number) {
  const totalTokens = yield* count(text)
  if (totalTokens <= limit) return { text, tokens: totalTokens, isComplete: true }
  let maxPiece: Piece = { text: "", tokens: 0, isComplete: false }
  let [low, high] = [0, text.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const splitsPair = (text.charCodeAt(middle - 1) & 0xfc00) === 0xd800
    const start = text.slice(0, splitsPair ? middle - 1 : middle)
    const tokens = yield* count(start)
    if (tokens > limit) high = middle - 1
    else {
      low = middle
      maxPiece = { text: start, tokens, isComplete: false }
    }
  }
  return maxPiece
})

export interface MeasuredUsage {
  readonly usage: Usage
  readonly billed: Usage
  readonly isEstimated: boolean
  /** True if the usage was lowered, because the provider reported more than the request allows. */
  readonly isBounded: boolean
  /** Free for the customer: the model or a filter refused before any output. */
  readonly isWaived: boolean
  /** The provider charges nothing. */
  readonly isFree: boolean
}

export interface ReceivedOutput {
  readonly reported: Usage | undefined
  readonly produced: string
  /** The provider got the client's original body. */
  readonly isNative: boolean
  /** The stream was cut, so the reported usage may be too low. */
  readonly isCut?: boolean | undefined
  /** The model or a filter refused the answer without output. */
  readonly isEmptyRefusal: boolean
  readonly isFree: boolean
  readonly unread: ReadonlyArray<UnknownPart>
}

export const isEmptyRefusal = (finish: FinishReason | undefined, length: number): boolean =>
  finish === "content_filter" && length === 0

export const toReceived = (answer: ChatAnswer): ReceivedOutput => {
  const { content, finish, isFree = false, native, reasoning, toolCalls, unread = [], usage } = answer
  let produced = (reasoning ?? "") + (content ?? "")
  for (const { function: called } of toolCalls) produced += called.name + called.arguments
  return {
    reported: usage,
    produced,
    isNative: native !== undefined,
    isEmptyRefusal: isEmptyRefusal(finish, produced.length),
    isFree,
    unread
  }
}

/** Returns the usage. It uses the gateway's own count if the provider reports none, or fewer tokens than it sent. */
export const measureUsage = (
  tokens: Context.Tag.Service<TokenCounter>,
  { model, request }: { readonly model: ChatModel; readonly request: ChatRequest },
  { isCut = false, isEmptyRefusal, isNative, isFree, produced, reported = Pricing.noUsage }: ReceivedOutput
): Effect.Effect<MeasuredUsage> => {
  const { isBounded, usage } = Pricing.boundUsage(reported, model, request)
  const needsPromptCount = usage.prompt === 0
  const needsCompletionCount = produced !== "" && (isCut || usage.completion === 0)
  const toMeasured = (measured: Usage, isEstimated: boolean): MeasuredUsage => {
    const isWaived = isEmptyRefusal && measured.completion === 0
    return {
      usage: measured,
      billed: Pricing.capUsage(measured, request),
      isEstimated,
      isBounded,
      isWaived,
      isFree: isWaived && isFree
    }
  }
  if (!needsPromptCount && !needsCompletionCount) return Effect.succeed(toMeasured(usage, false))
  return Effect.zipWith(
    needsPromptCount
      ? Effect.map(tokens.prompt(isNative ? request : { ...request, native: undefined }, model.imageTokens), (prompt) =>
          Math.min(prompt, model.contextLength)
        )
      : Effect.succeed(usage.prompt),
    needsCompletionCount ? tokens.count(produced) : Effect.succeed(0),
    (prompt, count) => {
      const completion = Math.max(usage.completion, count)
      return toMeasured({ ...usage, prompt, completion }, needsPromptCount || count > usage.completion)
    }
  )
}

/** Truncates an answer that exceeds the requested cap, because some providers have a higher minimum output. */
export const truncateToCap = (
  tokens: Context.Tag.Service<TokenCounter>,
  { request }: { readonly request: ChatRequest },
  answer: ChatAnswer,
  { billed, usage }: MeasuredUsage
): Effect.Effect<ChatAnswer> => {
  if (usage.completion <= billed.completion || answer.content === null) return Effect.succeed(answer)
  return Effect.map(truncateText(tokens.count, answer.content, request.maxTokens), ({ text, isComplete }) =>
    isComplete ? answer : { ...answer, content: text, finish: "length" }
  )
}

/** Returns the token count of the prompt; the context length of the model if a document cannot be counted. */
export const countRequest = (
  tokens: Context.Tag.Service<TokenCounter>,
  model: ChatModel,
  request: ChatRequest
): Effect.Effect<number> =>
  request.native?.extraTokens === Number.POSITIVE_INFINITY
    ? Effect.succeed(model.contextLength)
    : tokens.prompt(request, model.imageTokens)
