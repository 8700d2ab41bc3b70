import { Predicate } from "effect"
import type { NativeRequest } from "../../domain/Chat.ts"
import { someObject } from "../../domain/Json.ts"
import type { Route } from "../../domain/Model.ts"
import { fitCacheKey } from "../chat/CacheMarks.ts"
import type { ChatCall, NativeFormat } from "../chat/ChatClient.ts"
import { chargedByHosts, inlinesImages } from "../chat/Messages.ts"
import { fitNativeFormat, fitNativeTool } from "../chat/ToolFitting.ts"
import { isFitting } from "../chat/ToolNames.ts"
import type { NameRule, WireRules } from "../chat/WireRules.ts"
import { asCount, asFields, asRecords, asText, type Fields, without, withoutUndefined } from "../client/Json.ts"
import { encodeNativeInput } from "./NativeInput.ts"
import type { Options } from "./Options.ts"
import { minOutput, type Quirks } from "./Request.ts"
import { rulesOf } from "./Rules.ts"

type Body = NativeRequest["body"]
type Call = ChatCall<Options, Quirks>

/** What is charged otherwise, or refers to what the vendor keeps for the operator, or names the customer's users. */
const refused = [
  ...chargedByHosts,
  "background",
  "context_management",
  "conversation",
  "moderation",
  "previous_response_id",
  "prompt",
  "safety_identifier",
  "service_tier",
  "user"
]

const replaced = [
  "max_tool_calls",
  "parallel_tool_calls",
  "prompt_cache_key",
  "prompt_cache_retention",
  "reasoning",
  "stream",
  "stream_options",
  "temperature",
  "tool_choice",
  "tools",
  "top_p"
]

/** Tools that run at the client, or cost nothing but their tokens; `shell` does where its environment is the client's. */
const clientTools: ReadonlySet<unknown> = new Set([
  "apply_patch",
  "custom",
  "function",
  "local_shell",
  "namespace",
  "shell",
  "tool_search"
])
const isSearch = (type: unknown): boolean => asText(type).startsWith("web_search")

const isUrl = (value: unknown): boolean => typeof value === "string" && !/^data:/i.test(value.slice(0, 5))

/** Whether the host refuses a name of the tool. If so, the request is translated, with other names. */
const isMisnamed = ({ name, tools, type }: Fields, rule: NameRule): boolean => {
  if (type === "function" || type === "custom") return !isFitting(asText(name), rule)
  return asRecords(tools).some((tool) => isMisnamed(tool, rule))
}

/** Stored files are the operator's, and an unknown one would look like the route's fault. */
const accepts = (body: Body, route: Route, options: Options): boolean => {
  const { toolName } = rulesOf(options)
  if (options.native === false || isMisnamed({ tools: body.tools }, toolName)) return false
  const inlines = inlinesImages(route)
  return !someObject(
    body.input,
    ({ file_id, file_url, image_url, tools }) =>
      typeof file_id === "string" ||
      (inlines && (isUrl(file_url) || isUrl(image_url))) ||
      (tools !== undefined && isMisnamed({ tools }, toolName))
  )
}

const keepTools = (tools: unknown, call: Call): ReadonlyArray<Fields> =>
  asRecords(tools).flatMap((tool): ReadonlyArray<Fields> => {
    if (isSearch(tool.type)) {
      return call.request.webSearch ? [call.options.web_search ?? { ...tool, type: "web_search" }] : []
    }
    if (!clientTools.has(tool.type)) return []
    if (tool.type === "shell") return asFields(tool.environment).type === "local" ? [tool] : []
    if (tool.type === "function") return [fitNativeTool(tool, "parameters", rulesOf(call.options))]
    if (tool.type !== "namespace") return [tool]
    return [{ ...tool, tools: keepTools(tool.tools, call) }]
  })

/** A choice among tools of which some are gone. */
const keepChoice = (choice: unknown, call: Call): unknown => {
  if (!Predicate.isRecord(choice)) return typeof choice === "string" ? choice : undefined
  const isKept = (tool: Fields) => keepTools([tool], call).length > 0
  if (choice.type !== "allowed_tools") return isKept(choice) ? choice : undefined
  const tools = asRecords(choice.tools).filter(isKept)
  return tools.length === 0 ? undefined : { ...choice, tools }
}

/** Searches are among these calls. */
const callLimit = ({ max_tool_calls: asked }: Body, { maxWebSearches, webSearch }: Call["request"]): unknown => {
  if (!webSearch || maxWebSearches === undefined) return asked
  return Math.min(asCount(asked) || maxWebSearches, maxWebSearches)
}

