import { Schema } from "effect"
import type { ChatRequest, ResponseFormat, Tool } from "../../domain/Chat.ts"
import { NonEmptyString, optional, upTo } from "../../domain/Constraints.ts"
import { reasoningEfforts } from "../../domain/Model.ts"
import { jsonTokens } from "../../domain/Pricing.ts"
import {
  invalidAt,
  isAbsent,
  isNonEmptyString,
  isObject,
  isString,
  type JsonObject,
  readRequiredString
} from "../body/Guards.ts"
import {
  AllowedMode,
  CallableType,
  ChoiceMode,
  isChoiceMode,
  readCustomTool,
  readFormat,
  readFunction,
  readJsonSchema,
  schemaFields,
  selectAllowedTools,
  type ToolSelection
} from "../chat/ChatTools.ts"
import { ClientToolsField, isCallable, listDeclaredTools, ToolNames } from "../chat/ClientTools.ts"
import { InputField, readInput } from "../chat/InputItems.ts"
import { makeBodyReader, problem } from "../schema/Decoding.ts"
import {
  endUserFields,
  Flag,
  modelField,
  mustBeObject,
  numberFrom,
  oneOf,
  otherThan,
  parallelCallsField,
  Retention,
  refusedField,
  samplingNote,
  streamField,
  Text,
  TokenCap,
  toReasoningEffort
} from "../schema/SharedFields.ts"

const ResponsesToolChoice = Schema.Union(
  ChoiceMode,
  Schema.Struct({ type: CallableType, name: NonEmptyString, namespace: optional(NonEmptyString) }),
  Schema.Struct({
    type: Schema.Literal("allowed_tools"),
    mode: AllowedMode,
    tools: Schema.Array(Schema.Struct({ type: NonEmptyString, name: optional(Schema.String) }))
  }),
  Schema.Struct({ type: otherThan(...CallableType.literals, "allowed_tools") }).annotations({
    description: "A hosted tool. For providers with another API, it means `auto`."
  })
)

interface ToolSet {
  readonly tools: ReadonlyArray<Tool>
  readonly names: ToolNames
  /** Tools that the provider runs. */
  readonly hostedTools: ReadonlyArray<JsonObject>
  /** Definitions that `tools` contains only partly or not at all. Their whole JSON counts as tokens of the native body. */
  readonly nativeDefinitions: ReadonlyArray<JsonObject>
  readonly webSearch: boolean
}

const translatedFields: ReadonlySet<string> = new Set(["type", "name", "description", "parameters", "strict", "format"])

const isWebSearch = ({ type }: JsonObject): boolean => isString(type) && type.startsWith("web_search")

const readTools = (body: JsonObject): ToolSet => {
  const names = new ToolNames()
  const tools: Array<Tool> = []
  const hostedTools: Array<JsonObject> = []
  const nativeDefinitions: Array<JsonObject> = []
  for (const declaration of listDeclaredTools(body)) {
    const { definition, path } = declaration
    const type = readRequiredString(definition, "type", path)
    if (type === "namespace") {
      nativeDefinitions.push(definition)
      continue
    }
    if (!isCallable(definition)) {
      hostedTools.push(definition)
      continue
    }
    readRequiredString(definition, "name", path)
    const name = names.declare(declaration)
    if (name === undefined) {
      nativeDefinitions.push(definition)
      continue
    }
    if (Object.keys(definition).some((field) => !translatedFields.has(field))) nativeDefinitions.push(definition)
    tools.push(type === "custom" ? readCustomTool(definition, name, path) : readFunction({ ...definition, name }, path))
  }
  return { tools, names, hostedTools, nativeDefinitions, webSearch: hostedTools.some(isWebSearch) }
}

const isHosted = (tool: unknown): boolean => isObject(tool) && !isCallable(tool)

/** Reads the tool choice. A choice of hosted tools is omitted, because other providers do not have these tools. */
const readToolChoice = (choice: unknown, { hostedTools, names, tools }: ToolSet): ToolSelection => {
  const invalid = (problem: string) => invalidAt("tool_choice", problem)
  const hasNoTools = tools.length === 0
  if (isAbsent(choice)) return { toolChoice: undefined, tools }
  if (isChoiceMode(choice)) {
    if (choice === "required" && hasNoTools && hostedTools.length === 0) return invalid("needs `tools`")
    return { toolChoice: hasNoTools ? undefined : choice, tools }
  }
  if (!isObject(choice) || !isNonEmptyString(choice.type)) {
    return invalid("must be auto, none, required or an object with a `type`")
  }
  const toFunctionName = (tool: unknown): string | undefined => {
    if (!isObject(tool) || !isNonEmptyString(tool.name)) return undefined
    return names.toFunctionName(tool.name, isNonEmptyString(tool.namespace) ? tool.namespace : undefined)
  }
  if (choice.type === "allowed_tools") return selectAllowedTools(choice, tools, toFunctionName, isHosted)
  if (!isCallable(choice)) return { toolChoice: undefined, tools }
  const name = toFunctionName(choice)
  if (!tools.some((tool) => tool.function.name === name) || name === undefined) {
    return invalid("must name one of `tools`")
  }
  return { toolChoice: { type: "function", function: { name } }, tools }
}

const readTextFormat = (value: unknown): ResponseFormat | undefined =>
  readFormat(
    value,
    "text.format",
    () => ({ type: "json_object" }),
    (format) => readJsonSchema(format, "text.format")
  )

const maxMetadata = 16
const maxMetadataLength = 512
const Metadata = Schema.Record({ key: Schema.String, value: Schema.String.pipe(upTo(maxMetadataLength)) }).pipe(
  Schema.filter((pairs) => Object.keys(pairs).length <= maxMetadata, { jsonSchema: { maxProperties: maxMetadata } }),
  Schema.annotations(
    problem(`must be an object of at most ${maxMetadata} strings, of at most ${maxMetadataLength} characters each`)
  )
)

