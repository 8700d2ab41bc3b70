import { Predicate } from "effect"
import type { NativeRequest } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import type { ChatCall, NativeFormat } from "../chat/ChatClient.ts"
import { chargedByHosts, inlinesImages } from "../chat/Messages.ts"
import { fitNativeTool } from "../chat/ToolFitting.ts"
import { isFitting } from "../chat/ToolNames.ts"
import type { NameRule } from "../chat/WireRules.ts"
import { asCount, asFields, asList, asRecords, asText, type Fields, without } from "../client/Json.ts"
import { assemble } from "./Assemble.ts"
import { keepHarmless } from "./Betas.ts"
import { markNative } from "./NativeMarks.ts"
import { encodeNativeTurns, encodeTexts, isClientTool } from "./NativeTurns.ts"
import type { Options } from "./Options.ts"
import { minAnswer, minBudget, type Quirks } from "./Request.ts"
import { rulesOf } from "./Rules.ts"

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
