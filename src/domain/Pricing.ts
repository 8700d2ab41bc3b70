import { Array as Arr, Record, type Types } from "effect"
import type { ChatRequest, Message, Tool, Usage } from "./Chat.ts"
import { outputCap } from "./ChatRules.ts"
import { jsonTexts } from "./Json.ts"
import { stringify } from "./JsonSource.ts"
import type { ChatModel, ChatPricing, Model } from "./Model.ts"
import { max, NanoUsd, zero } from "./Money.ts"
import { changeByPercent } from "./Percent.ts"
import { kindsWithin, orderedKinds, partKinds, type TokenKindName, tokenKinds } from "./TokenKinds.ts"

const tokensPerPrice = 1_000_000n
const searchesPerPrice = 1_000n

/**
 * Tokens that the upper bound of a prompt adds for each request, message and tool, and for the presence of tools or of
 * a schema. Providers add such tokens for roles, separators and definitions.
 */
const perRequest = 32
const perMessage = 16
/** Tokens of the result that the gateway adds to a tool call without one. */
const perMissingResult = 64
const perTool = 32
const toolPreamble = 640
const schemaPreamble = 64

/** Returns the text's size, or any number above `limit` if the text is larger. A lone surrogate counts as U+FFFD. */
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

export const countImages = (message: Message): number => {
  if (message.role !== "user" || typeof message.content === "string") return 0
  return message.content.reduce((images, part) => (part.type === "image_url" ? images + 1 : images), 0)
}

/**
 * Returns how many tool results the gateway adds, or fewer if other calls have several: the surplus results count as
 * messages.
 */
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

/** Returns the texts that become part of the prompt, with tools and schemas as JSON. */
export const promptTexts = (request: ChatRequest): Iterable<string> => {
  if (request.isLarge === true) return largeTexts(request)
  const texts: Array<string> = []
  for (const message of request.messages) addTexts(message, texts)
  if (request.tools.length > 0) texts.push(stringify(request.tools))
  if (typeof request.toolChoice === "object") texts.push(request.toolChoice.function.name)
  if (request.responseFormat !== undefined) texts.push(stringify(request.responseFormat))
  return texts
}

/**
 * Returns an upper bound of the prompt tokens: its bytes, because a token has at least one, but at most the model's
 * context.
 */
export const promptBound = (model: ChatModel, request: ChatRequest): number => {
  const limit = model.contextLength
  let bound = perRequest + perMessage * request.messages.length + toolTokens(request.tools)
  if (request.responseFormat !== undefined) bound += schemaPreamble
  if (request.webSearch) bound += model.webSearchTokens
  bound += request.native?.extraTokens ?? 0
  bound += perMissingResult * missingResults(request.messages)
  for (const message of request.messages) bound += model.imageTokens * countImages(message)
  for (const text of promptTexts(request)) {
    bound += utf8Bytes(text, limit - bound)
    if (bound >= limit) break
  }
  return Math.min(bound, limit)
}

/** In nano-USD per million tokens. */
export type Rates = Readonly<Record<TokenKindName, NanoUsd>>

const noRates = Record.map(tokenKinds, () => zero)
const parts = Record.toEntries(partKinds)

/** Returns the rates of all tokens of a request. Above the threshold they are those of the long-context tier. */
export const ratesAt = (pricing: ChatPricing, promptTokens: number): Rates => {
  const long = pricing.longContext
  const tier = long !== undefined && promptTokens > long.above ? long : pricing
  const rates = { ...noRates, prompt: tier.prompt, completion: tier.completion }
  for (const [name, { of }] of parts) rates[name] = tier[name] ?? pricing[name] ?? rates[of]
  return rates
}

const [promptKinds, outputKinds] = [kindsWithin("prompt"), kindsWithin("completion")]

const maxRate = (tiers: ReadonlyArray<Rates>, kinds: ReadonlyArray<TokenKindName>): NanoUsd =>
  max(...tiers.flatMap((rates) => kinds.map((kind) => rates[kind])))

/** Returns the price of the searches in nano-USD times a million, the unit of rates times tokens. */
const searchTotal = ({ webSearch = zero }: ChatPricing, searches: number): bigint =>
  (BigInt(searches) * webSearch * tokensPerPrice) / searchesPerPrice