const toolFields = (body: Body, hasMore: boolean, call: Call): Fields => {
  const tools = keepTools(body.tools, call)
  if (tools.length === 0 && !hasMore) return {}
  const { parallel_tool_calls } = body
  const tool_choice = keepChoice(body.tool_choice, call)
  return withoutUndefined({
    tools: tools.length === 0 ? undefined : tools,
    tool_choice,
    parallel_tool_calls,
    max_tool_calls: call.quirks.callLimit === false ? undefined : callLimit(body, call.request)
  })
}

const encodeReasoning = ({ reasoning }: Body, { options, quirks, request }: Call): Fields | undefined => {
  if (!Predicate.isRecord(reasoning)) return undefined
  const isSummed = quirks.summary && options.reasoning_summary !== "none"
  // The mode `pro` samples several answers.
  const fields = without(reasoning, isSummed ? ["mode"] : ["mode", "summary", "generate_summary"])
  const { effort } = reasoning
  if (typeof effort !== "string") return withoutUndefined(fields)
  // The nearest of the model's efforts; without any, such a model reasons as much as its host likes.
  const isNone = effort === "none" && quirks.noEffort !== false
  return withoutUndefined({ ...fields, effort: isNone ? effort : request.reasoningEffort })
}

const fitText = (text: unknown, rules: WireRules): unknown => {
  if (!Predicate.isRecord(text) || !Predicate.isRecord(text.format)) return text
  const format = fitNativeFormat(text.format, rules)
  return format === text.format ? text : { ...text, format }
}

const encode = (call: Call, body: Body): object => {
  const { isStream, options, quirks, request, route } = call
  const { input, prompt_cache_key: key, prompt_cache_retention, stream_options, temperature, text, top_p } = body
  const rules = rulesOf(options)
  const keep = (tools: unknown) => keepTools(tools, call)
  const items = encodeNativeInput(input, { rules, encrypted: quirks.encrypted, keepTools: keep })
  const hasMore = asRecords(items).some(({ type }) => type === "additional_tools")
  const streams = isStream && quirks.stream
  return {
    ...without(body, [...refused, ...replaced]),
    model: route.model,
    input: items,
    store: false,
    max_output_tokens: Math.max(minOutput, request.maxTokens),
    ...toolFields(body, hasMore, call),
    ...withoutUndefined({
      stream: streams ? true : undefined,
      stream_options: streams ? stream_options : undefined,
      reasoning: encodeReasoning(body, call),
      text: fitText(text, rules),
      prompt_cache_key: typeof key === "string" && quirks.cacheKey !== false ? fitCacheKey(key) : undefined,
      prompt_cache_retention: quirks.cacheRetention === false ? undefined : prompt_cache_retention,
      // What the model's rules left of them: this wire refuses sampling for models that reason.
      temperature: request.temperature === undefined ? undefined : temperature,
      top_p: request.topP === undefined ? undefined : top_p
    })
  }
}

/** Without those that name accounts, or what the vendor keeps. */
const answerFields = new Set([
  "background",
  "completed_at",
  "created_at",
  "id",
  "incomplete_details",
  "instructions",
  "max_output_tokens",
  "max_tool_calls",
  "metadata",
  "model",
  "object",
  "output",
  "output_text",
  "parallel_tool_calls",
  "prompt_cache_key",
  "prompt_cache_options",
  "prompt_cache_retention",
  "reasoning",
  "service_tier",
  "status",
  "store",
  "temperature",
  "text",
  "tool_choice",
  "tools",
  "top_logprobs",
  "top_p",
  "truncation",
  "usage"
])

const eventFields = new Set([
  "annotation",
  "annotation_index",
  "arguments",
  "code",
  "content_index",
  "delta",
  "input",
  "item",
  "item_id",
  "logprobs",
  "name",
  "obfuscation",
  "output_index",
  "part",
  "partial_image_b64",
  "partial_image_index",
  "refusal",
  "response",
  "sequence_number",
  "status",
  "summary_index",
  "text",
  "type"
])

export const native: NativeFormat<Options, Quirks> = {
  dialect: "responses",
  accepts,
  encode,
  answerFields,
  eventFields,
  answerIn: "response",
  assemble: (events) => asFields(events.findLast(({ response }) => response !== undefined)?.response),
  beginsHidden: ({ item, type }) => {
    const kind = asFields(item).type
    return (
      type === "response.output_item.added" && !["message", "function_call", "custom_tool_call"].includes(asText(kind))
    )
  }
}
