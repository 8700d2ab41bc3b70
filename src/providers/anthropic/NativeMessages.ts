import { Predicate } from "effect"
import type { ChatRequest, NativeRequest } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import { endsOf, mark, minCharacters } from "../chat/CacheMarks.ts"
import { CallArguments } from "../chat/CallArguments.ts"
import type { ChatCall, NativeFormat } from "../chat/ChatClient.ts"
import { fitNativeTool } from "../chat/Fitting.ts"
import { chargedByHosts, inlinesImages } from "../chat/Messages.ts"
import { isFitting } from "../chat/ToolNames.ts"
import type { NameRule } from "../chat/WireRules.ts"
import { asCount, asFields, asList, asRecords, asText, type Fields, parseJsonExact, without } from "../client/Json.ts"
import { minAnswer, minBudget, type Options, type Quirks, rulesOf } from "./AnthropicRequest.ts"
import { encodeNativeTurns, encodeTexts, isClientTool } from "./NativeTurns.ts"

/** They change neither the price of a request beyond what its hold covers, nor who sees what the host keeps. */
const harmless = [
  "advanced-tool-use",
  "claude-code",
  "computer-use",
  "context-management",
  "effort",
  "extended-cache-ttl",
  "fine-grained-tool-streaming",
  "inline-tools",
  "interleaved-thinking",
  "mid-conversation-output-config",
  "mid-conversation-system",
  "mid-conversation-system-clear-at",
  "mid-conversation-tool-changes",
  "model-context-window-exceeded",
  "output-128k",
  "output-300k",
  "pdfs",
  "prompt-caching",
  "prompt-caching-scope",
  "redact-thinking",
  "structured-outputs",
  "task-budgets",
  "thinking-binding-controls",
  "thinking-display-updates",
  "thinking-token-count",
  "token-counting",
  "token-efficient-tools",
  "tool-examples",
  "tool-search-tool",
  "web-search"
]

const harmlessBeta = new RegExp(`^(${harmless.join("|")})-\\d{4}-?\\d{2}-?\\d{2}$`)
const longest = 64
/** Clients send up to about fifteen; hosts refuse long headers. */
const most = 32

/** Any other beta is dropped, as unknown fields of a body are. */
export const keepHarmless = (betas: ReadonlyArray<string>): ReadonlyArray<string> => {
  const kept = new Set<string>()
  for (const given of betas) {
    if (given.length > longest) continue
    const beta = given.trim().toLowerCase()
    if (harmlessBeta.test(beta)) kept.add(beta)
    if (kept.size === most) break
  }
  return [...kept]
}

const isMarked = ({ cache_control }: Fields): boolean => cache_control !== undefined && cache_control !== null

/** Where a block may hold others, in a list or one alone. */
const inner = ["content", "source", "tool", "definition"]

const hasMark = (blocks: unknown): boolean =>
  asRecords(Predicate.isRecord(blocks) ? [blocks] : blocks).some(
    (block) => isMarked(block) || inner.some((name) => hasMark(block[name]))
  )

const isMarkedBody = (body: Fields): boolean =>
  isMarked(body) || hasMark(body.tools) || hasMark(body.system) || hasMark(body.messages)

const isGoingOn = ({ messages, tool_choice, tools }: Fields): boolean =>
  asRecords(messages).some(({ role }) => role === "assistant") ||
  (asList(tools).length > 0 && (asFields(tool_choice).type ?? "auto") === "auto")

/** Total length of all texts in a value, counted up to a limit. */
const lengthIn = (value: unknown, limit: number): number => {
  if (typeof value === "string") return value.length
  let length = 0
  for (const member of Predicate.isObject(value) ? Object.values(value) : []) {
    length += lengthIn(member, limit - length)
    if (length >= limit) break
  }
  return length
}

const isWorthIt = (body: Fields): boolean =>
  isGoingOn(body) && lengthIn([body.system, body.messages, body.tools], minCharacters) >= minCharacters

