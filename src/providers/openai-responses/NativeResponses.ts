import { Predicate } from "effect"
import { type NativeRequest, unsignedMark } from "../../domain/Chat.ts"
import { someObject } from "../../domain/Json.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { replaceLoneSurrogates } from "../../domain/JsonText.ts"
import type { Route } from "../../domain/Model.ts"
import { fitCacheKey } from "../chat/CacheMarks.ts"
import type { ChatCall, NativeFormat } from "../chat/ChatClient.ts"
import { fitNativeFormat, fitNativeTool } from "../chat/Fitting.ts"
import { billedParameters, inlinesImages, toObjectText } from "../chat/Messages.ts"
import { CallIds, missingResultText, type SentCall } from "../chat/ToolCalls.ts"
import { fitName, matchesRule } from "../chat/ToolNames.ts"
import type { NameRule, WireRules } from "../chat/WireRules.ts"
import { asCount, asFields, asRecords, asText, type Fields, without, withoutUndefined } from "../client/JsonFields.ts"
import { minOutput, type Options, type Quirks, rulesOf } from "./ResponsesRequest.ts"

/** Items sent without `id`. With one, the provider would look them up, or require the reasoning before them. */
const itemsWithoutId: ReadonlySet<unknown> = new Set([
  "message",
  "reasoning",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output"
])

/** Without encrypted content, a reasoning item only refers to data that is not stored. */
const isDecryptable = ({ encrypted_content: content }: Fields): boolean =>
  typeof content === "string" && content !== "" && content !== unsignedMark

const isReference = (item: Fields): boolean =>
  item.type === "item_reference" || ((item.type ?? null) === null && item.role === undefined)

interface InputRules {
  readonly rules: WireRules
  /** Whether the provider can decrypt earlier reasoning. */
  readonly canDecrypt: boolean
  readonly filterTools: (tools: unknown) => ReadonlyArray<Fields>
}

const isOutput = (item: Fields): boolean => asText(item.type).endsWith("_output")

/** Changes the name and arguments of a call to what the provider accepts. */
const encodeCall = (item: Fields, { callArguments, toolName }: WireRules): Fields => {
  const { arguments: callArgs, name, type } = item
  const hasText = type === "function_call" && callArguments === "text"
  return {
    ...(typeof name === "string" && { name: fitName(name, toolName) }),
    ...(hasText && {
      arguments: toObjectText(
        typeof callArgs === "string" ? replaceLoneSurrogates(callArgs) : stringify(callArgs ?? null)
      )
    })
  }
}

/** Replacements for missing results, by the type of the call. */
const missingResults: Readonly<Record<string, (call_id: string) => Fields>> = {
  function_call: (call_id) => ({ type: "function_call_output", call_id, output: missingResultText }),
  custom_tool_call: (call_id) => ({ type: "custom_tool_call_output", call_id, output: missingResultText }),
  // Codex answers these calls the same way.
  local_shell_call: (call_id) => ({ type: "function_call_output", call_id, output: missingResultText }),
  apply_patch_call: (call_id) => ({
    type: "apply_patch_call_output",
    call_id,
    status: "failed",
    output: missingResultText
  }),
  shell_call: (call_id) => ({
    type: "shell_call_output",
    call_id,
    output: [{ stdout: "", stderr: missingResultText, outcome: { type: "exit", exit_code: 130 } }]
  })
}

/** Adds missing results after each run of calls. */
const addMissingResults = (
  items: ReadonlyArray<Fields>,
  calls: ReadonlyMap<number, SentCall<number>>
): ReadonlyArray<Fields> => {
  const completedItems: Array<Fields> = []
  let missingItems: Array<Fields> = []
  for (const [at, item] of items.entries()) {
    const call = calls.get(at)
    if (call === undefined) {
      completedItems.push(...missingItems)
      missingItems = []
    } else if (call.result === undefined) {
      const make = missingResults[asText(item.type)]
      if (make !== undefined) missingItems.push(make(call.id))
    }
    completedItems.push(item)
  }
  return [...completedItems, ...missingItems]
}

/** Changes ids, names and arguments of native items to what the provider accepts. */
const encodeNativeInput = (input: unknown, { canDecrypt, filterTools, rules }: InputRules): unknown => {
  if (!Array.isArray(input)) return input
  const ids = new CallIds<number>(rules.callId)
  const items: Array<Fields> = []
  const calls = new Map<number, SentCall<number>>()
  let hasTurnEnded = true

  const findPosition = (id: string, at: number): { readonly id: string; readonly at: number } => {
    const call = ids.findCall(id)
    if (call === undefined) return { id: ids.fitUnmatched(id), at }
    call.result ??= at
    return { id: call.id, at: call.result }
  }
  const add = (item: Fields): void => {
    const { call_id: id, tools } = item
    const encoded = {
      ...(itemsWithoutId.has(item.type ?? "message") ? without(item, ["id"]) : item),
      ...(tools !== undefined && { tools: filterTools(tools) })
    }
    if (typeof id !== "string") {
      hasTurnEnded ||= item.role !== undefined && item.role !== "assistant"
      items.push(encoded)
    } else if (isOutput(item)) {
      hasTurnEnded = true
      const { at, id: call_id } = findPosition(id, items.length)
      items[at] = { ...encoded, call_id }
    } else {
      if (hasTurnEnded) ids.beginTurn()
      hasTurnEnded = false
      const call = ids.addCall(id)
      calls.set(items.length, call)
      items.push({ ...encoded, call_id: call.id, ...encodeCall(item, rules) })
    }
  }

  for (const item of asRecords(input)) {
    if (isReference(item) || item.type === "compaction_trigger") continue
    if (item.type === "reasoning" && !(canDecrypt && isDecryptable(item))) continue
    add(item)
  }
  return [...calls.values()].some(({ result }) => result === undefined) ? addMissingResults(items, calls) : items
}

