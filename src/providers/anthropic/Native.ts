import { Predicate } from "effect"
import { type NativeRequest, unsigned } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import type { ChatCall, NativeFormat } from "../chat/ChatClient.ts"
import { chargedByHosts, inlinesImages, replaceCallId } from "../chat/Messages.ts"
import { asCount, asFields, asList, asRecords, asText, type Fields, without } from "../client/Json.ts"
import { assemble } from "./Assemble.ts"
import { keepHarmless } from "./Betas.ts"
import { markNative } from "./NativeMarks.ts"
import type { Options } from "./Options.ts"
import { minAnswer, minBudget, type Quirks } from "./Request.ts"

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

/** Tools that run at the client, or cost nothing but their tokens. */
const clientTool = /^(custom$|(bash|text_editor|computer|computer_toolset|browser_toolset|memory|tool_search_tool)_)/
const searchTool = /^web_search_/
const thoughts: ReadonlySet<unknown> = new Set(["thinking", "redacted_thinking"])

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

/** Stored files are the operator's, and an unknown one would look like the route's fault. */
const accepts = (body: Body, route: Route, options: Options): boolean => {
  if (options.native === false) return false
  const inlines = inlinesImages(route)
  for (const { source, type } of blocksOf(body)) {
    const kind = asFields(source).type
    if (type === "container_upload" || kind === "file" || (inlines && kind === "url")) return false
  }
  return true
}

const isClientTool = ({ type }: Fields): boolean => clientTool.test(asText(type) || "custom")

const keepTool = (tool: Fields, { maxWebSearches = 1, webSearch }: Call["request"]): ReadonlyArray<Fields> => {
  if (isClientTool(tool)) return [tool]
  if (!webSearch || !searchTool.test(asText(tool.type))) return []
  return [{ ...tool, max_uses: Math.min(asCount(tool.max_uses) || maxWebSearches, maxWebSearches) }]
}

const toolFields = ({ tool_choice, tools }: Body, request: Call["request"]): Fields => {
  const all = asRecords(tools).flatMap((tool) => keepTool(tool, request))
  const search = all.find((tool) => !isClientTool(tool))
  const kept = all.filter((tool) => tool === search || isClientTool(tool))
  if (kept.length === 0) return {}
  const { name } = asFields(tool_choice)
  const isKept = name === undefined || kept.some((tool) => tool.name === name)
  return { tools: kept, ...(tool_choice !== undefined && isKept && { tool_choice }) }
}

/** The vendor's pattern; a call of another vendor, before a failover, may have any id. */
const callId = (id: unknown): unknown =>
  typeof id === "string" && !/^[a-zA-Z0-9_-]{1,64}$/.test(id) ? replaceCallId(id) : id

const encodeBlock = (block: Fields): ReadonlyArray<Fields> => {
  switch (block.type) {
    case "thinking":
      return block.signature === unsigned ? [] : [block]
    case "tool_use":
      return [{ ...block, id: callId(block.id) }]
    case "tool_result":
      return [{ ...block, tool_use_id: callId(block.tool_use_id) }]
    case "tool_addition": {
      const { definition, type } = asFields(block.tool)
      return type === "tool_reference" || (definition !== undefined && isClientTool(asFields(definition)))
        ? [block]
        : []
    }
    case "compaction":
      return [without(block, ["tool_changes"])]
    default:
      return [block]
  }
}

const encodeMessage = (message: unknown, keepsThoughts: boolean): ReadonlyArray<unknown> => {
  const { content } = asFields(message)
  if (!Array.isArray(content)) return [message]
  const kept = content.flatMap((block): ReadonlyArray<unknown> => {
    if (typeof block !== "object" || block === null) return [block]
    return !keepsThoughts && thoughts.has(asFields(block).type) ? [] : encodeBlock(asFields(block))
  })
  return kept.length === 0 && content.length > 0 ? [] : [{ ...asFields(message), content: kept }]
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

const encode = ({ isStream, options, quirks, request, route }: Call, body: Body): object => {
  const given = Predicate.isRecord(body.thinking) ? body.thinking : undefined
  const thinking = given && quirks.thinking ? thinkingWithin(given, body, request.maxTokens) : undefined
  const isOff = !quirks.thinking || (given !== undefined && thinking === undefined)
  const context_management = editsOf(body.context_management, isOff)
  const encoded = {
    ...without(body, [...refused, "context_management", "stream", "thinking", "tool_choice", "tools"]),
    model: route.model,
    max_tokens: request.maxTokens,
    ...(body.service_tier !== undefined && { service_tier: "standard_only" }),
    ...(isStream && { stream: true }),
    ...(thinking && { thinking }),
    ...(context_management && { context_management }),
    ...toolFields(body, request),
    messages: asList(body.messages).flatMap((message) => encodeMessage(message, quirks.thinking))
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