const canBeMarked = (block: unknown): boolean => {
  const { text, type } = asFields(block)
  return type === "text"
    ? asText(text).trim() !== ""
    : type === "image" || type === "document" || type === "tool_result"
}

const markAt = (places: ReadonlyArray<unknown>, at: number): ReadonlyArray<unknown> =>
  places.map((place, index) => (index === at ? { ...asFields(place), cache_control: mark } : place))

/** The last block that can be; a text alone becomes one. */
const markContent = (content: unknown): unknown => {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : asList(content)
  const at = blocks.findLastIndex(canBeMarked)
  return at < 0 ? content : markAt(blocks, at)
}

/** A tool that is loaded only when it is needed cannot be marked. */
const markTools = (tools: unknown): unknown => {
  const at = asList(tools).findLastIndex((tool) => asFields(tool).defer_loading !== true)
  return at < 0 ? tools : markAt(asList(tools), at)
}

const addMarks = (body: Fields): Fields => {
  const ends = new Set(endsOf(asList(body.messages).map(asFields)))
  const messages = asList(body.messages).map((message, at) =>
    ends.has(at) ? { ...asFields(message), content: markContent(asFields(message).content) } : message
  )
  const system = markContent(body.system)
  if (system !== body.system) return { ...body, messages, system }
  return { ...body, messages, ...("tools" in body && { tools: markTools(body.tools) }) }
}

type Unpriced = NonNullable<ChatRequest["unpricedMarks"]>

const keepPriced = <A>(value: A, unpriced: Unpriced): A | Fields => {
  if (!Predicate.isRecord(value)) return value
  const kept: Record<string, unknown> = { ...value }
  if (isMarked(value)) kept.cache_control = unpriced === "all" ? undefined : mark
  for (const name of inner) if (name in value) kept[name] = keepPricedIn(value[name], unpriced)
  return kept
}

const keepPricedIn = (blocks: unknown, unpriced: Unpriced): unknown =>
  Array.isArray(blocks) ? blocks.map((block) => keepPriced(block, unpriced)) : keepPriced(blocks, unpriced)

const keepPricedBody = (body: Fields, unpriced: Unpriced): Fields => {
  const lists = Object.entries(body).filter(([name]) => name === "tools" || name === "system" || name === "messages")
  const kept = lists.map(([name, value]) => [name, keepPricedIn(value, unpriced)] as const)
  return { ...asFields(keepPriced(body, unpriced)), ...Object.fromEntries(kept) }
}

/** A request in the vendor's own words, without marks that have no price; one without any gets its own where it goes on. */
export const markNative = (body: Fields, { cache }: Pick<Options, "cache">, { unpricedMarks }: ChatRequest): Fields => {
  if (isMarkedBody(body)) return unpricedMarks === undefined ? body : keepPricedBody(body, unpricedMarks)
  return cache === "auto" && unpricedMarks !== "all" && isWorthIt(body) ? addMarks(body) : body
}

/** Fields of a block that come in pieces, by the kind of the delta. */
const texts: Readonly<Record<string, string>> = { text_delta: "text", thinking_delta: "thinking" }

const applyDelta = (block: Fields, delta: Fields): Fields => {
  const { type, ...changes } = delta
  const field = texts[asText(type)]
  if (field !== undefined) return { ...block, [field]: asText(block[field]) + asText(delta[field]) }
  if (type === "citations_delta") return { ...block, citations: [...asList(block.citations), delta.citation] }
  return { ...block, ...changes }
}

interface OpenBlock {
  block: Fields
  /** Its input comes in pieces; without any, the initial one counts. */
  input: string | undefined
  readonly given: CallArguments
}

const takeDelta = (open: OpenBlock, delta: Fields): void => {
  if (delta.type === "input_json_delta") {
    open.input = (open.input ?? "") + (open.given.take(asText(delta.partial_json)) ?? "")
  } else open.block = applyDelta(open.block, delta)
}

const toBlock = ({ block, given, input }: OpenBlock): Fields => {
  const value = input === undefined ? undefined : parseJsonExact(input + (given.end() ?? ""))
  return value === undefined ? block : { ...block, input: value }
}

