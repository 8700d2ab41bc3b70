import { Effect, type Either, Schema } from "effect"
import type { ChatRequest, Message } from "../../domain/Chat.ts"
import { between, Integer, NonEmptyString, optional, upTo } from "../../domain/Constraints.ts"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { countValues } from "../../domain/Json.ts"
import { exactNumber, keepSource } from "../../domain/JsonSource.ts"
import { defaultMaxTokens, reasoningEfforts } from "../../domain/Model.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { bodyLimits } from "../body/BodyReader.ts"
import { isAbsent, isArray, isObject, isString, type JsonObject, refuse } from "../body/Guards.ts"
import { catchRefusal, makeBodyReader, problem, readWith } from "../schema/Decoding.ts"
import {
  conversationField,
  endUserFields,
  Flag,
  modelField,
  mustBeObject,
  mustBeOneOf,
  n,
  numberFrom,
  oneOf,
  parallelCallsField,
  Retention,
  refusedField,
  StopTexts,
  samplingNote,
  stopsProblem,
  streamField,
  TokenCap,
  toReasoningEffort
} from "../schema/SharedFields.ts"
import { AssistantMessage, readMessages, SystemMessage, ToolMessage, UserMessage } from "./ChatMessages.ts"
import {
  findCustomTools,
  ResponseFormatField,
  readResponseFormat,
  readToolChoice,
  readTools,
  ToolChoiceField,
  ToolField
} from "./ChatTools.ts"
import { flatNames } from "./ClientTools.ts"
import { readInput } from "./InputItems.ts"

const maxCacheKeyLength = 1024

const Seed = Integer.pipe(between(-(2 ** 63), 2 ** 63)).annotations({
  ...problem("must be an integer"),
  arbitrary: () => (fc) => fc.integer()
})
const StreamOptions = Schema.Struct({ include_usage: optional(Flag) }).annotations(mustBeObject)
const UsageOptions = Schema.Struct({ include: optional(Flag) }).annotations(mustBeObject)
const Effort = oneOf("none", "minimal", ...reasoningEfforts)
const Stop = Schema.Union(NonEmptyString, StopTexts).annotations(
  stopsProblem("must be a non-empty string or an array of non-empty strings")
)

const CacheKey = NonEmptyString.pipe(upTo(maxCacheKeyLength)).annotations(
  problem(`must be a non-empty string of at most ${maxCacheKeyLength} characters`)
)
/** Accepts `in-memory` too, because older clients send it. */
const ChatRetention = Schema.Literal("in_memory", "in-memory", "24h").annotations(
  problem(mustBeOneOf(Retention.literals))
)

export const ChatCompletionRequest = Schema.Struct({
  model: modelField("a chat model"),
  messages: Schema.NonEmptyArray(Schema.Union(SystemMessage, UserMessage, AssistantMessage, ToolMessage)).annotations({
    description: "The conversation so far, oldest first."
  }),
  stream: streamField,
  stream_options: optional(StreamOptions, "`include_usage` adds a last chunk with the usage."),
  usage: optional(
    UsageOptions,
    "`include` adds the charge in USD to the usage, as `cost`. A stream then also ends with the usage."
  ),
  max_tokens: optional(
    TokenCap,
    `Default ${defaultMaxTokens}. A value above the model's cap is lowered to that cap. Some models reject it instead.`
  ),
  max_completion_tokens: optional(TokenCap, "Alias of `max_tokens`, which it overrides."),
  temperature: optional(numberFrom(0, 2), `Higher values are more random. Default 1. ${samplingNote}`),
  top_p: optional(numberFrom(0, 1), `The share of likely tokens to choose from. Default 1. ${samplingNote}`),
  seed: optional(Seed, `Makes responses to repeated requests similar, if the model supports it. ${samplingNote}`),
  frequency_penalty: optional(numberFrom(-2, 2), `Values above 0 reduce repetition. Default 0. ${samplingNote}`),
  presence_penalty: optional(
    numberFrom(-2, 2),
    `Values above 0 make new topics more likely. Default 0. ${samplingNote}`
  ),
  parallel_tool_calls: parallelCallsField,
  reasoning_effort: optional(
    Effort,
    "Needs a reasoning model. The model's `params` list its values. `none` is the same as an absent field, and `minimal` is `low`."
  ),
  web_search: optional(Flag, "Lets the model search the web, if it can. Default false."),
  n,
  functions: refusedField("use `tools`"),
  function_call: refusedField("use `tool_choice`"),
  stop: optional(Stop, "Generation stops before any of these texts."),
  tools: optional(Schema.Array(ToolField), "Tools that the model may call. Not every model supports tools."),
  tool_choice: optional(ToolChoiceField, "Whether the model may or must call a tool, or which of `tools`."),
  response_format: optional(ResponseFormatField, "Requests JSON, or JSON of a schema. Not every model supports it."),
  prompt_cache_key: optional(CacheKey, "Identifies requests that share a long prefix, which providers may cache."),
  prompt_cache_retention: optional(ChatRetention, "How long the provider caches the prompt, if it offers a choice."),
  ...endUserFields
}).annotations({ identifier: "ChatCompletionRequest" })

/**
 * Functions written by hand read conversations and tools, because they use less CPU than decoding by schema. The table
 * shows the median CPU in microseconds for a complete body (nine interleaved rounds, Node 20). Decoding by schema would
 * also need a second pass that translates its result.
 *
 * | body | by hand | by schema |
 * |---|---|---|
 * | two messages | 6 | 7 |
 * | two messages and 20 tools | 63 | 99 |
 * | 100 messages and 20 tools | 114 | 420 |
 * | the same for Messages | 142 | 376 |
 * | the same for Responses | 152 | 561 |
 *
 * A small chat request takes about 250 in total. The readers also accept formats that the API document omits. They share
 * literals, limits and names with the schemas. `test/http/openapi/Bodies.long.test.ts` proves that the readers accept
 * what the document accepts, and that their refusals name the invalid field.
 */
