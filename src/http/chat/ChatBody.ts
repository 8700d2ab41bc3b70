import { Effect, type Either, Schema } from "effect"
import type { ChatRequest, Message } from "../../domain/Chat.ts"
import { between, Filled, Integer, optional, upTo } from "../../domain/Constraints.ts"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { countValues } from "../../domain/Json.ts"
import { exactNumber, keepSource } from "../../domain/JsonSource.ts"
import { defaultMaxTokens, reasoningEfforts } from "../../domain/Model.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { bodyLimits } from "../body/BodyReader.ts"
import { isAbsent, isArray, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { refuse } from "../body/Refusals.ts"
import { problem, reader, reading, readWith } from "../schema/Decoding.ts"
import {
  anObject,
  conversationOf,
  effortOf,
  endUser,
  Flag,
  modelOf,
  mustBeOneOf,
  n,
  numberFrom,
  oneOf,
  parallelCallsField,
  Retention,
  StopTexts,
  samplingOnly,
  stopsProblem,
  streamField,
  TokenCap,
  unsupported
} from "../schema/SharedFields.ts"
import { AssistantMessage, readMessages, SystemMessage, ToolMessage, UserMessage } from "./ChatMessages.ts"
import {
  customToolsIn,
  ResponseFormatField,
  readResponseFormat,
  readToolChoice,
  readTools,
  ToolChoiceField,
  ToolField
} from "./ChatTools.ts"
import { flatNames } from "./ClientTools.ts"
import { readInput } from "./InputItems.ts"

const longestCacheKey = 1024

const Seed = Integer.pipe(between(-(2 ** 63), 2 ** 63)).annotations({
  ...problem("must be an integer"),
  arbitrary: () => (fc) => fc.integer()
})
const StreamOptions = Schema.Struct({ include_usage: optional(Flag) }).annotations(anObject)
const UsageOptions = Schema.Struct({ include: optional(Flag) }).annotations(anObject)
const Effort = oneOf("none", "minimal", ...reasoningEfforts)
const Stop = Schema.Union(Filled, StopTexts).annotations(
  stopsProblem("must be a non-empty string or an array of non-empty strings")
)

const CacheKey = Filled.pipe(upTo(longestCacheKey)).annotations(
  problem(`must be a non-empty string of at most ${longestCacheKey} characters`)
)
/** Earlier clients spell it with a dash. */
const ChatRetention = Schema.Literal("in_memory", "in-memory", "24h").annotations(
  problem(mustBeOneOf(Retention.literals))
)

export const ChatCompletionRequest = Schema.Struct({
  model: modelOf("a chat model"),
  messages: Schema.NonEmptyArray(Schema.Union(SystemMessage, UserMessage, AssistantMessage, ToolMessage)).annotations({
    description: "The conversation so far, oldest first."
  }),
  stream: streamField,
  stream_options: optional(StreamOptions, "`include_usage` adds a last chunk with the usage."),
  usage: optional(
    UsageOptions,
    "`include` adds `cost` to the usage: what the request was charged, in USD. A stream then has its last chunk with the usage, too."
  ),
  max_tokens: optional(
    TokenCap,
    `Default ${defaultMaxTokens}. Above the model's own cap it is lowered to that cap; some models refuse it instead.`
  ),
  max_completion_tokens: optional(TokenCap, "Alias of `max_tokens`; wins when both are given."),
  temperature: optional(numberFrom(0, 2), `Higher values are more random; default 1. ${samplingOnly}`),
  top_p: optional(numberFrom(0, 1), `The share of likely tokens to choose from; default 1. ${samplingOnly}`),
  seed: optional(Seed, `Makes repeated requests answer alike, as far as the model can. ${samplingOnly}`),
  frequency_penalty: optional(numberFrom(-2, 2), `Above 0, words are repeated less; default 0. ${samplingOnly}`),
  presence_penalty: optional(numberFrom(-2, 2), `Above 0, new topics are likelier; default 0. ${samplingOnly}`),
  parallel_tool_calls: parallelCallsField,
  reasoning_effort: optional(
    Effort,
    "Reasoning models only; `params` in the list of models has the values of each. `none` is the same as leaving it out, `minimal` is `low`."
  ),
  web_search: optional(Flag, "Default false; server-side web search, where the model has it."),
  n,
  functions: unsupported("use `tools`"),
  function_call: unsupported("use `tool_choice`"),
  stop: optional(Stop, "Generation stops before any of these texts."),
  tools: optional(Schema.Array(ToolField), "Tools that the model may call. Not every model has tools."),
  tool_choice: optional(ToolChoiceField, "Whether the model may or must call a tool, or which of `tools`."),
  response_format: optional(ResponseFormatField, "Makes the answer JSON, or JSON of a schema. Not every model can."),
  prompt_cache_key: optional(CacheKey, "The same for requests that share a long beginning, which vendors may cache."),
  prompt_cache_retention: optional(ChatRetention, "How long a vendor that has the choice keeps a cached prompt."),
  ...endUser
}).annotations({ identifier: "ChatCompletionRequest" })

/**
 * Conversations and tools are read by hand. Median CPU in microseconds (nine interleaved rounds, Node 20) to read a
 * whole body, and to decode it by its document's schema, which would still have to be translated:
 *
 * | body | by hand | by schema |
 * |---|---|---|
 * | two messages | 6 | 7 |
 * | two messages and 20 tools | 63 | 99 |
 * | 100 messages and 20 tools | 114 | 420 |
 * | the same for Messages | 142 | 376 |
 * | the same for Responses | 152 | 561 |
 *
 * A small chat takes about 250 in all. The readers also take forms that the document leaves out. Words, bounds and
 * names are those of the schemas, and `test/http/openapi/Bodies.long.test.ts` proves that the readers accept what the
 * document accepts, and name the field that they refuse.
 */
const Body = Schema.Struct({
  ...ChatCompletionRequest.fields,
  messages: conversationOf(readMessages),
  tools: Schema.optional(readWith(Schema.Unknown, reading(readTools))),
  tool_choice: Schema.Unknown,
  response_format: Schema.Unknown
})

const stopsOf = ({ stop }: typeof Body.Type): ReadonlyArray<string> => {
  if (typeof stop === "string") return [stop]
  return stop ?? []
}

const retentionOf = ({ prompt_cache_retention: retention }: typeof Body.Type) =>
  retention === "in-memory" ? "in_memory" : (retention ?? undefined)

/** The digits that the client wrote. */
const seedOf = ({ seed }: typeof Body.Type, json: JsonObject): number | bigint | undefined => {
  if (isAbsent(seed)) return undefined
  const text = exactNumber(json, "seed")
  return text !== undefined && /^-?\d+$/.test(text) ? BigInt(text) : seed
}

const readRequest = (body: typeof Body.Type, json: JsonObject): ChatRequest => {
  const { messages, model, tools: declared = [] } = body
  const { toolChoice, tools } = readToolChoice(body.tool_choice, declared)
  const responseFormat = readResponseFormat(body.response_format)
  const stream = body.stream ?? false
  const completionCap = body.max_completion_tokens ?? undefined
  const cap = completionCap ?? body.max_tokens ?? undefined
  const includeCost = body.usage?.include === true
  return {
    model,
    messages,
    stream,
    includeUsage: stream && (includeCost || body.stream_options?.include_usage === true),
    ...(includeCost ? { includeCost } : undefined),
    maxTokens: cap ?? defaultMaxTokens,
    maxTokensOmitted: cap === undefined,
    maxTokensField: completionCap === undefined ? undefined : "max_completion_tokens",
    stop: stopsOf(body),
    tools,
    customTools: customToolsIn(tools),
    webSearch: body.web_search ?? false,
    toolChoice,
    parallelToolCalls: tools.length === 0 ? undefined : (body.parallel_tool_calls ?? undefined),
    reasoningEffort: effortOf(body.reasoning_effort),
    responseFormat,
    promptCacheKey: body.prompt_cache_key ?? undefined,
    promptCacheRetention: retentionOf(body),
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined,
    seed: seedOf(body, json),
    frequencyPenalty: body.frequency_penalty ?? undefined,
    presencePenalty: body.presence_penalty ?? undefined
  }
}

const decodeBody = reader(Body, readRequest)

const chatFormatOf = (text: unknown): unknown => {
  const format = isObject(text) ? text.format : undefined
  if (!isObject(format) || format.type !== "json_schema") return format
  const { type, ...json_schema } = format
  return { type, json_schema }
}

const chatEffortOf = (reasoning: unknown): unknown => {
  const effort = isObject(reasoning) ? reasoning.effort : undefined
  return effort === "max" ? "xhigh" : effort
}

/** The fields of Responses that chat completions have under other names. */
const toChatFields = (json: JsonObject): JsonObject => {
  const { max_output_tokens, reasoning, text } = json
  const [effort, format] = [chatEffortOf(reasoning), chatFormatOf(text)]
  return keepSource(json, {
    ...(isAbsent(max_output_tokens) ? undefined : { max_completion_tokens: max_output_tokens }),
    ...(isAbsent(effort) ? undefined : { reasoning_effort: effort }),
    ...(isAbsent(format) ? undefined : { response_format: format }),
    ...json
  })
}

/** The messages of a body with `input`. It is translated for every route. */
const readItems = ({ input, instructions }: JsonObject): ReadonlyArray<Message> => {
  const { messages, only } = readInput(isString(instructions) ? instructions : undefined, input, flatNames)
  if (only !== undefined) throw refuse("input", `${only.what} is not supported here.`)
  return messages
}

/** A conversation of Responses items in the place of `messages`, as Cursor sends it. */
const ItemsBody = Schema.Struct({ ...Body.fields, messages: Schema.Unknown, input: Schema.Unknown })

const decodeItems = reader(ItemsBody, (body, json) => readRequest({ ...body, messages: readItems(json) }, json))

const isEmptyList = (given: unknown): boolean => isArray(given) && given.length === 0

const hasItems = ({ input, messages }: JsonObject): boolean =>
  !isAbsent(input) && (isAbsent(messages) || (isEmptyList(messages) && !isEmptyList(input)))

export const decodeChatBody = (json: unknown): Either.Either<ChatRequest, InvalidRequest> =>
  isObject(json) && hasItems(json) ? decodeItems(toChatFields(json)) : decodeBody(json)

/** Larger requests are processed in slices. */
export const largeRequest = 256 * 1024

const most = bodyLimits.values.toLocaleString("en-US")
const tooMany = refuse("messages", `The arguments of all tool calls must hold at most ${most} values together.`)

/** Tool arguments are JSON in JSON, which is parsed in one go. */
function* holdsFewArguments({ messages }: ChatRequest): EventLoop.Steps<boolean> {
  let values = 0
  for (const message of messages) {
    if (message.role !== "assistant") continue
    for (const call of message.tool_calls ?? []) values += yield* countValues(call.function.arguments)
    if (values > bodyLimits.values) return false
  }
  return true
}

export const largeChat = (request: ChatRequest): Effect.Effect<ChatRequest, InvalidRequest> =>
  Effect.flatMap(EventLoop.runInSlices(holdsFewArguments(request)), (isUsable) =>
    isUsable ? Effect.succeed({ ...request, isLarge: true }) : tooMany
  )