/** The message that all events of a stream add up to. */
const assemble = (events: ReadonlyArray<Fields>): Fields => {
  let message: Fields = {}
  const blocks = new Map<unknown, OpenBlock>()
  for (const { content_block, delta, index, message: started, type, usage, ...more } of events) {
    const change = asFields(delta)
    const open = blocks.get(index)
    if (type === "message_start") message = asFields(started)
    else if (type === "content_block_start") {
      blocks.set(index, { block: asFields(content_block), input: undefined, given: new CallArguments() })
    } else if (type === "content_block_delta" && open !== undefined) takeDelta(open, change)
    else if (type === "message_delta") {
      message = { ...message, ...more, ...change, usage: { ...asFields(message.usage), ...asFields(usage) } }
    }
  }
  return { ...message, content: [...blocks.values()].map(toBlock) }
}

type Body = NativeRequest["body"]
type Call = ChatCall<Options, Quirks>

/** What is charged beyond the tokens in `usage`, or charged to another, or refers to what the vendor keeps for the operator; betas are headers. */
const refused = [
  ...chargedByHosts,
  "anthropic_beta",
  "betas",
  "billing_policy",
  "compaction",
  "container",
  "diagnostics",
  "fallback_credit_token",
  "fallbacks",
  "inference_geo",
  "mcp_servers",
  "speed",
  "thread",
  "user_profile_id",
  "workspace_id"
]

const searchTool = /^web_search_/

/** What a host's own tool has found is one block. */
function* blocksIn(content: unknown): Generator<Fields> {
  for (const block of asRecords(Predicate.isRecord(content) ? [content] : content)) {
    yield block
    yield* blocksIn(block.content)
    yield* blocksIn(asFields(block.source).content)
  }
}

function* blocksOf({ messages, system }: Body): Generator<Fields> {
  yield* blocksIn(system)
  for (const { content } of asRecords(messages)) yield* blocksIn(content)
}

const isCustom = ({ type }: Fields): boolean => (type ?? "custom") === "custom"

/** Whether the host takes all names of tools. Otherwise the request is translated, with other names. */
const hasFittingNames = ({ tools }: Body, rule: NameRule): boolean =>
  asRecords(tools).every((tool) => !isCustom(tool) || isFitting(asText(tool.name), rule))

/** Stored files are the operator's, and an unknown one would look like the route's fault. */
const accepts = (body: Body, route: Route, options: Options): boolean => {
  if (options.native === false || !hasFittingNames(body, rulesOf(options).toolName)) return false
  const inlines = inlinesImages(route)
  for (const { source, type } of blocksOf(body)) {
    const kind = asFields(source).type
    if (type === "container_upload" || kind === "file" || (inlines && kind === "url")) return false
  }
  return true
}

const keepTool = (tool: Fields, { options, request }: Call): ReadonlyArray<Fields> => {
  if (isClientTool(tool)) return [isCustom(tool) ? fitNativeTool(tool, "input_schema", rulesOf(options)) : tool]
  const { maxWebSearches = 1, webSearch } = request
  if (!webSearch || !searchTool.test(asText(tool.type))) return []
  return [{ ...tool, max_uses: Math.min(asCount(tool.max_uses) || maxWebSearches, maxWebSearches) }]
}

/** The host refuses two tools of one name, and a call could not tell them apart. */
const firstOfEach = (tools: ReadonlyArray<Fields>): ReadonlyArray<Fields> => {
  const names = new Set<unknown>()
  return tools.filter(({ name }) => {
    const isNew = name === undefined || !names.has(name)
    names.add(name)
    return isNew
  })
}

const toolFields = ({ tool_choice, tools }: Body, call: Call): Fields => {
  const all = firstOfEach(asRecords(tools).flatMap((tool) => keepTool(tool, call)))
  const search = all.find((tool) => !isClientTool(tool))
  const kept = all.filter((tool) => tool === search || isClientTool(tool))
  if (kept.length === 0) return {}
  const { name } = asFields(tool_choice)
  const isKept = name === undefined || kept.some((tool) => tool.name === name)
  return { tools: kept, ...(tool_choice !== undefined && isKept && { tool_choice }) }
}

