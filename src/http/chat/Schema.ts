import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { callIdMark, readCallId } from "../../domain/CallId.ts"
import { between, described, Filled, Integer, isWithin, matching, optional, upTo } from "../../domain/Constraints.ts"
import { reasoningEfforts } from "../../domain/Model.ts"
import { GenerationErrors } from "../errors/Schemas.ts"
import { problem } from "../schema/Decoding.ts"
import { Authenticated, GatewayTag } from "../schema/Headers.ts"
import {
  documentEvents,
  endUser,
  Flag,
  JsonSchema,
  modelOf,
  n,
  numberFrom,
  oneOf,
  StopTexts,
  samplingOnly,
  stopsProblem,
  TokenCap,
  textOr,
  unsupported
} from "../schema/SharedFields.ts"
import { ChatCompletion } from "./CompletionSchema.ts"
import { ImagePart, marked, RefusalPart, TextPart } from "./PartSchema.ts"
import { Tool, ToolChoice } from "./ToolSchema.ts"

const FormatName = matching(/^[a-zA-Z0-9_-]{1,64}$/)

const SystemMessage = Schema.Struct({
  role: Schema.Literal("system", "developer"),
  content: textOr(TextPart),
  name: optional(Schema.String),
  ...marked
}).annotations({ identifier: "SystemMessage" })
const UserMessage = Schema.Struct({
  role: Schema.Literal("user"),
  content: textOr(Schema.Union(TextPart, ImagePart)),
  name: optional(Schema.String),
  ...marked
}).annotations({ identifier: "UserMessage" })

const longestCacheKey = 1024

/** The longest id or name of a call: longer texts make slow keys. */
export const longestName = 4096
const CallId = Filled.pipe(
  Schema.filter((wire) => isWithin(longestName, readCallId(wire).id), {
    jsonSchema: {
      type: "string",
      minLength: 1,
      anyOf: [{ maxLength: longestName }, { pattern: callIdMark }],
      description: `As the answer had it; at most 4,096 characters before the \`${callIdMark}\` that some have.`
    }
  })
)

const CalledFunction = Schema.Struct({
  name: Filled.pipe(upTo(longestName)),
  arguments: Schema.String.annotations({ description: "A JSON text, as the model wrote it." })
})
const CalledCustom = Schema.Struct({ name: Filled.pipe(upTo(longestName)), input: Schema.String })
const EarlierToolCall = Schema.Union(
  Schema.Struct({ id: CallId, type: optional(Schema.Literal("function")), function: CalledFunction }),
  Schema.Struct({
    id: CallId,
    type: optional(Schema.Literal("function")),
    function: optional(Schema.Null),
    ...CalledFunction.fields
  }),
  Schema.Struct({ id: CallId, type: Schema.Literal("custom"), custom: CalledCustom }),
  Schema.Struct({
    id: CallId,
    type: Schema.Literal("custom"),
    custom: optional(Schema.Null),
    ...CalledCustom.fields
  })
).annotations({ identifier: "EarlierToolCall" })

const AssistantMessage = Schema.Struct({
  role: Schema.Literal("assistant"),
  content: optional(
    Schema.Union(Schema.String, Schema.Array(Schema.Union(TextPart, RefusalPart))),
    "May be left out, also without `tool_calls`."
  ),
  name: optional(Schema.String),
  refusal: optional(Schema.String),
  reasoning_content: optional(Schema.String),
  tool_calls: optional(Schema.Array(EarlierToolCall)),
  function_call: described(Schema.Null, "Not supported: send `tool_calls`."),
  ...marked
}).annotations({ identifier: "AssistantMessage" })
const ToolMessage = Schema.Struct({
  role: Schema.Literal("tool"),
  content: textOr(TextPart),
  tool_call_id: Filled.annotations({ description: "A tool call of an earlier assistant message." }),
  ...marked
}).annotations({ identifier: "ToolMessage" })

const ResponseFormat = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text") }),
  Schema.Struct({
    type: Schema.Literal("json_object"),
    schema: optional(JsonSchema, "As a `json_schema` of any name."),
    json_schema: described(Schema.Null, "Needs the type `json_schema`.")
  }),
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    json_schema: Schema.Struct({
      name: FormatName,
      description: optional(Schema.String),
      schema: optional(JsonSchema),
      strict: optional(Schema.Boolean)
    })
  })
)