type Body = NativeRequest["body"]
type Call = ChatCall<Options, Quirks>

/** Fields that change the price, refer to data that the vendor stores for the operator, or name the customer's users. */
const droppedFields = [
  ...billedParameters,
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

const replacedFields = [
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

/** Tools that run at the client, or cost nothing beyond their tokens. `shell` needs a local environment. */
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

/** Whether the provider refuses the tool's name. If so, the request is translated, which replaces names. */
const isMisnamed = ({ name, tools, type }: Fields, rule: NameRule): boolean => {
  if (type === "function" || type === "custom") return !matchesRule(asText(name), rule)
  return asRecords(tools).some((tool) => isMisnamed(tool, rule))
}

/** Declines stored files: they belong to the operator, and an unknown one would look like a failure of the route. */
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

const filterTools = (tools: unknown, call: Call): ReadonlyArray<Fields> =>
  asRecords(tools).flatMap((tool): ReadonlyArray<Fields> => {
    if (isSearch(tool.type)) {
      return call.request.webSearch ? [call.options.web_search ?? { ...tool, type: "web_search" }] : []
    }
    if (!clientTools.has(tool.type)) return []
    if (tool.type === "shell") return asFields(tool.environment).type === "local" ? [tool] : []
    if (tool.type === "function") return [fitNativeTool(tool, "parameters", rulesOf(call.options))]
    if (tool.type !== "namespace") return [tool]
    return [{ ...tool, tools: filterTools(tool.tools, call) }]
  })

/** Removes dropped tools from the tool choice. */
const filterChoice = (choice: unknown, call: Call): unknown => {
  if (!Predicate.isRecord(choice)) return typeof choice === "string" ? choice : undefined
  const isSent = (tool: Fields) => filterTools([tool], call).length > 0
  if (choice.type !== "allowed_tools") return isSent(choice) ? choice : undefined
  const tools = asRecords(choice.tools).filter(isSent)
  return tools.length === 0 ? undefined : { ...choice, tools }
}

/** The provider counts searches as calls, so its limit must not exceed the gateway's limit of searches. */
const fitCallLimit = (
  { max_tool_calls: requestedLimit }: Body,
  { maxWebSearches, webSearch }: Call["request"]
): unknown => {
  if (!webSearch || maxWebSearches === undefined) return requestedLimit
  return Math.min(asCount(requestedLimit) || maxWebSearches, maxWebSearches)
}

const toolFields = (body: Body, hasInputTools: boolean, call: Call): Fields => {
  const tools = filterTools(body.tools, call)
  if (tools.length === 0 && !hasInputTools) return {}
  const { parallel_tool_calls } = body
  const tool_choice = filterChoice(body.tool_choice, call)
  return withoutUndefined({
    tools: tools.length === 0 ? undefined : tools,
    tool_choice,
    parallel_tool_calls,
    max_tool_calls: call.quirks.callLimit === false ? undefined : fitCallLimit(body, call.request)
  })
}

const encodeReasoning = ({ reasoning }: Body, { options, quirks, request }: Call): Fields | undefined => {
  if (!Predicate.isRecord(reasoning)) return undefined
  const keepsSummary = quirks.summary && options.reasoning_summary !== "none"
  // The mode `pro` samples several answers, which costs more.
  const fields = without(reasoning, keepsSummary ? ["mode"] : ["mode", "summary", "generate_summary"])
  const { effort } = reasoning
  if (typeof effort !== "string") return withoutUndefined(fields)
  // Uses the closest effort that the model supports. Without one, the provider decides how much the model reasons.
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
  const filterBodyTools = (tools: unknown) => filterTools(tools, call)
  const items = encodeNativeInput(input, { rules, canDecrypt: quirks.encrypted, filterTools: filterBodyTools })
  const hasInputTools = asRecords(items).some(({ type }) => type === "additional_tools")
  const isStreamSent = isStream && quirks.stream
  return {
    ...without(body, [...droppedFields, ...replacedFields]),
    model: route.model,
    input: items,
    store: false,
    max_output_tokens: Math.max(minOutput, request.maxTokens),
    ...toolFields(body, hasInputTools, call),
    ...withoutUndefined({
      stream: isStreamSent ? true : undefined,
      stream_options: isStreamSent ? stream_options : undefined,
      reasoning: encodeReasoning(body, call),
      text: fitText(text, rules),
      prompt_cache_key: typeof key === "string" && quirks.cacheKey !== false ? fitCacheKey(key) : undefined,
      prompt_cache_retention: quirks.cacheRetention === false ? undefined : prompt_cache_retention,
      // The model's rules may have removed them. This wire format refuses sampling for reasoning models.
      temperature: request.temperature === undefined ? undefined : temperature,
      top_p: request.topP === undefined ? undefined : top_p
    })
  }
}

/** Excludes fields that name accounts or data stored by the vendor. */
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
  answerField: "response",
  assemble: (events) => asFields(events.findLast(({ response }) => response !== undefined)?.response),
  startsHiddenOutput: ({ item, type }) => {
    const kind = asFields(item).type
    return (
      type === "response.output_item.added" && !["message", "function_call", "custom_tool_call"].includes(asText(kind))
    )
  }
}
