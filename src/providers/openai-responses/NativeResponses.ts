import { Predicate } from "effect"
import { unsigned } from "../../domain/CallId.ts"
import type { NativeRequest } from "../../domain/Chat.ts"
import { someObject } from "../../domain/Json.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { withWholePairs } from "../../domain/JsonText.ts"
import type { Route } from "../../domain/Model.ts"
import { fitCacheKey } from "../chat/CacheMarks.ts"
import type { ChatCall, NativeFormat } from "../chat/ChatClient.ts"
import { fitNativeFormat, fitNativeTool } from "../chat/Fitting.ts"
import { chargedByHosts, inlinesImages, objectText } from "../chat/Messages.ts"
import { CallIds, noResult, type SentCall } from "../chat/ToolCalls.ts"
import { fitName, isFitting } from "../chat/ToolNames.ts"
import type { NameRule, WireRules } from "../chat/WireRules.ts"
import { asCount, asFields, asRecords, asText, type Fields, without, withoutUndefined } from "../client/Json.ts"
import { minOutput, type Options, type Quirks, rulesOf } from "./ResponsesRequest.ts"

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

interface InputRules {
  readonly rules: WireRules
  /** Whether the host can read what it has encrypted. */
  readonly encrypted: boolean
  readonly keepTools: (tools: unknown) => ReadonlyArray<Fields>
}

const isOutput = (item: Fields): boolean => asText(item.type).endsWith("_output")

/** A call in terms of the host's rules. */
const encodeCall = (item: Fields, { callArguments, toolName }: WireRules): Fields => {
  const { arguments: given, name, type } = item
  const hasText = type === "function_call" && callArguments === "text"
  return {
    ...(typeof name === "string" && { name: fitName(name, toolName) }),
    ...(hasText && {
      arguments: objectText(typeof given === "string" ? withWholePairs(given) : stringify(given ?? null))
    })
  }
}

/** Results that stand for those which the client never sent, by the type of their call. */
const missingResults: Readonly<Record<string, (call_id: string) => Fields>> = {
  function_call: (call_id) => ({ type: "function_call_output", call_id, output: noResult }),
  custom_tool_call: (call_id) => ({ type: "custom_tool_call_output", call_id, output: noResult }),
  // Codex answers such calls so.
  local_shell_call: (call_id) => ({ type: "function_call_output", call_id, output: noResult }),
  apply_patch_call: (call_id) => ({ type: "apply_patch_call_output", call_id, status: "failed", output: noResult }),
  shell_call: (call_id) => ({
    type: "shell_call_output",
    call_id,
    output: [{ stdout: "", stderr: noResult, outcome: { type: "exit", exit_code: 130 } }]
  })
}

/** Puts a result behind each run of calls for those among them that have none. */
const answerAll = (
  items: ReadonlyArray<Fields>,
  calls: ReadonlyMap<number, SentCall<number>>
): ReadonlyArray<Fields> => {
  const answered: Array<Fields> = []
  let missing: Array<Fields> = []
  for (const [at, item] of items.entries()) {
    const call = calls.get(at)
    if (call === undefined) {
      answered.push(...missing)
      missing = []
    } else if (call.result === undefined) {
      const make = missingResults[asText(item.type)]
      if (make !== undefined) missing.push(make(call.id))
    }
    answered.push(item)
  }
  return [...answered, ...missing]
}

/** The client's own items, with ids, names and arguments that the host takes. */
const encodeNativeInput = (input: unknown, { encrypted, keepTools, rules }: InputRules): unknown => {
  if (!Array.isArray(input)) return input
  const ids = new CallIds<number>(rules.callId)
  const items: Array<Fields> = []
  const calls = new Map<number, SentCall<number>>()
  let isAnswered = true

  const placeOf = (id: string, at: number): { readonly id: string; readonly at: number } => {
    const call = ids.answer(id)
    if (call === undefined) return { id: ids.fit(id), at }
    call.result ??= at
    return { id: call.id, at: call.result }
  }
  const add = (item: Fields): void => {
    const { call_id: id, tools } = item
    const encoded = {
      ...(unnamed.has(item.type ?? "message") ? without(item, ["id"]) : item),
      ...(tools !== undefined && { tools: keepTools(tools) })
    }
    if (typeof id !== "string") {
      isAnswered ||= item.role !== undefined && item.role !== "assistant"
      items.push(encoded)
    } else if (isOutput(item)) {
      isAnswered = true
      const { at, id: call_id } = placeOf(id, items.length)
      items[at] = { ...encoded, call_id }
    } else {
      if (isAnswered) ids.beginTurn()
      isAnswered = false
      const call = ids.call(id)
      calls.set(items.length, call)
      items.push({ ...encoded, call_id: call.id, ...encodeCall(item, rules) })
    }
  }

  for (const item of asRecords(input)) {
    if (isReference(item) || item.type === "compaction_trigger") continue
    if (item.type === "reasoning" && !(encrypted && isReadable(item))) continue
    add(item)
  }
  return [...calls.values()].some(({ result }) => result === undefined) ? answerAll(items, calls) : items
}

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
