import type { IncomingHttpHeaders } from "node:http"
import { Either, Schema } from "effect"
import type { ChatRequest, Message, NativeRequest, ResponseFormat, Tool, ToolChoice } from "../../domain/Chat.ts"
import { Anything, atLeast, Integer, matching, NonEmptyString, optional } from "../../domain/Constraints.ts"
import { InvalidRequest } from "../../domain/Failure.ts"
import { type ReasoningEffort, reasoningEfforts } from "../../domain/Model.ts"
import {
  invalidAt,
  invalidIn,
  isAbsent,
  isNonEmptyString,
  isOneOf,
  type JsonObject,
  type Path,
  readEach,
  readObject,
  refuse
} from "../body/Guards.ts"
import type { ChatDialect } from "../chat/ChatDialect.ts"
import { messagesToolOf, readDefinition, readSchema, removeDuplicateTools } from "../chat/ChatTools.ts"
import { TextPartSchema } from "../chat/ContentParts.ts"
import { catchRefusal, makeBodyReader, problem, readWith } from "../schema/Decoding.ts"
import {
  AnyObject,
  conversationField,
  conversationProblem,
  endUserFields,
  modelField,
  mustBeObject,
  mustBeOneOf,
  numberFrom,
  oneOf,
  otherThan,
  StopTexts,
  samplingNote,
  stopsProblem,
  streamField,
  TokenCap,
  textOr,
  toReasoningEffort
} from "../schema/SharedFields.ts"
import { cacheControlOf, type NativeContent } from "./ContentBlocks.ts"
import { AssistantTurn, readConversation, readSystem, SystemTurn, UserTurn } from "./MessagesTurns.ts"

const toolName = {
  pattern: /^[a-zA-Z0-9_-]{1,128}$/,
  problem: "is required and must be 1 to 128 letters, digits, underscores or dashes"
}

const MessagesTool = messagesToolOf(matching(toolName.pattern)).annotations({ identifier: "MessagesTool" })
const MessagesOtherTool = Schema.Struct({ type: otherThan("custom") }).annotations({
  identifier: "MessagesOtherTool",
  description:
    "`web_search_…` needs a model with web search. Tools that the client runs (`bash_…`, `text_editor_…`, `memory_…`, `computer_…`, `browser_…`) need a provider with this API. Only providers with this API receive any other tool."
})

const ChoiceType = oneOf("auto", "any", "tool", "none")
const MessagesToolChoice = Schema.Struct({
  type: ChoiceType,
  name: optional(NonEmptyString, "The name of one of `tools`, for the type `tool`."),
  disable_parallel_tool_use: optional(Schema.Boolean)
}).annotations({ identifier: "MessagesToolChoice" })

/**
 * Anthropic's predefined tools that the client runs. They are sent without a schema, so only providers with the Messages API
 * accept them.
 */
const clientTool = /^(bash|text_editor|memory|computer|computer_toolset|browser_toolset)_\d+$/
const searchTool = /^web_search_\d+$/
/** The maximum tokens that a provider adds to the prompt for a tool whose schema it knows. */
const tokensPerKnownTool = 8_192

interface ToolSet {
  readonly tools: ReadonlyArray<Tool>
  readonly names: ReadonlySet<string>
  readonly webSearch: boolean
}

const translatedFields: ReadonlySet<string> = new Set([
  "type",
  "name",
  "description",
  "input_schema",
  "strict",
  "cache_control"
])

const readFunctionTool = (tool: JsonObject, path: Path, native: NativeContent): Tool => {
  const fields = readDefinition(tool, path, toolName)
  const parameters = readSchema(tool, "input_schema", path)
  for (const key in tool) if (!translatedFields.has(key)) native.add(tool[key])
  return { type: "function", function: { ...fields, parameters }, ...cacheControlOf(tool) }
}

const addKnownTool = (tool: JsonObject, type: string, native: NativeContent): void => {
  if (clientTool.test(type)) native.nativeOnly ??= { param: "tools", what: `The tool \`${type}\`` }
  native.add(tool)
  native.tokens += tokensPerKnownTool
}

const readTools = (value: unknown, native: NativeContent): ToolSet => {
  const tools: Array<Tool> = []
  const names = new Set<string>()
  let webSearch = false
  const readTool = (tool: JsonObject, path: Path): void => {
    if (isNonEmptyString(tool.name)) names.add(tool.name)
    if (isNonEmptyString(tool.type) && tool.type !== "custom") {
      webSearch ||= searchTool.test(tool.type)
      addKnownTool(tool, tool.type, native)
    } else tools.push(readFunctionTool(tool, path, native))
  }
  if (!isAbsent(value)) readEach(value, "tools", readTool)
  return { tools: removeDuplicateTools(tools), names, webSearch }
}