/** A budget has to stay below a cap that the gateway lowered. */
const thinkingWithin = (thinking: Fields, body: Body, cap: number): Fields | undefined => {
  const [budget, asked] = [asCount(thinking.budget_tokens), asCount(body.max_tokens)]
  if (thinking.type !== "enabled" || budget < cap || (asked > 0 && asked <= cap)) return thinking
  const lowered = cap - minAnswer
  return lowered < minBudget ? undefined : { ...thinking, budget_tokens: lowered }
}

/** Compaction by the vendor is charged outside of `usage`. */
const editsOf = (management: unknown, isThinkingOff: boolean): Fields | undefined => {
  const edits = asRecords(asFields(management).edits).filter(({ type }) => {
    const name = asText(type)
    return name.startsWith("clear_") && !(isThinkingOff && name.startsWith("clear_thinking"))
  })
  return edits.length === 0 ? undefined : { ...asFields(management), edits }
}

/** The settings with the nearest effort that the model has, or without one. */
const fitEffort = (config: unknown, effort: NativeRequest["effort"]): Fields => {
  if (effort === undefined || !Predicate.isRecord(config)) return {}
  return { output_config: effort === "none" ? without(config, ["effort"]) : { ...config, effort } }
}

const encode = (call: Call, body: Body): object => {
  const { isStream, options, quirks, request, route } = call
  const given = Predicate.isRecord(body.thinking) ? body.thinking : undefined
  const thinking = given && quirks.thinking ? thinkingWithin(given, body, request.maxTokens) : undefined
  const isOff = !quirks.thinking || (given !== undefined && thinking === undefined)
  const context_management = editsOf(body.context_management, isOff)
  const encoded = {
    ...without(body, [...refused, "context_management", "stream", "thinking", "tool_choice", "tools"]),
    model: route.model,
    max_tokens: request.maxTokens,
    ...fitEffort(body.output_config, request.native?.effort),
    ...(body.service_tier !== undefined && { service_tier: "standard_only" }),
    ...(isStream && { stream: true }),
    ...(thinking && { thinking }),
    ...(context_management && { context_management }),
    ...toolFields(body, call),
    ...(Array.isArray(body.system) && { system: encodeTexts(body.system) }),
    messages: encodeNativeTurns(body.messages, rulesOf(options), quirks.thinking)
  }
  return markNative(encoded, options, request)
}

export const nativeHeaders = ({ native, options: { version } }: Call): Record<string, string> => {
  const { "anthropic-beta": given = "", "anthropic-version": asked = "" } = native?.headers ?? {}
  const betas = keepHarmless([...given.split(","), ...asList(native?.body.betas).map(asText)])
  return {
    "anthropic-version": /^\d{4}-\d{2}-\d{2}$/.test(asked) ? asked : version,
    ...(betas.length > 0 && { "anthropic-beta": betas.join(",") })
  }
}

/** Without those that name what the vendor keeps. */
const answerFields = new Set([
  "content",
  "context_management",
  "id",
  "input_transformations",
  "model",
  "role",
  "stop_details",
  "stop_reason",
  "stop_sequence",
  "type",
  "usage"
])

const eventFields = new Set([
  "content_block",
  "context_management",
  "delta",
  "index",
  "input_transformations",
  "message",
  "type",
  "usage"
])

export const native: NativeFormat<Options, Quirks> = {
  dialect: "messages",
  counting: {
    path: "/v1/messages/count_tokens",
    fields: ["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"],
    decode: ({ input_tokens }) => asCount(input_tokens)
  },
  accepts,
  encode,
  answerFields,
  eventFields,
  answerIn: "message",
  assemble,
  beginsHidden: ({ content_block, type }) => {
    const block = asFields(content_block).type
    return type === "content_block_start" && block !== "text" && block !== "tool_use"
  }
}
