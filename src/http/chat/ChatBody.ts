import { Either } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { type ReasoningEffort, reasoningEfforts } from "../../domain/Model.ts"
import {
  field,
  isAbsent,
  isArray,
  isBetween,
  isBoolean,
  isFilled,
  isIntegerBetween,
  isObject,
  isOne,
  isOneOf,
  type JsonObject,
  type Read,
  refuse,
  refuseAt,
  refused
} from "../body/Fields.ts"
import { isEmpty } from "../schema/Constraints.ts"
import { readMessages } from "./ChatMessages.ts"
import { readResponseFormat, readToolChoice, readTools } from "./ChatTools.ts"

const defaultMaxTokens = 4096
const maxStops = 16

const isTokenCap = isIntegerBetween(1, Number.MAX_VALUE)
const isPenalty = isBetween(-2, 2)
const isEffort = isOneOf("none", "minimal", ...reasoningEfforts)
const stream = field("stream", isBoolean, "a boolean")
const streamOptions = field("stream_options", isObject, "an object")
const maxTokens = field("max_tokens", isTokenCap, "an integer of at least 1")
const maxCompletionTokens = field("max_completion_tokens", isTokenCap, "an integer of at least 1")
const temperature = field("temperature", isBetween(0, 2), "a number from 0 to 2")
const topP = field("top_p", isBetween(0, 1), "a number from 0 to 1")
const seed = field("seed", isIntegerBetween(-(2 ** 63), 2 ** 63), "an integer")
const frequencyPenalty = field("frequency_penalty", isPenalty, "a number from -2 to 2")
const presencePenalty = field("presence_penalty", isPenalty, "a number from -2 to 2")
const parallelToolCalls = field("parallel_tool_calls", isBoolean, "a boolean")
const reasoningEffort = field("reasoning_effort", isEffort, "one of none, minimal, low, medium, high, xhigh")
const webSearch = field("web_search", isBoolean, "a boolean")
const n = field("n", isOne, "1")

const plainFields = [
  stream,
  streamOptions,
  maxTokens,
  maxCompletionTokens,
  temperature,
  topP,
  seed,
  frequencyPenalty,
  presencePenalty,
  parallelToolCalls,
  reasoningEffort,
  webSearch,
  n
]

const checkPlainFields = (body: JsonObject): InvalidRequest | undefined => {
  for (const plain of plainFields) {
    const problem = plain.check(body)
    if (problem !== undefined) return problem
  }
  const includeUsage = streamOptions.of(body)?.include_usage
  return isAbsent(includeUsage) || isBoolean(includeUsage)
    ? undefined
    : refuseAt("stream_options", "stream_options.include_usage", "must be a boolean")
}

/** The fields of before `tools`, with those that replace them; dropping them would change what the answer means. */
const replaced = { functions: "tools", function_call: "tool_choice" } as const

const checkLegacy = (body: JsonObject): InvalidRequest | undefined => {
  for (const name of ["functions", "function_call"] as const) {
    if (!isEmpty(body[name])) return refuseAt(name, name, `is not supported: use \`${replaced[name]}\``)
  }
  return undefined
}

/** `none` is what clients send that ask for no reasoning, and `minimal` the least that there is. */
const readEffort = (body: JsonObject): ReasoningEffort | undefined => {
  const effort = reasoningEffort.of(body)
  if (effort === "none") return undefined
  return effort === "minimal" ? "low" : effort
}

const readStop = (stop: unknown): Read<ReadonlyArray<string>> => {
  if (isAbsent(stop)) return []
  const stops = isArray(stop) ? stop : [stop]
  if (!stops.every(isFilled)) {
    return refuseAt("stop", "stop", "must be a non-empty string or an array of non-empty strings")
  }
  return stops.length <= maxStops ? stops : refuseAt("stop", "stop", `must hold at most ${maxStops} strings`)
}

const readBody = (body: unknown): Read<ChatRequest> => {
  if (!isObject(body)) return refuse(null, "The body must be a JSON object.")
  const { model } = body
  if (!isFilled(model)) return refuseAt("model", "model", "is required")
  if (!isArray(body.messages) || body.messages.length === 0) {
    return refuseAt("messages", "messages", "is required and must be a non-empty array")
  }
  const messages = readMessages(body.messages)
  if (refused(messages)) return messages
  const problem = checkPlainFields(body) ?? checkLegacy(body)
  if (problem !== undefined) return problem
  const stop = readStop(body.stop)
  if (refused(stop)) return stop
  const tools = readTools(body.tools)
  if (refused(tools)) return tools
  const toolChoice = readToolChoice(body.tool_choice, tools)
  if (refused(toolChoice)) return toolChoice
  const responseFormat = readResponseFormat(body.response_format)
  if (refused(responseFormat)) return responseFormat

  const streamed = stream.of(body) ?? false
  const completionCap = maxCompletionTokens.of(body)
  const cap = completionCap ?? maxTokens.of(body)
  return {
    model,
    messages,
    stream: streamed,
    includeUsage: streamed && streamOptions.of(body)?.include_usage === true,
    maxTokens: cap ?? defaultMaxTokens,
    maxTokensOmitted: cap === undefined,
    maxTokensField: completionCap === undefined ? undefined : "max_completion_tokens",
    stop,
    tools,
    webSearch: webSearch.of(body) ?? false,
    toolChoice,
    parallelToolCalls: tools.length === 0 ? undefined : parallelToolCalls.of(body),
    reasoningEffort: readEffort(body),
    responseFormat,
    temperature: temperature.of(body),
    topP: topP.of(body),
    seed: seed.of(body),
    frequencyPenalty: frequencyPenalty.of(body),
    presencePenalty: presencePenalty.of(body)
  }
}

/**
 * Reads the body of a chat request, already parsed. The first thing wrong is the one reported; unknown fields
 * are passed over. Written by hand, since a schema takes several times as long on a long conversation.
 */
export const decodeChatBody = (json: unknown): Either.Either<ChatRequest, InvalidRequest> => {
  const read = readBody(json)
  return refused(read) ? Either.left(read) : Either.right(read)
}
