import { Schema } from "effect"
import type { ChatRequest, ResponseFormat, Tool } from "../../domain/Chat.ts"
import { Filled, optional, upTo } from "../../domain/Constraints.ts"
import { reasoningEfforts } from "../../domain/Model.ts"
import { jsonTokens } from "../../domain/Pricing.ts"
import { isAbsent, isFilled, isObject, isString, type JsonObject } from "../body/Guards.ts"
import {
  AllowedMode,
  CallableType,
  ChoiceWord,
  isChoiceWord,
  type ReadChoice,
  readAllowed,
  readCustom,
  readFormat,
  readFunction,
  readJsonSchema,
  schemaFields
} from "../chat/ChatTools.ts"
import { ClientToolsField, declaredTools, isCallable, ToolNames } from "../chat/ClientTools.ts"
import { invalidAt, readWord } from "../chat/FieldReaders.ts"
import { InputField, readInput } from "../chat/InputItems.ts"
import { problem, reader } from "../schema/Decoding.ts"
import {
  anObject,
  effortOf,
  endUser,
  Flag,
  modelOf,
  numberFrom,
  oneOf,
  otherThan,
  parallelCallsField,
  Retention,
  samplingOnly,
  streamField,
  Text,
  TokenCap,
  unsupported
} from "../schema/SharedFields.ts"

const ResponsesToolChoice = Schema.Union(
  ChoiceWord,
  Schema.Struct({ type: CallableType, name: Filled, namespace: optional(Filled) }),
  Schema.Struct({
    type: Schema.Literal("allowed_tools"),
    mode: AllowedMode,
    tools: Schema.Array(Schema.Struct({ type: Filled, name: optional(Schema.String) }))
  }),
  Schema.Struct({ type: otherThan(...CallableType.literals, "allowed_tools") }).annotations({
    description: "A hosted tool: left to the model elsewhere than on routes that speak this API."
  })
)

interface ReadTools {
  readonly tools: ReadonlyArray<Tool>
  readonly names: ToolNames
  /** Tools that only a host can have. */
  readonly hosted: ReadonlyArray<JsonObject>
  /** What no translation holds of the other tools. */
  readonly unread: ReadonlyArray<JsonObject>
  readonly webSearch: boolean
}

const translated: ReadonlySet<string> = new Set(["type", "name", "description", "parameters", "strict", "format"])

const isSearch = ({ type }: JsonObject): boolean => isString(type) && type.startsWith("web_search")

const readTools = (body: JsonObject): ReadTools => {
  const names = new ToolNames()
  const tools: Array<Tool> = []
  const hosted: Array<JsonObject> = []
  const unread: Array<JsonObject> = []
  for (const declared of declaredTools(body)) {
    const { definition, path } = declared
    const type = readWord(definition, "type", path)
    if (type === "namespace") {
      unread.push(definition)
      continue
    }
    if (!isCallable(definition)) {
      hosted.push(definition)
      continue
    }
    readWord(definition, "name", path)
    const name = names.declare(declared)
    if (name === undefined) {
      unread.push(definition)
      continue
    }
    if (Object.keys(definition).some((field) => !translated.has(field))) unread.push(definition)
    tools.push(type === "custom" ? readCustom(definition, name, path) : readFunction({ ...definition, name }, path))
  }
  return { tools, names, hosted, unread, webSearch: hosted.some(isSearch) }
}

const isHosted = (tool: unknown): boolean => isObject(tool) && !isCallable(tool)

/** A choice of hosted tools is left to the model. */
const readToolChoice = (given: unknown, { hosted, names, tools }: ReadTools): ReadChoice => {
  const invalid = (problem: string) => invalidAt("tool_choice", problem)
  const isNone = tools.length === 0
  if (isAbsent(given)) return { toolChoice: undefined, tools }
  if (isChoiceWord(given)) {
    if (given === "required" && isNone && hosted.length === 0) return invalid("needs `tools`")
    return { toolChoice: isNone ? undefined : given, tools }
  }
  if (!isObject(given) || !isFilled(given.type)) {
    return invalid("must be auto, none, required or an object with a `type`")
  }
  const functionOf = (tool: unknown): string | undefined => {
    if (!isObject(tool) || !isFilled(tool.name)) return undefined
    return names.functionOf(tool.name, isFilled(tool.namespace) ? tool.namespace : undefined)
  }
  if (given.type === "allowed_tools") return readAllowed(given, tools, functionOf, isHosted)
  if (!isCallable(given)) return { toolChoice: undefined, tools }
  const name = functionOf(given)
  if (!tools.some((tool) => tool.function.name === name) || name === undefined) {
    return invalid("must name one of `tools`")
  }
  return { toolChoice: { type: "function", function: { name } }, tools }
}

const readTextFormat = (given: unknown): ResponseFormat | undefined =>
  readFormat(
    given,
    "text.format",
    () => ({ type: "json_object" }),
    (format) => readJsonSchema(format, "text.format")
  )

const maxMetadata = 16
const longestMetadata = 512
const Metadata = Schema.Record({ key: Schema.String, value: Schema.String.pipe(upTo(longestMetadata)) }).pipe(
  Schema.filter((pairs) => Object.keys(pairs).length <= maxMetadata, { jsonSchema: { maxProperties: maxMetadata } }),
  Schema.annotations(
    problem(`must be an object of at most ${maxMetadata} strings, of at most ${longestMetadata} characters each`)
  )
)

