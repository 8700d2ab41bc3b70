import { identity, Predicate, Schema } from "effect"
import type { CacheControl, ChatRequest, Message, Part, ResponseFormat, TextPart } from "../../domain/Chat.ts"
import { setSource } from "../../domain/JsonSource.ts"
import type { Feature, RouteOptions } from "../../domain/Model.ts"
import {
  asksForAnHour,
  cacheMarks,
  type FindMark,
  fitCacheKey,
  type Marked,
  markField,
  noMarks,
  partMarks
} from "../chat/CacheMarks.ts"
import type { ChatCall } from "../chat/ChatClient.ts"
import { sentinel } from "../chat/Messages.ts"
import { fitOptions, makeRules, openAiRules, type WireRules } from "../chat/WireRules.ts"
import { withoutUndefined } from "../client/Json.ts"
import { makeOptions, oneOf, optional, searchFee, statedCostOption } from "../client/RouteOptions.ts"

export const Options = Schema.Struct({
  max_tokens_field: optional(oneOf("max_tokens", "max_completion_tokens")),
  reasoning_history: optional(Schema.Boolean),
  thought_signatures: optional(Schema.Boolean),
  inline_images: optional(Schema.Boolean),
  stop: optional(oneOf("cut")),
  /** The host counts reasoning in `total_tokens` alone. */
  hidden_reasoning: optional(Schema.Boolean),
  system: optional(oneOf("anywhere", "joined", "first")),
  content: optional(oneOf("parts", "text")),
  blank_user: optional(Schema.Boolean),
  /** The form of cache marks; `none` revokes the provider's option. */
  cache: optional(oneOf("none", "manual", "auto", "breakpoints")),
  cache_key: optional(oneOf("none", "prompt_cache_key", "x-grok-conv-id")),
  /** Anything but a mapping revokes the provider's option. */
  web_search: optional(Schema.Unknown),
  search_fee: searchFee,
  ...fitOptions,
  ...statedCostOption
})
export type Options = typeof Options.Type

export const options = makeOptions(Options, identity)

const everywhere: ReadonlyArray<Feature> = ["tools", "vision", "response_format", "sampling", "reasoning"]

/** Hosts differ in how they search: without the option there is none. */
export const features = ({ web_search }: RouteOptions): ReadonlySet<Feature> =>
  new Set(Predicate.isRecord(web_search) ? [...everywhere, "web_search"] : everywhere)

/** The strictest rules of this wire's hosts. */
export const rules: WireRules = {
  ...openAiRules,
  callId: { characters: "!-~", shortest: 1, longest: 40 },
  system: "joined",
  content: "text"
}

/** A host that takes cache marks takes the parts that have them. */
export const rulesOf = makeRules(rules, ({ blank_user, cache = "none", content, system = "joined" }: Options) => ({
  system,
  blankUser: blank_user ?? rules.blankUser,
  content: content ?? (cache === "none" ? rules.content : "marked")
}))

export interface Quirks {
  readonly maxTokensField: "max_tokens" | "max_completion_tokens"
  readonly streamOptions: boolean
  /** Undefined: not refused so far. */
  readonly cacheRetention?: boolean
}

const breakpoint = { prompt_cache_breakpoint: { mode: "explicit" } } as const

interface Marks {
  readonly markOf: FindMark
  readonly onTool: (given: CacheControl | undefined) => Marked | undefined
  readonly onPart: (given: CacheControl | undefined) => Marked | typeof breakpoint | undefined
}

/** Where cache marks go, and their form. */
const marksFor = ({ cache = "none" }: Options, request: ChatRequest): Marks => {
  const markOf = cache === "none" ? noMarks : cacheMarks(request, cache === "auto")
  const isForAnHour = asksForAnHour(request)
  // Such a host's usage does not tell writes for an hour from others: it is sent one kind in a request.
  const encode = (given: CacheControl | undefined) => given && markField(isForAnHour ? given : { type: given.type })
  return cache === "breakpoints"
    ? { markOf, onTool: () => undefined, onPart: (given) => given && breakpoint }
    : { markOf, onTool: encode, onPart: encode }
}

type PartMarks = ReadonlyArray<ReturnType<Marks["onPart"]>>

const encodeText = ({ text }: TextPart, marked: PartMarks[number]) => ({ type: "text", text, ...marked }) as const

const encodeTexts = (content: string | ReadonlyArray<TextPart>, marks: PartMarks) => {
  if (typeof content === "string" && marks[0] === undefined) return content
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content
  return parts.map((part, at) => encodeText(part, marks[at]))
}

const encodePart = (part: Part, marked: PartMarks[number]) => {
  if (part.type === "text") return encodeText(part, marked)
  const { detail, url } = part.image_url
  const isKnown = detail === "auto" || detail === "low" || detail === "high"
  return { type: "image_url" as const, image_url: isKnown ? ({ url, detail } as const) : { url }, ...marked }
}

interface History {
  readonly hasReasoning: boolean
  /** Its first call carries the placeholder for a missing signature. */
  readonly isUnsigned: boolean
}