interface ChoiceFields {
  readonly toolChoice: ToolChoice | undefined
  readonly parallelToolCalls: boolean | undefined
}

/** Converts a tool choice for other routes. A choice of a tool that only the native body has is omitted. */
const translateChoice = ({ name, type }: JsonObject, { names, tools }: ToolSet): ToolChoice | undefined => {
  const hasTools = tools.length > 0
  switch (type) {
    case "auto":
      return hasTools ? "auto" : undefined
    case "none":
      return hasTools ? "none" : undefined
    case "any":
      if (names.size === 0) return invalidAt("tool_choice", "needs `tools`")
      return hasTools ? "required" : undefined
    case "tool":
      if (!isNonEmptyString(name) || !names.has(name)) return invalidAt("tool_choice.name", "must name one of `tools`")
      return tools.some((tool) => tool.function.name === name) ? { type: "function", function: { name } } : undefined
    default:
      return invalidAt("tool_choice.type", mustBeOneOf(ChoiceType.literals))
  }
}

const readChoice = (value: unknown, toolSet: ToolSet): ChoiceFields => {
  if (isAbsent(value)) return { toolChoice: undefined, parallelToolCalls: undefined }
  const choice = readObject(value, "tool_choice")
  const toolChoice = translateChoice(choice, toolSet)
  const isSingle = choice.disable_parallel_tool_use === true && toolSet.tools.length > 0
  return { toolChoice, parallelToolCalls: isSingle ? false : undefined }
}

const readFormat = (value: unknown, path: string): ResponseFormat | undefined => {
  if (isAbsent(value)) return undefined
  const format = readObject(value, path)
  if (format.type !== "json_schema") return invalidIn(path, "type", "must be json_schema")
  const schema = readSchema(format, "schema", path)
  return { type: "json_schema", json_schema: { name: "response", schema, strict: true } }
}

const Budget = Integer.pipe(atLeast(0)).annotations(problem("must be an integer of at least 0"))
const Stops = StopTexts.annotations(stopsProblem("must be an array of non-empty strings"))

const promptFields = {
  model: modelField("a chat model"),
  messages: Schema.NonEmptyArray(Schema.Union(UserTurn, AssistantTurn, SystemTurn)).annotations({
    description: "The conversation so far, oldest first."
  }),
  system: optional(textOr(TextPartSchema), "The system prompt."),
  tools: optional(Schema.Array(Schema.Union(MessagesTool, MessagesOtherTool)), "The tools that the model may call."),
  tool_choice: optional(MessagesToolChoice, "Whether the model may or must call a tool, or which one."),
  thinking: optional(
    Schema.Struct({ type: optional(Schema.String), budget_tokens: optional(Budget) }).annotations(mustBeObject),
    "`enabled` with `budget_tokens`, `adaptive` or `disabled`. The model uses the nearest setting that it has."
  ),
  output_config: optional(
    Schema.Struct({ effort: optional(Schema.String), format: optional(Anything) }).annotations(mustBeObject),
    "`effort` from `low` to `max`; `format` is `{type: json_schema, schema}`."
  ),
  output_format: optional(Anything, "The older name of `output_config.format`."),
  cache_control: optional(Anything, "Caches the prompt up to its last block.")
}

export const MessagesRequest = Schema.Struct({
  ...promptFields,
  max_tokens: optional(TokenCap, "The default is the model's cap. Higher values are lowered to it."),
  stream: streamField,
  stop_sequences: optional(Stops, "Generation stops before any of these texts."),
  temperature: optional(numberFrom(0, 1), `Default 1. ${samplingNote}`),
  top_p: optional(numberFrom(0, 1), samplingNote),
  top_k: optional(Schema.Number.annotations(problem("must be a number")), "Only providers with this API receive it."),
  metadata: optional(
    AnyObject.annotations(mustBeObject),
    "Only providers with this API receive it. The gateway removes `user_id` and stores it as your end user."
  ),
  ...endUserFields
}).annotations({ identifier: "MessagesRequest" })

export const CountTokensRequest = Schema.Struct(promptFields).annotations({ identifier: "CountTokensRequest" })

/** Hand-written readers decode messages and tools. `http/chat/ChatBody.ts` explains why. */
const Body = Schema.Struct({
  ...MessagesRequest.fields,
  messages: conversationField(readConversation),
  system: Schema.optional(readWith(Schema.Unknown, catchRefusal(readSystem))),
  tools: Schema.Unknown,
  tool_choice: Schema.Unknown
})

const isEffort = isOneOf(...reasoningEfforts, "max")