export const roundUp = (total: bigint): NanoUsd => NanoUsd((total + tokensPerPrice - 1n) / tokensPerPrice)

/** What a chat request may cost at most: its prompt and searches, and each output token up to the cap. */
export interface HoldTerms {
  /** In nano-USD times a million. */
  readonly prompt: bigint
  /** In nano-USD times a million. */
  readonly outputToken: bigint
  readonly cap: number
  /** The upper bound of the prompt's tokens. */
  readonly promptTokens: number
}

const holdTerms = (model: ChatModel, request: ChatRequest): HoldTerms => {
  const promptTokens = promptBound(model, request)
  const tiers = [ratesAt(model.pricing, 0), ratesAt(model.pricing, promptTokens)]
  return {
    promptTokens,
    prompt:
      BigInt(promptTokens) * maxRate(tiers, promptKinds) +
      searchTotal(model.pricing, request.webSearch ? model.maxWebSearches : 0),
    outputToken: maxRate(tiers, outputKinds),
    cap: Math.max(0, Math.min(request.maxTokens, outputCap(model, request)))
  }
}

export const holdAmount = ({ outputToken, prompt }: HoldTerms, output: number): NanoUsd =>
  roundUp(prompt + BigInt(output) * outputToken)

/** Returns the most output tokens whose hold is within the budget; undefined if the budget does not cover the prompt. */
export const maxOutputWithin = ({ cap, outputToken, prompt }: HoldTerms, budget: bigint): number | undefined => {
  const remaining = budget * tokensPerPrice - prompt
  if (remaining < 0n) return undefined
  return remaining >= BigInt(cap) * outputToken ? cap : Number(remaining / outputToken)
}

/** The hold of a chat, which is also its maximum charge. */
export interface ChatQuote {
  readonly price: HoldTerms
  readonly upTo: NanoUsd
}

export const quoteChat = (model: ChatModel, request: ChatRequest): ChatQuote => {
  const price = holdTerms(model, request)
  return { price, upTo: holdAmount(price, price.cap) }
}

export const noUsage: Usage = { prompt: 0, completion: 0, cached: 0, cacheWrite: 0, reasoning: 0 }

const toCount = (tokens: number): number => {
  if (!(tokens > 0)) return 0
  return Math.min(Math.ceil(tokens), Number.MAX_SAFE_INTEGER)
}

const noTokens = Record.map(tokenKinds, () => 0)

interface SplitUsage {
  /** Non-negative integers. No part exceeds its parent kind. */
  readonly usage: Usage
  /** The tokens of each kind, without those of its parts. */
  readonly ownTokens: Readonly<Record<TokenKindName, number>>
}

export const splitUsage = (reported: Usage): SplitUsage => {
  const [prompt, completion] = [toCount(reported.prompt), toCount(reported.completion)]
  const [reasoning, webSearches] = [
    Math.min(toCount(reported.reasoning), completion),
    toCount(reported.webSearches ?? 0)
  ]
  const usage: Types.Mutable<Usage> = { ...noUsage, prompt, completion, reasoning }
  const ownTokens = { ...noTokens, prompt, completion }
  for (const [name, part] of parts) {
    const tokens = Math.min(toCount(reported[part.usage] ?? 0), ownTokens[part.of])
    if (tokens === 0) continue
    usage[part.usage] = tokens
    ownTokens[name] = tokens
    ownTokens[part.of] -= tokens
  }
  if (webSearches > 0) usage.webSearches = webSearches
  return { usage, ownTokens }
}

/** Converts counts to non-negative integers, of which no part exceeds its parent kind. */
export const sanitizeUsage = (usage: Usage): Usage => splitUsage(usage).usage

/** More than any provider makes for one request. */
const maxSearches = 1_000

/** Returns the context length plus the output cap, in tokens. */
export const usageLimit = (model: ChatModel, { maxTokens }: ChatRequest): number => model.contextLength + maxTokens