const encodeAssistant = (
  message: Extract<Message, { role: "assistant" }>,
  { hasReasoning, isUnsigned }: History,
  marks: PartMarks
) => {
  const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: text } }, index) => ({
    id,
    type: "function" as const,
    function: { name, arguments: text },
    ...(isUnsigned && index === 0 ? { extra_content: { google: { thought_signature: sentinel } } } : undefined)
  }))
  return {
    role: "assistant" as const,
    // Hosts take null beside calls only.
    content: message.content === null && calls.length > 0 ? null : encodeTexts(message.content ?? "", marks),
    ...withoutUndefined({
      name: message.name,
      // Hosts that want reasoning back refuse calls without any.
      reasoning_content: hasReasoning ? (message.reasoning_content ?? (calls.length > 0 ? "" : undefined)) : undefined,
      tool_calls: calls.length === 0 ? undefined : calls
    })
  }
}

const encodeMessage = (message: Message, history: History, marks: PartMarks) => {
  switch (message.role) {
    case "system":
      return {
        role: message.role,
        content: encodeTexts(message.content, marks),
        ...withoutUndefined({ name: message.name })
      }
    case "user": {
      const content =
        typeof message.content === "string"
          ? encodeTexts(message.content, marks)
          : message.content.map((part, at) => encodePart(part, marks[at]))
      return { role: message.role, content, ...withoutUndefined({ name: message.name }) }
    }
    case "tool": {
      const { role, tool_call_id } = message
      return { role, content: encodeTexts(message.content, marks), tool_call_id }
    }
    default:
      return encodeAssistant(message, history, marks)
  }
}

const encodeMessages = (options: Options, messages: ReadonlyArray<Message>, marks: Marks) => {
  const turn = messages.findLastIndex(({ role }) => role === "user")
  const { reasoning_history: hasReasoning = false, thought_signatures: isUnsigned = false } = options
  return messages.map((message, at) =>
    encodeMessage(
      message,
      { hasReasoning, isUnsigned: isUnsigned && at > turn },
      partMarks(message, marks.markOf).map(marks.onPart)
    )
  )
}

const encodeFormat = (format: ResponseFormat) => {
  if (format.type === "json_object") return { type: "json_object" } as const
  const { description, name, schema, strict } = format.json_schema
  return { type: "json_schema" as const, json_schema: { name, ...withoutUndefined({ description, schema, strict }) } }
}

const encodeTools = ({ tools }: ChatRequest, { markOf, onTool }: Marks) =>
  tools.map((tool) => {
    const { description, name, parameters, strict } = tool.function
    const called = { name, ...withoutUndefined({ description, parameters, strict }) }
    return { type: "function" as const, function: called, ...onTool(markOf(tool)) }
  })

/** Some hosts have a header for it. */
export const cacheKeyHeader = ({ cache_key }: Options, { promptCacheKey }: ChatRequest) =>
  cache_key === "x-grok-conv-id" && promptCacheKey !== undefined ? { [cache_key]: fitCacheKey(promptCacheKey) } : {}

/** OpenAI refuses more. */
const maxStops = 4

export const ownStops = ({ stop }: ChatRequest, options: Options): ReadonlyArray<string> =>
  options.stop === "cut" || stop.length > maxStops ? stop : []

/** The seed in all of its digits. */
const keepSeed = <A extends object>(body: A, { seed }: ChatRequest): A =>
  typeof seed === "bigint" ? setSource(body, { numbers: new Map([["seed", String(seed)]]), names: undefined }) : body

export const encodeRequest = ({ isStream, options, quirks, request, route }: ChatCall<Options, Quirks>) => {
  const hasTools = request.tools.length > 0
  const marks = marksFor(options, request)
  const body = {
    model: route.model,
    messages: encodeMessages(options, request.messages, marks),
    [quirks.maxTokensField]: request.maxTokens,
    ...withoutUndefined({
      stream: isStream ? true : undefined,
      stream_options: isStream && quirks.streamOptions ? { include_usage: true } : undefined,
      stop: request.stop.length === 0 || options.stop === "cut" ? undefined : request.stop.slice(0, maxStops),
      tools: hasTools ? encodeTools(request, marks) : undefined,
      tool_choice: hasTools ? request.toolChoice : undefined,
      parallel_tool_calls: hasTools ? request.parallelToolCalls : undefined,
      temperature: request.temperature,
      top_p: request.topP,
      seed: request.seed === undefined ? undefined : Number(request.seed),
      frequency_penalty: request.frequencyPenalty,
      presence_penalty: request.presencePenalty,
      reasoning_effort: request.reasoningEffort,
      response_format: request.responseFormat && encodeFormat(request.responseFormat),
      ...(options.cache_key === "prompt_cache_key" && {
        prompt_cache_key: request.promptCacheKey && fitCacheKey(request.promptCacheKey),
        prompt_cache_retention: quirks.cacheRetention === false ? undefined : request.promptCacheRetention
      })
    })
  }
  const search = options.web_search
  if (!request.webSearch || !Predicate.isRecord(search)) return keepSeed(body, request)
  const tools = Array.isArray(search.tools) ? [...(body.tools ?? []), ...search.tools] : body.tools
  return keepSeed({ ...body, ...search, ...withoutUndefined({ tools }) }, request)
}
