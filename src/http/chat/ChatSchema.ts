import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { describedField, Integer, NonEmptyString } from "../../domain/Constraints.ts"
import { Envelope, GenerationErrors } from "../errors/ErrorMessages.ts"
import { Authenticated, GatewayTag } from "../schema/Headers.ts"
import { Arguments, documentEvents, Tokens, UnixSeconds } from "../schema/SharedFields.ts"
import { ChatCompletionRequest } from "./ChatBody.ts"

const FinishReason = Schema.Literal("stop", "length", "tool_calls", "content_filter")

const FunctionCall = Schema.Struct({
  id: NonEmptyString,
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: NonEmptyString,
    arguments: Arguments
  })
})
const CustomCall = Schema.Struct({
  id: NonEmptyString,
  type: Schema.Literal("custom"),
  custom: Schema.Struct({ name: NonEmptyString, input: Schema.String })
}).annotations({ description: "A call of a tool with the type `custom`." })
const ToolCall = Schema.Union(FunctionCall, CustomCall).annotations({ identifier: "ToolCall" })

/** The fields of a `url_citation`, which chat completions and Responses share. */
export const citation = {
  url: Schema.String,
  title: Schema.String.annotations({ description: "The URL if the provider gives no title." }),
  start_index: Tokens.annotations({ description: "Start of the text that the source supports." }),
  end_index: Tokens.annotations({ description: "Its end, exclusive. Both are 0 if the provider gives no range." })
}
const Annotation = Schema.Struct({
  type: Schema.Literal("url_citation"),
  url_citation: Schema.Struct(citation)
}).annotations({ identifier: "Annotation", description: "A source that a search found." })
const annotations = Schema.Array(Annotation)

export const CacheUse = Schema.Struct({
  cached_tokens: Tokens.annotations({ description: "Read from the provider's cache." }),
  cache_write_tokens: Tokens.annotations({ description: "Written to the provider's cache." }),
  cache_write_1h_tokens: describedField(Tokens, "The part of `cache_write_tokens` with a lifetime of one hour.")
})
export const toolUse = {
  server_tool_use: describedField(
    Schema.Struct({ web_search_requests: Tokens }),
    "Present if web searches are charged."
  )
}

export const CompletionUsage = Schema.Struct({
  prompt_tokens: Tokens,
  completion_tokens: Tokens,
  total_tokens: Tokens,
  prompt_tokens_details: CacheUse,
  completion_tokens_details: Schema.Struct({ reasoning_tokens: Tokens }),
  ...toolUse,
  cost: describedField(Schema.Number, "The charge in USD. Present with `usage.include`.")
}).annotations({ identifier: "Usage", description: "The billed tokens." })
export type CompletionUsage = typeof CompletionUsage.Type

export const ChatCompletion = Schema.Struct({
  id: Schema.String.annotations({ description: "The gateway's own id of the response." }),
  object: Schema.Literal("chat.completion"),
  created: UnixSeconds,
  model: Schema.String.annotations({ description: "The catalog id of the request." }),
  choices: Schema.Array(
    Schema.Struct({
      index: Integer,
      message: Schema.Struct({
        role: Schema.Literal("assistant"),
        content: Schema.NullOr(Schema.String).annotations({ description: "Null if there are only tool calls." }),
        refusal: Schema.NullOr(Schema.String),
        reasoning_content: describedField(Schema.String, "The reasoning, if the provider returns it."),
        tool_calls: describedField(Schema.Array(ToolCall), "Tools that the model calls."),
        annotations: describedField(annotations, "The sources of the text, if a search found any.")
      }),
      logprobs: Schema.Null,
      finish_reason: Schema.NullOr(FinishReason)
    })
  ).annotations({ description: "One choice." }),
  usage: CompletionUsage
}).annotations({ identifier: "ChatCompletion", description: "The complete response." })
export type ChatCompletion = typeof ChatCompletion.Type

const ToolCallDelta = Schema.Struct({
  index: Integer.annotations({ description: "The number of the tool call, from 0." }),
  id: Schema.optional(Schema.String),
  type: Schema.optional(Schema.Literal("function", "custom")),
  function: Schema.optional(Schema.Struct({ name: Schema.optional(Schema.String), arguments: Schema.String })),
  custom: describedField(
    Schema.Struct({ name: Schema.optional(Schema.String), input: Schema.String }),
    "The call of a custom tool. Its input arrives in one piece."
  )
})

export const ChatCompletionChunk = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("chat.completion.chunk"),
  created: UnixSeconds,
  model: Schema.String,
  choices: Schema.Array(
    Schema.Struct({
      index: Integer,
      delta: Schema.Struct({
        role: Schema.optional(Schema.Literal("assistant")),
        content: Schema.optional(Schema.String),
        reasoning_content: Schema.optional(Schema.String),
        tool_calls: Schema.optional(Schema.Array(ToolCallDelta)),
        annotations: describedField(annotations, "All sources in one list, before the last delta.")
      }),
      logprobs: Schema.Null,
      finish_reason: Schema.NullOr(FinishReason)
    })
  ),
  usage: describedField(
    Schema.NullOr(CompletionUsage),
    "With `stream_options.include_usage` or `usage.include`: null on every chunk but the last, whose `choices` is empty."
  )
}).annotations({ identifier: "ChatCompletionChunk" })

export const ChatStreamEvent = Schema.Union(ChatCompletionChunk, Envelope).annotations({
  identifier: "ChatStreamEvent",
  description:
    "The JSON of one server-sent event. A complete stream ends with `data: [DONE]`. A broken stream ends with an error."
})

const description = `The response is JSON, or server-sent events if \`stream\` is true:

\`\`\`
data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},…}],…}

data: {"choices":[{"index":0,"delta":{"content":"Hello"},…}],…}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],…}

data: [DONE]
\`\`\`

A complete stream ends with \`data: [DONE]\`. A broken stream ends with an event that has an \`error\`, and is free.`

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
  .annotate(OpenApi.Description, "Chat in OpenAI's chat-completions format, with or without a stream.")
  .middleware(Authenticated)
