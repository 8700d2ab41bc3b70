import type { ChatRequest, Message, Tool, Usage } from "./Chat.ts"
import { outputCap } from "./ChatRules.ts"
import { jsonTexts } from "./Json.ts"
import { stringify } from "./JsonSource.ts"
import type { ChatModel, ChatPricing } from "./Model.ts"
import { max, NanoUsd, zero } from "./Money.ts"

const tokensPerPrice = 1_000_000n
const searchesPerPrice = 1_000n

/** Providers spend tokens on role marks, separators and the scaffolding of tools and schemas. */
const perRequest = 32
const perMessage = 16
/** A result that is sent in place of one that a call lacks, with its marks. */
const perMissingResult = 64
const perTool = 32
const toolPreamble = 640
const schemaPreamble = 64

/** May be any number above `limit` where there are more; a lone surrogate counts as U+FFFD. */
export const utf8Bytes = (text: string, limit: number = Number.POSITIVE_INFINITY): number =>
  text.length > limit ? Math.max(limit, 0) + 1 : Buffer.byteLength(text)

const addTexts = (message: Message, texts: Array<string>): void => {
  if (typeof message.content === "string") texts.push(message.content)
  else for (const part of message.content ?? []) if (part.type === "text") texts.push(part.text)
  if (message.role === "tool") texts.push(message.tool_call_id)
  else if (message.name !== undefined) texts.push(message.name)
  if (message.role === "assistant") {
    if (message.reasoning_content !== undefined) texts.push(message.reasoning_content)
    for (const { function: called, id, signature = "" } of message.tool_calls ?? [])
      texts.push(id, called.name, called.arguments, signature)
  }
}

const textsOf = (message: Message): ReadonlyArray<string> => {
  const texts: Array<string> = []
  addTexts(message, texts)
  return texts
}

export const imagesIn = (message: Message): number => {
  if (message.role !== "user" || typeof message.content === "string") return 0
  return message.content.reduce((images, part) => (part.type === "image_url" ? images + 1 : images), 0)
}

/** A result more than a call has is a message, which counts as much. */
const missingResults = (messages: ReadonlyArray<Message>): number => {
  let missing = 0
  for (const message of messages) {
    if (message.role === "tool") missing -= 1
    else if (message.role === "assistant") missing += message.tool_calls?.length ?? 0
  }
  return Math.max(0, missing)
}

const toolTokens = (tools: ReadonlyArray<Tool>): number =>
  tools.length === 0 ? 0 : toolPreamble + perTool * tools.length

function* largeTexts({ messages, responseFormat, toolChoice, tools }: ChatRequest): Generator<string> {
  for (const message of messages) yield* textsOf(message)
  if (tools.length > 0) yield* jsonTexts(tools)
  if (typeof toolChoice === "object") yield toolChoice.function.name
  if (responseFormat !== undefined) yield* jsonTexts(responseFormat)
}

/** The texts that become prompt; tools and schemas as their JSON. */
export const promptTexts = (request: ChatRequest): Iterable<string> => {
  if (request.isLarge === true) return largeTexts(request)
  const texts: Array<string> = []
  for (const message of request.messages) addTexts(message, texts)
  if (request.tools.length > 0) texts.push(stringify(request.tools))
  if (typeof request.toolChoice === "object") texts.push(request.toolChoice.function.name)
  if (request.responseFormat !== undefined) texts.push(stringify(request.responseFormat))
  return texts
}

/** An upper bound: a token is at least a byte, and a prompt at most the model's context. */
export const promptBound = (model: ChatModel, request: ChatRequest): number => {
  const limit = model.contextLength
  let bound = perRequest + perMessage * request.messages.length + toolTokens(request.tools)
  if (request.responseFormat !== undefined) bound += schemaPreamble
  if (request.webSearch) bound += model.webSearchTokens
  bound += request.native?.extraTokens ?? 0
  bound += perMissingResult * missingResults(request.messages)
  for (const message of request.messages) bound += model.imageTokens * imagesIn(message)
  for (const text of promptTexts(request)) {
    bound += utf8Bytes(text, limit - bound)
    if (bound >= limit) break
  }
  return Math.min(bound, limit)
}

/** In nano-USD per million tokens. */
export interface Rates {
  readonly prompt: NanoUsd
  readonly cachedPrompt: NanoUsd
  readonly cacheWrite: NanoUsd
  readonly cacheWriteHour: NanoUsd
  readonly completion: NanoUsd
}

/** Above the threshold the long-context tier applies to the whole request; missing cache prices are the base tier's. */
export const ratesAt = (pricing: ChatPricing, promptTokens: number): Rates => {
  const long = pricing.longContext
  const tier = long !== undefined && promptTokens > long.above ? long : pricing
  const cacheWrite = tier.cacheWrite ?? pricing.cacheWrite ?? tier.prompt
  return {
    prompt: tier.prompt,
    cachedPrompt: tier.cachedPrompt ?? pricing.cachedPrompt ?? tier.prompt,
    cacheWrite,
    cacheWriteHour: tier.cacheWriteHour ?? pricing.cacheWriteHour ?? cacheWrite,
    completion: tier.completion
  }
}

const maxPromptRate = ({ cacheWrite, cacheWriteHour, cachedPrompt, prompt }: Rates): NanoUsd =>
  max(prompt, cachedPrompt, cacheWrite, cacheWriteHour)

/** In nano-USD per million, as what tokens come to. */
const searchTotal = ({ webSearch = zero }: ChatPricing, searches: number): bigint =>
  (BigInt(searches) * webSearch * tokensPerPrice) / searchesPerPrice

