import { Schema } from "effect"
import type { ChatRequest } from "../../domain/Chat.ts"
import { Filled, optional, upTo } from "../../domain/Constraints.ts"
import { jsonTokens } from "../../domain/Pricing.ts"
import type { JsonObject } from "../body/Guards.ts"
import { ClientToolsField } from "../chat/ClientTools.ts"
import { InputField, readInput } from "../chat/InputItems.ts"
import { problem, reader } from "../schema/Decoding.ts"
import {
  endUser,
  Flag,
  JsonSchema,
  modelOf,
  numberFrom,
  oneOf,
  samplingOnly,
  TokenCap,
  unsupported
} from "../schema/SharedFields.ts"
import { type ReadTools, ResponsesToolChoice, readFormat, readToolChoice, readTools } from "./ResponsesTools.ts"

const maxMetadata = 16
const longestMetadata = 512
const Metadata = Schema.Record({ key: Schema.String, value: Schema.String.pipe(upTo(longestMetadata)) }).pipe(
  Schema.filter((pairs) => Object.keys(pairs).length <= maxMetadata, { jsonSchema: { maxProperties: maxMetadata } }),
  Schema.annotations(
    problem(`must be an object of at most ${maxMetadata} strings, of at most ${longestMetadata} characters each`)
  )
)
const Text = Schema.String.annotations(problem("must be a string"))

const Reasoning = Schema.Struct({
  effort: optional(
    oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "An effort that the model lacks becomes its nearest."
  ),
  summary: optional(Text)
}).annotations(problem("must be an object"))

const Format = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text", "json_object") }),
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    name: Filled,
    description: optional(Schema.String),
    schema: optional(JsonSchema),
    strict: optional(Schema.Boolean)
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
  stream: optional(Flag, "Default false; true answers with server-sent events."),
  max_output_tokens: optional(TokenCap, "Default, and at most, the model's own cap; reasoning included."),
  tools: optional(
    ClientToolsField,
    "`function` and `custom` tools, also in a `namespace`, work with every model that has tools. `web_search` searches where the model can. Others need a route that speaks this API, and are left out elsewhere."
  ),
  tool_choice: optional(ResponsesToolChoice, "Whether the model may or must call a tool, or which of `tools`."),
  parallel_tool_calls: optional(Flag, "Whether one answer may hold several tool calls."),
  reasoning: optional(Reasoning, "Ignored by models without reasoning."),
  text: optional(TextOptions),
  temperature: optional(numberFrom(0, 2), samplingOnly),
  top_p: optional(numberFrom(0, 1), samplingOnly),
  include: optional(
    Schema.Array(Schema.String).annotations(problem("must be an array of strings")),
    "`reasoning.encrypted_content` adds it to reasoning items; send those back as they are."
  ),
  prompt_cache_key: optional(Text, "Requests of one conversation share a cache under the same key."),
  prompt_cache_retention: optional(oneOf("in_memory", "24h"), "How long the provider keeps the cache, where it can."),
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

const readRequest = (body: typeof Body.Type, native: JsonObject): ChatRequest => {
  const read = readTools(native)
  const { toolChoice, tools } = readToolChoice(body.tool_choice, read)
  const responseFormat = readFormat(body.text?.format)
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
    reasoningEffort: effortOf(body),
    effortIsHint: true,
    responseFormat,
    temperature: body.temperature ?? undefined,
    topP: body.top_p ?? undefined,
    promptCacheKey: body.prompt_cache_key ?? undefined,
    promptCacheRetention: body.prompt_cache_retention ?? undefined
  }
}

export const decodeResponsesBody = reader(Body, readRequest)
