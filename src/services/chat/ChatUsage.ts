import { type Context, Effect } from "effect"
import type { ChatAnswer, ChatRequest, FinishReason, Unread, Usage } from "../../domain/Chat.ts"
import type { ChatModel } from "../../domain/Model.ts"
import * as Pricing from "../../domain/Pricing.ts"
import type { TokenCounter } from "./TokenCounter.ts"

type Count = typeof TokenCounter.Service.count

interface Piece {
  readonly text: string
  readonly tokens: number
  readonly whole: boolean
}

export const cutTo = Effect.fnUntraced(function* (count: Count, text: string, limit: number) {
  const all = yield* count(text)
  if (all <= limit) return { text, tokens: all, whole: true }
  let best: Piece = { text: "", tokens: 0, whole: false }
  let [low, high] = [0, text.length - 1]
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    const splitsPair = (text.charCodeAt(middle - 1) & 0xfc00) === 0xd800
    const start = text.slice(0, splitsPair ? middle - 1 : middle)
    const tokens = yield* count(start)
    if (tokens > limit) high = middle - 1
    else {
      low = middle
      best = { text: start, tokens, whole: false }
    }
  }
  return best
})

export interface Measured {
  readonly usage: Usage
  readonly billed: Usage
  readonly estimated: boolean
  /** More was reported than the request could hold. */
  readonly isBounded: boolean
  /** Free for the customer: refused, or withheld by a filter, before any output. */
  readonly isWaived: boolean
  /** The provider charges nothing either. */
  readonly isUnbilled: boolean
}

export interface Received {
  readonly reported: Usage | undefined
  readonly produced: string
  /** The host was sent the client's own body. */
  readonly isNative: boolean
  /** The provider may have reported less than it sent. */
  readonly isCut?: boolean | undefined
  /** The answer ended as a refusal or by a filter, without any output. */
  readonly isEmptyRefusal: boolean
  readonly isUnbilled: boolean
  readonly unread: ReadonlyArray<Unread>
}

export const isEmptyRefusal = (finish: FinishReason | undefined, length: number): boolean =>
  finish === "content_filter" && length === 0

export const toReceived = (answer: ChatAnswer): Received => {
  const { content, finish, isUnbilled = false, native, reasoning, toolCalls, unread = [], usage } = answer
  let produced = (reasoning ?? "") + (content ?? "")
  for (const { function: called } of toolCalls) produced += called.name + called.arguments
  return {
    reported: usage,
    produced,
    isNative: native !== undefined,
    isEmptyRefusal: isEmptyRefusal(finish, produced.length),
    isUnbilled,
    unread
  }
}

/** Our own count where the provider reports nothing, or less than it sent. */
export const measureUsage = (
  tokens: Context.Tag.Service<TokenCounter>,
  { model, request }: { readonly model: ChatModel; readonly request: ChatRequest },
  { isCut = false, isEmptyRefusal, isNative, isUnbilled, produced, reported = Pricing.noUsage }: Received
): Effect.Effect<Measured> => {
  const { isBounded, usage } = Pricing.boundUsage(reported, model, request)
  const countPrompt = usage.prompt === 0
  const countCompletion = produced !== "" && (isCut || usage.completion === 0)
  const toMeasured = (counted: Usage, estimated: boolean): Measured => {
    const isWaived = isEmptyRefusal && counted.completion === 0
    return {
      usage: counted,
      billed: Pricing.capUsage(counted, request),
      estimated,
      isBounded,
      isWaived,
      isUnbilled: isWaived && isUnbilled
    }
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