export const roundUp = (total: bigint): NanoUsd => NanoUsd((total + tokensPerPrice - 1n) / tokensPerPrice)

/** The most that a chat can cost: for its prompt and searches, and for each token of output up to its cap. */
export interface HoldPrice {
  /** In nano-USD per million, as what follows. */
  readonly prompt: bigint
  readonly outputToken: bigint
  readonly cap: number
  /** The bound of its prompt. */
  readonly promptTokens: number
}

export const holdPrice = (model: ChatModel, request: ChatRequest): HoldPrice => {
  const promptTokens = promptBound(model, request)
  const tiers = [ratesAt(model.pricing, 0), ratesAt(model.pricing, promptTokens)]
  return {
    promptTokens,
    prompt:
      BigInt(promptTokens) * max(...tiers.map(maxPromptRate)) +
      searchTotal(model.pricing, request.webSearch ? model.maxWebSearches : 0),
    outputToken: max(...tiers.map((rates) => rates.completion)),
    cap: Math.max(0, Math.min(request.maxTokens, outputCap(model, request)))
  }
}

export const holdFor = ({ outputToken, prompt }: HoldPrice, output: number): NanoUsd =>
  roundUp(prompt + BigInt(output) * outputToken)

/** The most output whose hold is within the budget; undefined where it does not even cover the prompt. */
export const outputWithin = ({ cap, outputToken, prompt }: HoldPrice, budget: bigint): number | undefined => {
  const left = budget * tokensPerPrice - prompt
  if (left < 0n) return undefined
  return left >= BigInt(cap) * outputToken ? cap : Number(left / outputToken)
}

/** What a chat is held for: the most that it is charged. */
export interface ChatQuote {
  readonly price: HoldPrice
  readonly upTo: NanoUsd
}

export const quoteChat = (model: ChatModel, request: ChatRequest): ChatQuote => {
  const price = holdPrice(model, request)
  return { price, upTo: holdFor(price, price.cap) }
}

export const noUsage: Usage = { prompt: 0, completion: 0, cached: 0, cacheWrite: 0, reasoning: 0 }

const count = (tokens: number): number => {
  if (!(tokens > 0)) return 0
  return Math.min(Math.ceil(tokens), Number.MAX_SAFE_INTEGER)
}

/** Counts become non-negative integers, and no part exceeds its whole. */
export const sanitizeUsage = (usage: Usage): Usage => {
  const prompt = count(usage.prompt)
  const completion = count(usage.completion)
  const cached = Math.min(count(usage.cached), prompt)
  const cacheWrite = Math.min(count(usage.cacheWrite), prompt - cached)
  const cacheWriteHour = Math.min(count(usage.cacheWriteHour ?? 0), cacheWrite)
  const webSearches = count(usage.webSearches ?? 0)
  return {
    prompt,
    completion,
    cached,
    cacheWrite,
    reasoning: Math.min(count(usage.reasoning), completion),
    ...(cacheWriteHour > 0 && { cacheWriteHour }),
    ...(webSearches > 0 && { webSearches })
  }
}

/** More than any host makes for one request. */
const maxSearches = 1_000

/** In tokens: the whole context, and the cap beside it. */
export const usageLimit = (model: ChatModel, { maxTokens }: ChatRequest): number => model.contextLength + maxTokens

/** A host's counts, none above what the request could hold. */
export const boundUsage = (reported: Usage, model: ChatModel, request: ChatRequest) => {
  const usage = sanitizeUsage(reported)
  const { completion, prompt, webSearches = 0 } = usage
  const limit = usageLimit(model, request)
  if (prompt <= limit && completion <= limit && webSearches <= maxSearches) return { usage, isBounded: false }
  const bounded = {
    ...usage,
    prompt: Math.min(prompt, limit),
    completion: Math.min(completion, limit),
    webSearches: Math.min(webSearches, maxSearches)
  }
  return { usage: sanitizeUsage(bounded), isBounded: true }
}

/** A customer pays for no more completion than the cap, even where the provider's minimum is higher, nor for searches that the hold does not cover. */
export const capUsage = (usage: Usage, { maxTokens, maxWebSearches = 0 }: ChatRequest): Usage => {
  const completion = Math.min(usage.completion, maxTokens)
  const capped = { ...usage, completion, reasoning: Math.min(usage.reasoning, completion) }
  const { webSearches = 0 } = usage
  return webSearches > maxWebSearches ? { ...capped, webSearches: maxWebSearches } : capped
}

/** Rounded up once, at the total. */
export const chatCharge = (pricing: ChatPricing, usage: Usage): NanoUsd => {
  const { prompt, completion, cached, cacheWrite, cacheWriteHour = 0, webSearches = 0 } = sanitizeUsage(usage)
  const rates = ratesAt(pricing, prompt)
  return roundUp(
    BigInt(prompt - cached - cacheWrite) * rates.prompt +
      BigInt(cached) * rates.cachedPrompt +
      BigInt(cacheWrite - cacheWriteHour) * rates.cacheWrite +
      BigInt(cacheWriteHour) * rates.cacheWriteHour +
      BigInt(completion) * rates.completion +
      searchTotal(pricing, webSearches)
  )
}

/** More than any context holds. */
const maxCountedTokens = 4_000_000

/** An upper bound of the tokens of a value's JSON: a token is at least a byte. */
export const jsonTokens = (value: unknown): number => {
  let bytes = 0
  for (const text of jsonTexts(value)) {
    bytes += utf8Bytes(text, maxCountedTokens)
    if (bytes > maxCountedTokens) break
  }
  return bytes
}