const Body = Schema.Struct({
  ...ChatCompletionRequest.fields,
  messages: conversationField(readMessages),
  tools: Schema.optional(readWith(Schema.Unknown, catchRefusal(readTools))),
  tool_choice: Schema.Unknown,
  response_format: Schema.Unknown
})

const readStops = ({ stop }: typeof Body.Type): ReadonlyArray<string> => {
  if (typeof stop === "string") return [stop]
  return stop ?? []
}

const readRetention = ({ prompt_cache_retention: retention }: typeof Body.Type) =>
  retention === "in-memory" ? "in_memory" : (retention ?? undefined)

/** Returns the seed exactly: as a bigint if a JavaScript number cannot represent it. */
const readSeed = ({ seed }: typeof Body.Type, json: JsonObject): number | bigint | undefined => {
  if (isAbsent(seed)) return undefined
  const text = exactNumber(json, "seed")
  return text !== undefined && /^-?\d+$/.test(text) ? BigInt(text) : seed
}

const readRequest = (body: typeof Body.Type, json: JsonObject): ChatRequest => {
  const { messages, model, tools: definitions = [] } = body
  const { toolChoice, tools } = readToolChoice(body.tool_choice, definitions)
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
    hasDefaultMaxTokens: cap === undefined,
    maxTokensField: completionCap === undefined ? undefined : "max_completion_tokens",
    stop: readStops(body),
    tools,
    customTools: findCustomTools(tools),
    webSearch: body.web_search ?? false,
    toolChoice,
    parallelToolCalls: tools.length === 0 ? undefined : (body.parallel_tool_calls ?? undefined),
    reasoningEffort: toReasoningEffort(body.reasoning_effort),
    responseFormat,
    promptCacheKey: body.prompt_cache_key ?? undefined,
    promptCacheRetention: readRetention(body),
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined,
    seed: readSeed(body, json),
    frequencyPenalty: body.frequency_penalty ?? undefined,
    presencePenalty: body.presence_penalty ?? undefined
  }
}

const decodeBody = makeBodyReader(Body, readRequest)

const toResponseFormat = (text: unknown): unknown => {
  const format = isObject(text) ? text.format : undefined
  if (!isObject(format) || format.type !== "json_schema") return format
  const { type, ...json_schema } = format
  return { type, json_schema }
}

const toChatEffort = (reasoning: unknown): unknown => {
  const effort = isObject(reasoning) ? reasoning.effort : undefined
  return effort === "max" ? "xhigh" : effort
}

/** Adds chat-completions fields for Responses fields that have another name there. */
const toChatFields = (json: JsonObject): JsonObject => {
  const { max_output_tokens, reasoning, text } = json
  const [effort, format] = [toChatEffort(reasoning), toResponseFormat(text)]
  return keepSource(json, {
    ...(isAbsent(max_output_tokens) ? undefined : { max_completion_tokens: max_output_tokens }),
    ...(isAbsent(effort) ? undefined : { reasoning_effort: effort }),
    ...(isAbsent(format) ? undefined : { response_format: format }),
    ...json
  })
}

/** Reads Responses items as messages. Refuses items that only a provider with the Responses API can read. */
const readItems = ({ input, instructions }: JsonObject): ReadonlyArray<Message> => {
  const { messages, nativeOnly } = readInput(isString(instructions) ? instructions : undefined, input, flatNames)
  if (nativeOnly !== undefined) throw refuse("input", `${nativeOnly.what} is not supported in chat completions.`)
  return messages
}

/** Cursor sends Responses items in `input` instead of `messages`. */
const ItemsBody = Schema.Struct({ ...Body.fields, messages: Schema.Unknown, input: Schema.Unknown })

const decodeItems = makeBodyReader(ItemsBody, (body, json) => readRequest({ ...body, messages: readItems(json) }, json))

const isEmptyList = (value: unknown): boolean => isArray(value) && value.length === 0

const hasItems = ({ input, messages }: JsonObject): boolean =>
  !isAbsent(input) && (isAbsent(messages) || (isEmptyList(messages) && !isEmptyList(input)))

export const decodeChatBody = (json: unknown): Either.Either<ChatRequest, InvalidRequest> =>
  isObject(json) && hasItems(json) ? decodeItems(toChatFields(json)) : decodeBody(json)

/** The gateway processes larger requests in slices. */
export const maxUnslicedBytes = 256 * 1024

const maxValues = bodyLimits.values.toLocaleString("en-US")
const tooManyValues = refuse(
  "messages",
  `The arguments of all tool calls must have at most ${maxValues} values in total.`
)

/**
 * Returns whether the arguments of all tool calls have few enough values. Arguments are JSON within JSON, and later steps
 * parse them without letting other requests run.
 */
function* hasParsableArguments({ messages }: ChatRequest): EventLoop.Steps<boolean> {
  let values = 0
  for (const message of messages) {
    if (message.role !== "assistant") continue
    for (const call of message.tool_calls ?? []) values += yield* countValues(call.function.arguments)
    if (values > bodyLimits.values) return false
  }
  return true
}

/** Sets `isLarge`, or fails with `InvalidRequest` if the tool arguments have too many values. */
export const markLarge = (request: ChatRequest): Effect.Effect<ChatRequest, InvalidRequest> =>
  Effect.flatMap(EventLoop.runInSlices(hasParsableArguments(request)), (isParsable) =>
    isParsable ? Effect.succeed({ ...request, isLarge: true }) : tooManyValues
  )