const Seed = Integer.pipe(between(-(2 ** 63), 2 ** 63)).annotations({
  ...problem("must be an integer"),
  arbitrary: () => (fc) => fc.integer()
})
const StreamOptions = Schema.Struct({ include_usage: optional(Flag) }).annotations(problem("must be an object"))
const UsageOptions = Schema.Struct({ include: optional(Flag) }).annotations(problem("must be an object"))
const Effort = oneOf("none", "minimal", ...reasoningEfforts)
const Stop = Schema.Union(Filled, StopTexts).annotations(
  stopsProblem("must be a non-empty string or an array of non-empty strings")
)

const CacheKey = Filled.pipe(upTo(longestCacheKey)).annotations(
  problem(`must be a non-empty string of at most ${longestCacheKey} characters`)
)
const Retention = Schema.Literal("in_memory", "in-memory", "24h").annotations(problem("must be one of in_memory, 24h"))

export const ChatCompletionRequest = Schema.Struct({
  model: modelOf("a chat model"),
  messages: Schema.NonEmptyArray(Schema.Union(SystemMessage, UserMessage, AssistantMessage, ToolMessage)).annotations({
    description: "The conversation so far, oldest first."
  }),
  stream: optional(Flag, "Default false; true answers with server-sent events."),
  stream_options: optional(StreamOptions, "`include_usage` adds a last chunk with the usage."),
  usage: optional(
    UsageOptions,
    "`include` adds `cost` to the usage: what the request was charged, in USD. A stream then has its last chunk with the usage, too."
  ),
  max_tokens: optional(
    TokenCap,
    "Default 4096. Above the model's own cap it is lowered to that cap; some models refuse it instead."
  ),
  max_completion_tokens: optional(TokenCap, "Alias of `max_tokens`; wins when both are given."),
  temperature: optional(numberFrom(0, 2), `Higher values are more random; default 1. ${samplingOnly}`),
  top_p: optional(numberFrom(0, 1), `The share of likely tokens to choose from; default 1. ${samplingOnly}`),
  seed: optional(Seed, `Makes repeated requests answer alike, as far as the model can. ${samplingOnly}`),
  frequency_penalty: optional(numberFrom(-2, 2), `Above 0, words are repeated less; default 0. ${samplingOnly}`),
  presence_penalty: optional(numberFrom(-2, 2), `Above 0, new topics are likelier; default 0. ${samplingOnly}`),
  parallel_tool_calls: optional(Flag, "Whether one answer may hold several tool calls."),
  reasoning_effort: optional(
    Effort,
    "Reasoning models only; `params` in the list of models has the values of each. `none` is the same as leaving it out, `minimal` is `low`."
  ),
  web_search: optional(Flag, "Default false; server-side web search, where the model has it."),
  n,
  functions: unsupported("use `tools`"),
  function_call: unsupported("use `tool_choice`"),
  stop: optional(Stop, "Generation stops before any of these texts."),
  tools: optional(Schema.Array(Tool), "Tools that the model may call. Not every model has tools."),
  tool_choice: optional(ToolChoice, "Whether the model may or must call a tool, or which of `tools`."),
  response_format: optional(ResponseFormat, "Makes the answer JSON, or JSON of a schema. Not every model can."),
  prompt_cache_key: optional(CacheKey, "The same for requests that share a long beginning, which vendors may cache."),
  prompt_cache_retention: optional(Retention, "How long a vendor that has the choice keeps a cached prompt."),
  ...endUser
}).annotations({ identifier: "ChatCompletionRequest" })

const description = `Answers with JSON, or with server-sent events when \`stream\` is true:

\`\`\`
data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},…}],…}

data: {"choices":[{"index":0,"delta":{"content":"Hello"},…}],…}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],…}

data: [DONE]
\`\`\`

A stream is whole only with its \`data: [DONE]\`; one that breaks ends with an event that has an \`error\`, and costs nothing.`

export const completeChat = HttpApiEndpoint.post("complete", "/chat/completions")
  .setHeaders(GatewayTag)
  .setPayload(ChatCompletionRequest)
  .addSuccess(ChatCompletion)
  .addError(GenerationErrors)
  .annotateContext(
    OpenApi.annotations({
      identifier: "createChatCompletion",
      summary: "Create a chat completion",
      description,
      ...documentEvents("ChatStreamEvent")
    })
  )

export const Chat = HttpApiGroup.make("chat")
  .add(completeChat)
  .annotate(OpenApi.Description, "Text in the chat-completions convention, whole or as a stream.")
  .middleware(Authenticated)