/** Returns the effort in `output_config`, or undefined for a new effort that the gateway does not know. */
const readEffort = ({ output_config: config }: typeof Body.Type): ReasoningEffort | undefined =>
  isEffort(config?.effort) ? toReasoningEffort(config.effort) : undefined

const budgetToEffort = (tokens: number): ReasoningEffort => {
  if (tokens <= 4_096) return "low"
  return tokens <= 16_384 ? "medium" : "high"
}

/** Returns the reasoning effort that `thinking` requests, or undefined if thinking is not enabled. */
const readThinkingEffort = (body: typeof Body.Type): ReasoningEffort | undefined => {
  const { thinking } = body
  if (thinking?.type !== "enabled" && thinking?.type !== "adaptive") return undefined
  const effort = readEffort(body)
  if (effort !== undefined) return effort
  return isAbsent(thinking.budget_tokens) ? "high" : budgetToEffort(thinking.budget_tokens)
}

const forwardedHeaders = ["anthropic-beta", "anthropic-version"] as const

/** Fields that are counted elsewhere or add nothing to the prompt. */
const fieldsWithoutTokens: ReadonlySet<string> = new Set([...Object.keys(MessagesRequest.fields), "context_management"])

const makeNativeRequest = (
  body: JsonObject,
  headers: IncomingHttpHeaders,
  native: NativeContent,
  effort: ReasoningEffort | undefined
): NativeRequest => {
  for (const name in body) if (!fieldsWithoutTokens.has(name)) native.add(body[name])
  const headerEntries = forwardedHeaders.flatMap((name) => {
    const value = headers[name]
    return typeof value === "string" ? [[name, value] as const] : []
  })
  return {
    dialect: "messages",
    body,
    headers: Object.fromEntries(headerEntries),
    extraTokens: native.tokens,
    effort,
    nativeOnly: native.nativeOnly
  }
}

/** Copies the request's own `cache_control` to the last message, because the common chat format has none for a request. */
const markLast = (messages: ReadonlyArray<Message>, body: JsonObject): ReadonlyArray<Message> => {
  const mark = cacheControlOf(body)
  const last = messages.at(-1)
  return last === undefined || mark.cache_control === undefined
    ? messages
    : [...messages.slice(0, -1), { ...last, ...mark }]
}

const readRequest = (body: typeof Body.Type, json: JsonObject, headers: IncomingHttpHeaders): ChatRequest => {
  const { max_tokens: cap, messages: conversation, model, output_config: config, system = [] } = body
  const { native } = conversation
  const toolSet = readTools(body.tools, native)
  const choice = readChoice(body.tool_choice, toolSet)
  const format = isAbsent(config?.format)
    ? readFormat(body.output_format, "output_format")
    : readFormat(config?.format, "output_config.format")
  if (!isAbsent(config?.format)) native.add(body.output_format)
  const messages = [...system, ...conversation.messages]
  if (messages.length === 0 && native.nativeOnly === undefined) {
    throw refuse("messages", "`messages` must contain text, an image or a tool result.")
  }
  return {
    model,
    messages: markLast(messages, json),
    native: makeNativeRequest(json, headers, native, readEffort(body)),
    isEffortHint: true,
    stream: body.stream ?? false,
    includeUsage: true,
    maxTokens: cap ?? Number.MAX_SAFE_INTEGER,
    hasDefaultMaxTokens: true,
    stop: body.stop_sequences ?? [],
    tools: toolSet.tools,
    webSearch: toolSet.webSearch,
    ...choice,
    reasoningEffort: readThinkingEffort(body),
    responseFormat: format,
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined
  }
}

/** Formats a path as Anthropic does, such as `messages.0.content`. */
const formatDotPath = (path: string): string => path.replaceAll(/\[(\d+)\]/g, ".$1")

/** Error messages that are the same in every dialect. */
const sharedMessages: ReadonlySet<string> = new Set(["`model` is required.", `\`messages\` ${conversationProblem}.`])

/** Rewords an error message as Anthropic does, such as `messages.0.content: must be …`. */
const rewordMessage = (message: string): string =>
  message
    .replace(/^`([^`]+)` /, (_, path: string) => `${formatDotPath(path)}: `)
    .replace(/: is required\.$/, ": Field required")

const reword = ({ hint, message, param }: InvalidRequest): InvalidRequest =>
  new InvalidRequest({
    message: sharedMessages.has(message) ? message : rewordMessage(message),
    param,
    hint: hint?.replaceAll(/`[^`]+`/g, formatDotPath)
  })

const read = makeBodyReader(Body, readRequest)

export const decodeMessagesBody: ChatDialect["decode"] = (json, headers) => Either.mapLeft(read(json, headers), reword)
