import { Schema } from "effect"
import { described, Filled, Integer } from "../../domain/Constraints.ts"
import { Envelope } from "../errors/ErrorMessages.ts"
import { Tokens, UnixSeconds } from "../schema/SharedFields.ts"

const FinishReason = Schema.Literal("stop", "length", "tool_calls", "content_filter")

export const ToolCall = Schema.Struct({
  id: Filled,
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: Filled,
    arguments: Schema.String.annotations({ description: "A JSON text, as the model wrote it." })
  })
}).annotations({ identifier: "ToolCall" })

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
        tool_calls: described(Schema.Array(ToolCall), "Functions that the model calls.")
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
  type: Schema.optional(Schema.Literal("function")),
  function: Schema.Struct({ name: Schema.optional(Schema.String), arguments: Schema.String })
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
        tool_calls: Schema.optional(Schema.Array(ToolCallDelta))
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
