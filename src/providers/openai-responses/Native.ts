import { Predicate } from "effect"
import { type NativeRequest, unsigned } from "../../domain/Chat.ts"
import { someObject } from "../../domain/Json.ts"
import { withWholePairs } from "../../domain/JsonText.ts"
import { type Route, reasoningEfforts } from "../../domain/Model.ts"
import { fitCacheKey } from "../chat/CacheMarks.ts"
import type { ChatCall, NativeFormat } from "../chat/ChatClient.ts"
import { chargedByHosts, fitCallId, inlinesImages } from "../chat/Messages.ts"
import { asCount, asFields, asRecords, asText, type Fields, without, withoutUndefined } from "../client/Json.ts"
import type { Options } from "./Options.ts"
import { longestCallId, minOutput, type Quirks } from "./Request.ts"

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

/** Stored files are the operator's, and an unknown one would look like the route's fault. */
const accepts = (body: Body, route: Route, options: Options): boolean => {
  if (options.native === false) return false
  const inlines = inlinesImages(route)
  return !someObject(
    body.input,
    ({ file_id, file_url, image_url }) =>
      typeof file_id === "string" || (inlines && (isUrl(file_url) || isUrl(image_url)))
  )
}

const keepTools = (tools: unknown, call: Call): ReadonlyArray<Fields> =>
  asRecords(tools).flatMap((tool): ReadonlyArray<Fields> => {
    if (isSearch(tool.type)) {
      return call.request.webSearch ? [call.options.web_search ?? { ...tool, type: "web_search" }] : []
    }
    if (!clientTools.has(tool.type)) return []
    if (tool.type === "shell") return asFields(tool.environment).type === "local" ? [tool] : []
    if (tool.type !== "namespace") return [tool]
    return [{ ...tool, tools: keepTools(tool.tools, call) }]
  })

/** A choice among tools of which some are gone. */
const keepChoice = (choice: unknown, call: Call): unknown => {
  if (!Predicate.isRecord(choice)) return typeof choice === "string" ? choice : undefined
  if (choice.type !== "allowed_tools") return keepTools([choice], call).length > 0 ? choice : undefined
  const tools = keepTools(choice.tools, call)
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

/** The host would look these up by their ids, or demand the reasoning before them. */
const unnamed: ReadonlySet<unknown> = new Set([
  "message",
  "reasoning",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output"
])

/** Without its encrypted content, reasoning is a reference to what is not stored. */
const isReadable = ({ encrypted_content: content }: Fields): boolean =>
  typeof content === "string" && content !== "" && content !== unsigned

const isReference = (item: Fields): boolean =>
  item.type === "item_reference" || ((item.type ?? null) === null && item.role === undefined)

const encodeItem = (item: Fields, call: Call): ReadonlyArray<Fields> => {
  if (isReference(item) || item.type === "compaction_trigger") return []
  if (item.type === "reasoning" && !(call.quirks.encrypted && isReadable(item))) return []
  const { arguments: text, call_id, tools } = item
  return [
    {
      ...(unnamed.has(item.type ?? "message") ? without(item, ["id"]) : item),
      ...(typeof call_id === "string" && { call_id: fitCallId(call_id, longestCallId) }),
      ...(typeof text === "string" && { arguments: withWholePairs(text) }),
      ...(tools !== undefined && { tools: keepTools(tools, call) })
    }
  ]
}

const encodeReasoning = ({ reasoning }: Body, { options, quirks, request }: Call): Fields | undefined => {
  if (!Predicate.isRecord(reasoning)) return undefined
  const isKnown = reasoningEfforts.some((effort) => effort === reasoning.effort)
  const isSummed = quirks.summary && options.reasoning_summary !== "none"
  // The mode `pro` samples several answers.
  const fields = without(reasoning, isSummed ? ["mode"] : ["mode", "summary", "generate_summary"])
  return withoutUndefined(isKnown ? { ...fields, effort: request.reasoningEffort } : fields)
}

const encode = (call: Call, body: Body): object => {
  const { isStream, quirks, request, route } = call
  const { input, prompt_cache_key: key, prompt_cache_retention, stream_options, temperature, top_p } = body
  const items = Array.isArray(input) ? asRecords(input).flatMap((item) => encodeItem(item, call)) : input
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
