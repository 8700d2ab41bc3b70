import { flow, Schema } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { jsonTokens } from "../../domain/Pricing.ts"
import { type JsonObject } from "../body/Guards.ts"
import { readInput } from "../chat/InputItems.ts"
import { isRefusal, type Result, toEither } from "../chat/Result.ts"
import { problem, reader } from "../schema/Decoding.ts"
import { ResponsesRequest } from "./Schema.ts"
import { type ReadTools, readFormat, readToolChoice, readTools } from "./Tools.ts"

/** Items, tools and the format are read by hand, as in chats. */
const Body = Schema.Struct({
  ...ResponsesRequest.fields,
  input: Schema.Unknown,
  tools: Schema.optional(Schema.NullOr(Schema.Array(Schema.Unknown))).annotations(problem("must be an array")),
  tool_choice: Schema.Unknown,
  text: Schema.optional(Schema.NullOr(Schema.Record({ key: Schema.String, value: Schema.Unknown }))).annotations(
    problem("must be an object")
  )
})

const effortOf = ({ reasoning }: typeof Body.Type) => {
  switch (reasoning?.effort) {
    case "none":
    case null:
      return undefined
    case "minimal":
      return "low"
    case "max":
      return "xhigh"
    default:
      return reasoning?.effort
  }
}

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

const readRequest = (body: typeof Body.Type, native: JsonObject): Result<ChatRequest> => {
  const read = readTools(native)
  if (isRefusal(read)) return read
  const chosen = readToolChoice(body.tool_choice, read)
  if (isRefusal(chosen)) return chosen
  const responseFormat = readFormat(body.text?.format)
  if (isRefusal(responseFormat)) return responseFormat
  const input = readInput(body.instructions, body.input, read.names)
  if (isRefusal(input)) return input
  const { choice, tools } = chosen
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
    toolChoice: choice,
    parallelToolCalls: tools.length === 0 ? undefined : (body.parallel_tool_calls ?? undefined),
    reasoningEffort: effortOf(body),
    effortIsHint: true,
    responseFormat,
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined,
    promptCacheKey: body.prompt_cache_key ?? undefined,
    promptCacheRetention: body.prompt_cache_retention ?? undefined
  }
}

export const decodeResponsesBody = reader(Body, flow(readRequest, toEither))