const Reasoning = Schema.Struct({
  effort: optional(
    oneOf("none", "minimal", ...reasoningEfforts, "max"),
    "The model uses the nearest effort that it has."
  ),
  summary: optional(Text)
}).annotations(mustBeObject)

const Format = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text", "json_object") }),
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    ...schemaFields(NonEmptyString)
  })
)
const TextOptions = Schema.Struct({
  format: optional(Format, "Requests JSON, or JSON of a schema. Not every model supports it."),
  verbosity: optional(oneOf("low", "medium", "high"), "Only providers with this API receive it.")
})

const sendConversation = "send the whole conversation in `input`"

export const ResponsesRequest = Schema.Struct({
  model: modelField("a chat model"),
  input: InputField,
  previous_response_id: refusedField(sendConversation),
  conversation: refusedField(sendConversation),
  prompt: refusedField("send its text in `input`"),
  background: optional(
    Schema.Literal(false).annotations(problem("must be false: the gateway stores no responses")),
    "Must be false: the gateway stores no responses."
  ),
  instructions: optional(Text, "A system message before the input."),
  stream: streamField,
  max_output_tokens: optional(TokenCap, "The default and maximum is the model's cap. Reasoning tokens count too."),
  tools: optional(
    ClientToolsField,
    "`function` and `custom` tools, also in a `namespace`, work with every model that supports tools. `web_search` needs a model with web search. Other tools need a provider with this API. For other providers, the gateway drops them."
  ),
  tool_choice: optional(ResponsesToolChoice, "Whether the model may or must call a tool, or which of `tools`."),
  parallel_tool_calls: parallelCallsField,
  reasoning: optional(Reasoning, "Models without reasoning ignore it."),
  text: optional(TextOptions),
  temperature: optional(numberFrom(0, 2), samplingNote),
  top_p: optional(numberFrom(0, 1), samplingNote),
  include: optional(
    Schema.Array(Schema.String).annotations(problem("must be an array of strings")),
    "`reasoning.encrypted_content` adds this field to reasoning items. Return these items unchanged."
  ),
  prompt_cache_key: optional(Text, "Requests with the same key share a prompt cache. Use one key per conversation."),
  prompt_cache_retention: optional(Retention, "How long the provider caches the prompt, if it offers a choice."),
  store: optional(Flag, "Ignored: the gateway stores nothing."),
  metadata: optional(Metadata, "Returned unchanged in the response."),
  truncation: optional(Text, "Only providers with this API receive it."),
  ...endUserFields
}).annotations({ identifier: "ResponsesRequest" })

/** Hand-written readers decode items, tools and the format. `http/chat/ChatBody.ts` explains why. */
const Body = Schema.Struct({
  ...ResponsesRequest.fields,
  input: Schema.Unknown,
  tools: Schema.optional(Schema.NullOr(Schema.Array(Schema.Unknown))).annotations(problem("must be an array")),
  tool_choice: Schema.Unknown,
  text: Schema.optional(Schema.NullOr(Schema.Record({ key: Schema.String, value: Schema.Unknown }))).annotations(
    mustBeObject
  )
})

/** The maximum tokens that a provider adds to the prompt for each hosted tool. */
const tokensPerHostedTool = 640

/** Fields that are counted elsewhere or add nothing to the prompt. */
const fieldsWithoutTokens: ReadonlySet<string> = new Set(Object.keys(ResponsesRequest.fields))

/** Returns the maximum number of tokens in fields, formats and tools that only the native body contains. */
const countNativeTokens = (
  { text }: typeof Body.Type,
  native: JsonObject,
  { hostedTools, nativeDefinitions }: ToolSet
): number => {
  let tokens = tokensPerHostedTool * hostedTools.length
  if (hostedTools.length > 0) tokens += jsonTokens(hostedTools)
  if (nativeDefinitions.length > 0) tokens += jsonTokens(nativeDefinitions)
  for (const name in native) if (!fieldsWithoutTokens.has(name)) tokens += jsonTokens(native[name])
  for (const name in text) if (name !== "format" && name !== "verbosity") tokens += jsonTokens(text[name])
  return tokens
}

const readRequest = (body: typeof Body.Type, native: JsonObject): ChatRequest => {
  const toolSet = readTools(native)
  const { toolChoice, tools } = readToolChoice(body.tool_choice, toolSet)
  const responseFormat = readTextFormat(body.text?.format)
  const input = readInput(body.instructions, body.input, toolSet.names)
  const extraTokens = input.extraTokens + countNativeTokens(body, native, toolSet)
  return {
    model: body.model,
    messages: input.messages,
    native: { dialect: "responses", body: native, headers: {}, extraTokens, nativeOnly: input.nativeOnly },
    stream: body.stream ?? false,
    includeUsage: false,
    maxTokens: body.max_output_tokens ?? Number.MAX_SAFE_INTEGER,
    hasDefaultMaxTokens: true,
    stop: [],
    tools,
    webSearch: toolSet.webSearch,
    isWebSearchHint: true,
    toolChoice,
    parallelToolCalls: tools.length === 0 ? undefined : (body.parallel_tool_calls ?? undefined),
    reasoningEffort: toReasoningEffort(body.reasoning?.effort),
    isEffortHint: true,
    responseFormat,
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined,
    promptCacheKey: body.prompt_cache_key ?? undefined,
    promptCacheRetention: body.prompt_cache_retention ?? undefined
  }
}

export const decodeResponsesBody = makeBodyReader(Body, readRequest)
