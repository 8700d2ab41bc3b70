import { Predicate } from "effect"
import type { ChatRequest, NativeRequest } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import { endsOf, ephemeral, minCharacters } from "../chat/CacheMarks.ts"
import { CallArguments } from "../chat/CallArguments.ts"
import type { ChatCall, NativeFormat } from "../chat/ChatClient.ts"
import { fitNativeTool } from "../chat/Fitting.ts"
import { billedParameters, inlinesImages } from "../chat/Messages.ts"
import { matchesRule } from "../chat/ToolNames.ts"
import type { NameRule } from "../chat/WireRules.ts"
import {
  asCount,
  asFields,
  asList,
  asRecords,
  asText,
  type Fields,
  parseJsonExact,
  without
} from "../client/JsonFields.ts"
import { minAnswer, minBudget, type Options, type Quirks, rulesOf } from "./AnthropicRequest.ts"
import { encodeNativeTurns, encodeTexts, isClientTool } from "./NativeTurns.ts"

/** Betas that neither raise the cost above the hold nor change who can read data stored by the provider. */
const allowedBetas = [
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

const allowedBetaPattern = new RegExp(`^(${allowedBetas.join("|")})-\\d{4}-?\\d{2}-?\\d{2}$`)
const maxBetaLength = 64
/** Clients send up to about 15 betas. Providers refuse long headers. */
const maxBetas = 32

/** Returns the allowed betas. Others are dropped, like unknown fields of a body. */
export const filterBetas = (betas: ReadonlyArray<string>): ReadonlyArray<string> => {
  const allowed = new Set<string>()
  for (const entry of betas) {
    if (entry.length > maxBetaLength) continue
    const beta = entry.trim().toLowerCase()
    if (allowedBetaPattern.test(beta)) allowed.add(beta)
    if (allowed.size === maxBetas) break
  }
  return [...allowed]
}

const hasCacheControl = ({ cache_control }: Fields): boolean => cache_control !== undefined && cache_control !== null

/** Fields of a block that may contain one or several other blocks. */
const nestedBlockFields = ["content", "source", "tool", "definition"]

const hasBreakpoint = (blocks: unknown): boolean =>
  asRecords(Predicate.isRecord(blocks) ? [blocks] : blocks).some(
    (block) => hasCacheControl(block) || nestedBlockFields.some((name) => hasBreakpoint(block[name]))
  )

const hasAnyBreakpoint = (body: Fields): boolean =>
  hasCacheControl(body) || hasBreakpoint(body.tools) || hasBreakpoint(body.system) || hasBreakpoint(body.messages)

const mayContinue = ({ messages, tool_choice, tools }: Fields): boolean =>
  asRecords(messages).some(({ role }) => role === "assistant") ||
  (asList(tools).length > 0 && (asFields(tool_choice).type ?? "auto") === "auto")

/** Returns the total length of all texts in a value, counted up to about `limit`. */
const lengthIn = (value: unknown, limit: number): number => {
  if (typeof value === "string") return value.length
  let length = 0
  for (const member of Predicate.isObject(value) ? Object.values(value) : []) {
    length += lengthIn(member, limit - length)
    if (length >= limit) break
  }
  return length
}

const isCacheable = (body: Fields): boolean =>
  mayContinue(body) && lengthIn([body.system, body.messages, body.tools], minCharacters) >= minCharacters

const canHaveBreakpoint = (block: unknown): boolean => {
  const { text, type } = asFields(block)
  return type === "text"
    ? asText(text).trim() !== ""
    : type === "image" || type === "document" || type === "tool_result"
}

const addBreakpointAt = (blocks: ReadonlyArray<unknown>, at: number): ReadonlyArray<unknown> =>
  blocks.map((block, index) => (index === at ? { ...asFields(block), cache_control: ephemeral } : block))

/** Adds a breakpoint to the last block that can have one. A plain text becomes a block. */
const addContentBreakpoint = (content: unknown): unknown => {
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : asList(content)
  const at = blocks.findLastIndex(canHaveBreakpoint)
  return at < 0 ? content : addBreakpointAt(blocks, at)
}

/** A tool with deferred loading cannot have a breakpoint. */
const addToolBreakpoint = (tools: unknown): unknown => {
  const at = asList(tools).findLastIndex((tool) => asFields(tool).defer_loading !== true)
  return at < 0 ? tools : addBreakpointAt(asList(tools), at)
}

const addBreakpoints = (body: Fields): Fields => {
  const ends = new Set(endsOf(asList(body.messages).map(asFields)))
  const messages = asList(body.messages).map((message, at) =>
    ends.has(at) ? { ...asFields(message), content: addContentBreakpoint(asFields(message).content) } : message
  )
  const system = addContentBreakpoint(body.system)
  if (system !== body.system) return { ...body, messages, system }
  return { ...body, messages, ...("tools" in body && { tools: addToolBreakpoint(body.tools) }) }
}

type UnpricedBreakpoints = NonNullable<ChatRequest["unpricedBreakpoints"]>

const dropUnpriced = <A>(value: A, unpriced: UnpricedBreakpoints): A | Fields => {
  if (!Predicate.isRecord(value)) return value
  const fields: Record<string, unknown> = { ...value }
  if (hasCacheControl(value)) fields.cache_control = unpriced === "all" ? undefined : ephemeral
  for (const name of nestedBlockFields) if (name in value) fields[name] = dropUnpricedIn(value[name], unpriced)
  return fields
}

const dropUnpricedIn = (blocks: unknown, unpriced: UnpricedBreakpoints): unknown =>
  Array.isArray(blocks) ? blocks.map((block) => dropUnpriced(block, unpriced)) : dropUnpriced(blocks, unpriced)

const dropUnpricedBody = (body: Fields, unpriced: UnpricedBreakpoints): Fields => {
  const lists = Object.entries(body).filter(([name]) => name === "tools" || name === "system" || name === "messages")
  const cleaned = lists.map(([name, value]) => [name, dropUnpricedIn(value, unpriced)] as const)
  return { ...asFields(dropUnpriced(body, unpriced)), ...Object.fromEntries(cleaned) }
}

/** Removes breakpoints that have no price. With `cache: auto`, adds breakpoints to a conversation without any. */
export const fitNativeBreakpoints = (
  body: Fields,
  { cache }: Pick<Options, "cache">,
  { unpricedBreakpoints }: ChatRequest
): Fields => {
  if (hasAnyBreakpoint(body))
    return unpricedBreakpoints === undefined ? body : dropUnpricedBody(body, unpricedBreakpoints)
  return cache === "auto" && unpricedBreakpoints !== "all" && isCacheable(body) ? addBreakpoints(body) : body
}

/** The text field of a block by the type of its delta. */
const textFieldByDelta: Readonly<Record<string, string>> = { text_delta: "text", thinking_delta: "thinking" }

const applyDelta = (block: Fields, delta: Fields): Fields => {
  const { type, ...changes } = delta
  const field = textFieldByDelta[asText(type)]
  if (field !== undefined) return { ...block, [field]: asText(block[field]) + asText(delta[field]) }
  if (type === "citations_delta") return { ...block, citations: [...asList(block.citations), delta.citation] }
  return { ...block, ...changes }
}

interface OpenBlock {
  block: Fields
  /** The input received in pieces. Undefined if the initial input counts. */
  input: string | undefined
  readonly callArguments: CallArguments
}

const takeDelta = (open: OpenBlock, delta: Fields): void => {
  if (delta.type === "input_json_delta") {
    open.input = (open.input ?? "") + (open.callArguments.take(asText(delta.partial_json)) ?? "")
  } else open.block = applyDelta(open.block, delta)
}

const toBlock = ({ block, callArguments, input }: OpenBlock): Fields => {
  const value = input === undefined ? undefined : parseJsonExact(input + (callArguments.end() ?? ""))
  return value === undefined ? block : { ...block, input: value }
}

/** Builds the message from all events of a stream. */
const assemble = (events: ReadonlyArray<Fields>): Fields => {
  let message: Fields = {}
  const blocks = new Map<unknown, OpenBlock>()
  for (const { content_block, delta, index, message: startMessage, type, usage, ...otherFields } of events) {
    const change = asFields(delta)
    const open = blocks.get(index)
    if (type === "message_start") message = asFields(startMessage)
    else if (type === "content_block_start") {
      blocks.set(index, { block: asFields(content_block), input: undefined, callArguments: new CallArguments() })
    } else if (type === "content_block_delta" && open !== undefined) takeDelta(open, change)
    else if (type === "message_delta") {
      message = { ...message, ...otherFields, ...change, usage: { ...asFields(message.usage), ...asFields(usage) } }
    }
  }
  return { ...message, content: [...blocks.values()].map(toBlock) }
}

type Body = NativeRequest["body"]
type Call = ChatCall<Options, Quirks>

/**
 * Fields that cause charges beyond the tokens in `usage`, charge somebody else, or refer to data that the vendor stores
 * for the operator. Betas are sent as headers.
 */
const droppedFields = [
  ...billedParameters,
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

/** Yields all blocks, also nested ones. The content of a provider tool's result may be one block instead of a list. */
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

/** Whether the provider accepts all tool names. If not, the request is translated, which replaces names. */
const hasFittingNames = ({ tools }: Body, rule: NameRule): boolean =>
  asRecords(tools).every((tool) => !isCustom(tool) || matchesRule(asText(tool.name), rule))

/** Declines stored files: they belong to the operator, and an unknown one would look like a failure of the route. */
const accepts = (body: Body, route: Route, options: Options): boolean => {
  if (options.native === false || !hasFittingNames(body, rulesOf(options).toolName)) return false
  const inlines = inlinesImages(route)
  for (const { source, type } of blocksOf(body)) {
    const kind = asFields(source).type
    if (type === "container_upload" || kind === "file" || (inlines && kind === "url")) return false
  }
  return true
}

const fitTool = (tool: Fields, { options, request }: Call): ReadonlyArray<Fields> => {
  if (isClientTool(tool)) return [isCustom(tool) ? fitNativeTool(tool, "input_schema", rulesOf(options)) : tool]
  const { maxWebSearches = 1, webSearch } = request
  if (!webSearch || !searchTool.test(asText(tool.type))) return []
  return [{ ...tool, max_uses: Math.min(asCount(tool.max_uses) || maxWebSearches, maxWebSearches) }]
}

/** The provider refuses duplicate tool names, and a call could not distinguish the tools. */
const deduplicateTools = (tools: ReadonlyArray<Fields>): ReadonlyArray<Fields> => {
  const names = new Set<unknown>()
  return tools.filter(({ name }) => {
    const isNew = name === undefined || !names.has(name)
    names.add(name)
    return isNew
  })
}

const toolFields = ({ tool_choice, tools }: Body, call: Call): Fields => {
  const fittedTools = deduplicateTools(asRecords(tools).flatMap((tool) => fitTool(tool, call)))
  const search = fittedTools.find((tool) => !isClientTool(tool))
  const sentTools = fittedTools.filter((tool) => tool === search || isClientTool(tool))
  if (sentTools.length === 0) return {}
  const { name } = asFields(tool_choice)
  const isChoiceSent = name === undefined || sentTools.some((tool) => tool.name === name)
  return { tools: sentTools, ...(tool_choice !== undefined && isChoiceSent && { tool_choice }) }
}

/** Keeps the thinking budget below a lowered `max_tokens`. Returns undefined if too little would remain for thinking. */
const fitThinking = (thinking: Fields, body: Body, cap: number): Fields | undefined => {
  const [budget, clientCap] = [asCount(thinking.budget_tokens), asCount(body.max_tokens)]
  if (thinking.type !== "enabled" || budget < cap || (clientCap > 0 && clientCap <= cap)) return thinking
  const loweredBudget = cap - minAnswer
  return loweredBudget < minBudget ? undefined : { ...thinking, budget_tokens: loweredBudget }
}

/** Keeps only edits that clear content. The vendor bills compaction outside of `usage`. */
const filterEdits = (management: unknown, isThinkingOff: boolean): Fields | undefined => {
  const edits = asRecords(asFields(management).edits).filter(({ type }) => {
    const name = asText(type)
    return name.startsWith("clear_") && !(isThinkingOff && name.startsWith("clear_thinking"))
  })
  return edits.length === 0 ? undefined : { ...asFields(management), edits }
}

/** Replaces the effort with the closest one that the model supports, or removes it. */
const fitEffort = (config: unknown, effort: NativeRequest["effort"]): Fields => {
  if (effort === undefined || !Predicate.isRecord(config)) return {}
  return { output_config: effort === "none" ? without(config, ["effort"]) : { ...config, effort } }
}

const encode = (call: Call, body: Body): object => {
  const { isStream, options, quirks, request, route } = call
  const requestedThinking = Predicate.isRecord(body.thinking) ? body.thinking : undefined
  const thinking =
    requestedThinking && quirks.thinking ? fitThinking(requestedThinking, body, request.maxTokens) : undefined
  const isThinkingOff = !quirks.thinking || (requestedThinking !== undefined && thinking === undefined)
  const context_management = filterEdits(body.context_management, isThinkingOff)
  const encoded = {
    ...without(body, [...droppedFields, "context_management", "stream", "thinking", "tool_choice", "tools"]),
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
  return fitNativeBreakpoints(encoded, options, request)
}

export const nativeHeaders = ({ native, options: { version } }: Call): Record<string, string> => {
  const { "anthropic-beta": betaHeader = "", "anthropic-version": requestedVersion = "" } = native?.headers ?? {}
  const betas = filterBetas([...betaHeader.split(","), ...asList(native?.body.betas).map(asText)])
  return {
    "anthropic-version": /^\d{4}-\d{2}-\d{2}$/.test(requestedVersion) ? requestedVersion : version,
    ...(betas.length > 0 && { "anthropic-beta": betas.join(",") })
  }
}

/** Excludes fields that refer to data stored by the vendor. */
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
  tokenCounting: {
    path: "/v1/messages/count_tokens",
    fields: ["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"],
    decode: ({ input_tokens }) => asCount(input_tokens)
  },
  accepts,
  encode,
  answerFields,
  eventFields,
  answerField: "message",
  assemble,
  startsHiddenOutput: ({ content_block, type }) => {
    const block = asFields(content_block).type
    return type === "content_block_start" && block !== "text" && block !== "tool_use"
  }
}