const Reasoning = Schema.Struct({
  effort: optional(
    oneOf("none", "minimal", ...reasoningEfforts, "max"),
    "An effort that the model lacks becomes its nearest."
  ),
  summary: optional(Text)
}).annotations(anObject)

const Format = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text", "json_object") }),
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    ...schemaFields(Filled)
  })
)
const TextOptions = Schema.Struct({
  format: optional(Format, "Makes the answer JSON, or JSON of a schema. Not every model can."),
  verbosity: optional(oneOf("low", "medium", "high"), "Only for routes that speak this API.")
})

const whole = "send the whole conversation in `input`"

export const ResponsesRequest = Schema.Struct({
  model: modelOf("a chat model"),
  input: InputField,
  previous_response_id: unsupported(whole),
  conversation: unsupported(whole),
  prompt: unsupported("send its text in `input`"),
  background: optional(
    Schema.Literal(false).annotations(problem("must be false: answers are not kept")),
    "Only false: answers are not kept."
  ),
  instructions: optional(Text, "A system message before the input."),
  stream: streamField,
  max_output_tokens: optional(TokenCap, "Default, and at most, the model's own cap; reasoning included."),
  tools: optional(
    ClientToolsField,
    "`function` and `custom` tools, also in a `namespace`, work with every model that has tools. `web_search` searches where the model can. Others need a route that speaks this API, and are left out elsewhere."
  ),
  tool_choice: optional(ResponsesToolChoice, "Whether the model may or must call a tool, or which of `tools`."),
  parallel_tool_calls: parallelCallsField,
  reasoning: optional(Reasoning, "Ignored by models without reasoning."),
  text: optional(TextOptions),
  temperature: optional(numberFrom(0, 2), samplingOnly),
  top_p: optional(numberFrom(0, 1), samplingOnly),
  include: optional(
    Schema.Array(Schema.String).annotations(problem("must be an array of strings")),
    "`reasoning.encrypted_content` adds it to reasoning items; send those back as they are."
  ),
  prompt_cache_key: optional(Text, "Requests of one conversation share a cache under the same key."),
  prompt_cache_retention: optional(Retention, "How long the provider keeps the cache, where it can."),
  store: optional(Flag, "Ignored: nothing is stored."),
  metadata: optional(Metadata, "Comes back in the answer."),
  truncation: optional(Text, "Only for routes that speak this API."),
  ...endUser
}).annotations({ identifier: "ResponsesRequest" })

/** Items, tools and the format are read by hand, as in chats. */
const Body = Schema.Struct({
  ...ResponsesRequest.fields,
  input: Schema.Unknown,
  tools: Schema.optional(Schema.NullOr(Schema.Array(Schema.Unknown))).annotations(problem("must be an array")),
  tool_choice: Schema.Unknown,
  text: Schema.optional(Schema.NullOr(Schema.Record({ key: Schema.String, value: Schema.Unknown }))).annotations(
    anObject
  )
})

/** What a host adds to the prompt for a tool of its own. */
const hostedPreamble = 640

/** Translated, or no part of a prompt. */
const promptless: ReadonlySet<string> = new Set(Object.keys(ResponsesRequest.fields))

/** An upper bound of what a host may read in the fields, the format and the tools, and a translation lacks. */
const unreadTokens = ({ text }: typeof Body.Type, native: JsonObject, { hosted, unread }: ReadTools): number => {
  let tokens = hostedPreamble * hosted.length
  if (hosted.length > 0) tokens += jsonTokens(hosted)
  if (unread.length > 0) tokens += jsonTokens(unread)
  for (const name in native) if (!promptless.has(name)) tokens += jsonTokens(native[name])
  for (const name in text) if (name !== "format" && name !== "verbosity") tokens += jsonTokens(text[name])
  return tokens
}

const readRequest = (body: typeof Body.Type, native: JsonObject): ChatRequest => {
  const read = readTools(native)
  const { toolChoice, tools } = readToolChoice(body.tool_choice, read)
  const responseFormat = readTextFormat(body.text?.format)
  const input = readInput(body.instructions, body.input, read.names)
  const extraTokens = input.extraTokens + unreadTokens(body, native, read)
  return {
    model: body.model,
    messages: input.messages,
    native: { dialect: "responses", body: native, headers: {}, extraTokens, only: input.only },
    stream: body.stream ?? false,
    includeUsage: false,
    maxTokens: body.max_output_tokens ?? Number.MAX_SAFE_INTEGER,
    maxTokensOmitted: true,
    stop: [],
    tools,
    webSearch: read.webSearch,
    webSearchIsHint: true,
    toolChoice,
    parallelToolCalls: tools.length === 0 ? undefined : (body.parallel_tool_calls ?? undefined),
    reasoningEffort: effortOf(body.reasoning?.effort),
    effortIsHint: true,
    responseFormat,
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined,
    promptCacheKey: body.prompt_cache_key ?? undefined,
    promptCacheRetention: body.prompt_cache_retention ?? undefined
  }
}

export const decodeResponsesBody = reader(Body, readRequest)