/** Limits the provider's counts to what the request can have used. */
export const boundUsage = (reported: Usage, model: ChatModel, request: ChatRequest) => {
  const usage = sanitizeUsage(reported)
  const { completion, prompt, webSearches = 0 } = usage
  const limit = usageLimit(model, request)
  if (prompt <= limit && completion <= limit && webSearches <= maxSearches) return { usage, isBounded: false }
  const boundedUsage = {
    ...usage,
    prompt: Math.min(prompt, limit),
    completion: Math.min(completion, limit),
    webSearches: Math.min(webSearches, maxSearches)
  }
  return { usage: sanitizeUsage(boundedUsage), isBounded: true }
}

/**
 * Limits the charged completion to the request's cap, which may be below the provider's minimum, and the searches to those
 * of the hold.
 */
export const capUsage = (usage: Usage, { maxTokens, maxWebSearches = 0 }: ChatRequest): Usage => {
  const { completion, statedCost, webSearches = 0 } = usage
  const cappedUsage = {
    ...sanitizeUsage({ ...usage, completion: Math.min(completion, maxTokens) }),
    ...(statedCost !== undefined && { statedCost })
  }
  return webSearches > maxWebSearches ? { ...cappedUsage, webSearches: maxWebSearches } : cappedUsage
}

/** Returns the charge. Only the total is rounded, up to a whole nano-USD. */
export const chatCharge = (pricing: ChatPricing, reported: Usage): NanoUsd => {
  const { ownTokens, usage } = splitUsage(reported)
  const rates = ratesAt(pricing, usage.prompt)
  let total = searchTotal(pricing, usage.webSearches ?? 0)
  for (const kind of orderedKinds) total += BigInt(ownTokens[kind]) * rates[kind]
  return roundUp(total)
}

/** More tokens than any model's context has. */
const maxCountedTokens = 4_000_000

/** Returns an upper bound of the tokens of a value's JSON: a token has at least one byte. */
export const jsonTokens = (value: unknown): number => {
  let bytes = 0
  for (const text of jsonTexts(value)) {
    bytes += utf8Bytes(text, maxCountedTokens)
    if (bytes > maxCountedTokens) break
  }
  return bytes
}

/** Returns the price plus `percent` of it, rounded half up to a whole nano-USD. */
export const changePrice = (price: NanoUsd, percent: number): NanoUsd => NanoUsd(changeByPercent(price, percent))

type Tier = Omit<ChatPricing, "longContext" | "webSearch">

const changeTier = (tier: Tier, percent: number): Tier => ({
  ...Record.map(partKinds, (_, name) => tier[name] && changePrice(tier[name], percent)),
  prompt: changePrice(tier.prompt, percent),
  completion: changePrice(tier.completion, percent)
})

export const changeChatPricing = (pricing: ChatPricing, percent: number): ChatPricing => {
  const { longContext, webSearch } = pricing
  return {
    ...changeTier(pricing, percent),
    longContext: longContext && { above: longContext.above, ...changeTier(longContext, percent) },
    ...(webSearch !== undefined && { webSearch: changePrice(webSearch, percent) })
  }
}

const changeOwnPrices = (model: Model, percent: number): Model => {
  switch (model.surface) {
    case "chat":
      return { ...model, pricing: changeChatPricing(model.pricing, percent) }
    case "image":
      return {
        ...model,
        variants: Arr.map(model.variants, (variant) => ({ ...variant, price: changePrice(variant.price, percent) }))
      }
    case "video":
      return { ...model, pricing: { ...model.pricing, price: changePrice(model.pricing.price, percent) } }
  }
}

/**
 * Returns the model with each of its prices changed by `percent`, such as 20 or -12.5, and rounded separately. Does not
 * change costs, official prices and later versions of the model.
 */
export const changePrices = (model: Model, percent: number): Model =>
  percent === 0 ? model : changeOwnPrices(model, percent)

const discounted = new WeakMap<Model, Map<number, Model>>()

/**
 * Returns the model at the prices of an organization with a discount in percent. The same arguments return the same object.
 */
export const discountModel = (model: Model, percent: number): Model => {
  if (percent === 0) return model
  const models = discounted.get(model) ?? new Map<number, Model>()
  discounted.set(model, models)
  const { next } = model
  const result = models.get(percent) ?? {
    ...changePrices(model, -percent),
    ...(next && { next: { at: next.at, model: discountModel(next.model, percent) } })
  }
  models.set(percent, result)
  return result
}
