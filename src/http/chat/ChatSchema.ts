import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { described, Filled, Integer } from "../../domain/Constraints.ts"
import { Envelope } from "../errors/ErrorMessages.ts"
import { GenerationErrors } from "../errors/Schemas.ts"
import { Authenticated, GatewayTag } from "../schema/Headers.ts"
import { Arguments, documentEvents, Tokens, UnixSeconds } from "../schema/SharedFields.ts"
import { ChatCompletionRequest } from "./ChatBody.ts"

const FinishReason = Schema.Literal("stop", "length", "tool_calls", "content_filter")

const FunctionCall = Schema.Struct({
  id: Filled,
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: Filled,
    arguments: Arguments
  })
})
const CustomCall = Schema.Struct({
  id: Filled,
  type: Schema.Literal("custom"),
  custom: Schema.Struct({ name: Filled, input: Schema.String })
}).annotations({ description: "A call of a tool with the type `custom`." })
const ToolCall = Schema.Union(FunctionCall, CustomCall).annotations({ identifier: "ToolCall" })

/** The fields of a source in all dialects that call it `url_citation`. */
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
  cache_write_tokens: Tokens.annotations({ description: "Written to it." }),
  cache_write_1h_tokens: described(Tokens, "Of those, the ones kept for an hour.")
})
export const toolUse = {
  server_tool_use: described(Schema.Struct({ web_search_requests: Tokens }), "Where web searches are charged.")
}

export const CompletionUsage = Schema.Struct({
  prompt_tokens: Tokens,
  completion_tokens: Tokens,
  total_tokens: Tokens,
  prompt_tokens_details: CacheUse,
  completion_tokens_details: Schema.Struct({ reasoning_tokens: Tokens }),
  ...toolUse,
  cost: described(Schema.Number, "What the request was charged, in USD; with `usage.include`.")
}).annotations({ identifier: "Usage", description: "What is billed." })
export type CompletionUsage = typeof CompletionUsage.Type

export const ChatCompletion = Schema.Struct({
  id: Schema.String.annotations({ description: "The gateway's own id of the answer." }),
  object: Schema.Literal("chat.completion"),
  created: UnixSeconds,
  model: Schema.String.annotations({ description: "The catalog id that was asked for." }),
  choices: Schema.Array(
    Schema.Struct({
      index: Integer,
      message: Schema.Struct({
        role: Schema.Literal("assistant"),
        content: Schema.NullOr(Schema.String).annotations({ description: "Null when there are only tool calls." }),
        refusal: Schema.NullOr(Schema.String),
        reasoning_content: described(Schema.String, "The reasoning, where the model shows it."),
        tool_calls: described(Schema.Array(ToolCall), "Tools that the model calls."),
        annotations: described(annotations, "The sources of the text, if a search found any.")
      }),
      logprobs: Schema.Null,
      finish_reason: Schema.NullOr(FinishReason)
    })
  ).annotations({ description: "One choice." }),
  usage: CompletionUsage
}).annotations({ identifier: "ChatCompletion", description: "The whole answer." })
export type ChatCompletion = typeof ChatCompletion.Type

const ToolCallDelta = Schema.Struct({
  index: Integer.annotations({ description: "Which tool call of the answer, from 0." }),
  id: Schema.optional(Schema.String),
  type: Schema.optional(Schema.Literal("function", "custom")),
  function: Schema.optional(Schema.Struct({ name: Schema.optional(Schema.String), arguments: Schema.String })),
  custom: described(
    Schema.Struct({ name: Schema.optional(Schema.String), input: Schema.String }),
    "Of a custom tool, whose input comes in one piece."
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
        annotations: described(annotations, "All sources at once, before the last delta.")
      }),
      logprobs: Schema.Null,
      finish_reason: Schema.NullOr(FinishReason)
    })
  ),
  usage: described(
    Schema.NullOr(CompletionUsage),
    "With `stream_options.include_usage` or `usage.include`: null on every chunk but the last, whose `choices` is empty."
  )
}).annotations({ identifier: "ChatCompletionChunk" })

export const ChatStreamEvent = Schema.Union(ChatCompletionChunk, Envelope).annotations({
  identifier: "ChatStreamEvent",
  description:
    "The JSON of one server-sent event. A whole stream ends with `data: [DONE]`; one that broke ends with an error."
})

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
