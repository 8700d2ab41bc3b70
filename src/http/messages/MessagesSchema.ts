import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Anything, Integer } from "../../domain/Constraints.ts"
import { CountTokensErrors, GenerationErrors, Hint } from "../errors/ErrorMessages.ts"
import { Authenticated, GatewayTag } from "../schema/Headers.ts"
import { AnyObject, documentEvents, otherThan, Tokens } from "../schema/SharedFields.ts"
import { CountTokensRequest, MessagesRequest } from "./MessagesBody.ts"

const messagesErrorTypes = [
  "invalid_request_error",
  "authentication_error",
  "billing_error",
  "permission_error",
  "not_found_error",
  "request_too_large",
  "rate_limit_error",
  "api_error",
  "timeout_error",
  "overloaded_error"
] as const

export const MessagesError = Schema.Struct({
  type: Schema.Literal("error"),
  error: Schema.Struct({
    type: Schema.Literal(...messagesErrorTypes),
    message: Schema.String.annotations({ description: "A human-readable explanation." }),
    hint: Hint
  }),
  request_id: Schema.optional(Schema.String)
}).annotations({ identifier: "MessagesError", description: "Every error of the Messages API." })
export type MessagesError = typeof MessagesError.Type

export const MessagesUsage = Schema.Struct({
  input_tokens: Tokens.annotations({ description: "Tokens that were neither read from a cache nor written to it." }),
  cache_creation_input_tokens: Tokens,
  cache_read_input_tokens: Tokens,
  cache_creation: Schema.Struct({ ephemeral_5m_input_tokens: Tokens, ephemeral_1h_input_tokens: Tokens }),
  output_tokens: Tokens,
  output_tokens_details: Schema.Struct({ thinking_tokens: Tokens }),
  server_tool_use: Schema.NullOr(Schema.Struct({ web_search_requests: Tokens }))
}).annotations({ identifier: "MessagesUsage", description: "The billed tokens." })
export type MessagesUsage = typeof MessagesUsage.Type

const Citation = Schema.Struct({
  type: Schema.Literal("web_search_result_location"),
  url: Schema.String,
  title: Schema.NullOr(Schema.String),
  cited_text: Schema.String.annotations({ description: "Empty if the provider quotes nothing." }),
  encrypted_index: Schema.String.annotations({ description: "Send it back unchanged." })
}).annotations({ identifier: "MessagesCitation", description: "A source that a search found." })
const OtherCitation = Schema.Struct({ type: otherThan("web_search_result_location") })

const Text = Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String,
  citations: Schema.optional(Schema.NullOr(Schema.Array(Schema.Union(Citation, OtherCitation))))
})
const Thinking = Schema.Struct({
  type: Schema.Literal("thinking"),
  thinking: Schema.String,
  signature: Schema.String.annotations({ description: "Send the block back unchanged." })
})
const ToolUse = Schema.Struct({
  type: Schema.Literal("tool_use"),
  id: Schema.String,
  name: Schema.String,
  input: AnyObject
})
const Other = Schema.Struct({ type: Schema.String })

const Block = Schema.Union(Text, Thinking, ToolUse, Other).annotations({
  identifier: "MessagesBlock",
  description: "Providers with this API also send other types."
})

const StopReason = Schema.String.annotations({
  description: "`end_turn`, `max_tokens`, `stop_sequence`, `tool_use`, `refusal`, or a value of the provider."
})

export const Message = Schema.Struct({
  id: Schema.String.annotations({ description: "The gateway's own id of the response." }),
  type: Schema.Literal("message"),
  role: Schema.Literal("assistant"),
  model: Schema.String.annotations({ description: "The catalog id of the request." }),
  content: Schema.Array(Block),
  stop_reason: Schema.NullOr(StopReason),
  stop_sequence: Schema.NullOr(Schema.String),
  stop_details: Schema.NullOr(Anything),
  container: Schema.NullOr(Anything),
  usage: MessagesUsage
}).annotations({ identifier: "Message", description: "The complete response." })
export type Message = typeof Message.Type

export const MessagesStreamEvent = Schema.Union(
  Schema.Struct({
    type: Schema.Literal(
      "message_start",
      "content_block_start",
      "content_block_delta",
      "content_block_stop",
      "message_delta",
      "message_stop",
      "ping"
    ),
    message: Schema.optional(Anything),
    index: Schema.optional(Integer),
    content_block: Schema.optional(Block),
    delta: Schema.optional(Anything),
    usage: Schema.optional(Anything)
  }),
  MessagesError
).annotations({
  identifier: "MessagesStreamEvent",
  description: "The JSON of one server-sent event. A complete stream ends with `message_stop`."
})

const TokenCount = Schema.Struct({ input_tokens: Tokens }).annotations({ identifier: "TokenCount" })

export const createMessage = HttpApiEndpoint.post("create", "/messages")
  .setHeaders(GatewayTag)
  .setPayload(MessagesRequest)
  .addSuccess(Message)
  .addError(GenerationErrors)
  .annotateContext(
    OpenApi.annotations({
      identifier: "createMessage",
      summary: "Create a message",
      description:
        "The Messages API for Anthropic's clients and Claude Code. It works with every chat model. The response is JSON, or server-sent events from `message_start` to `message_stop` if `stream` is true. A broken stream ends with an `error` event and is free.",
      ...documentEvents("MessagesStreamEvent")
    })
  )

export const countTokens = HttpApiEndpoint.post("countTokens", "/messages/count_tokens")
  .setHeaders(GatewayTag)
  .setPayload(CountTokensRequest)
  .addSuccess(TokenCount)
  .addError(CountTokensErrors)
  .annotateContext(
    OpenApi.annotations({
      identifier: "countTokens",
      summary: "Count a prompt's tokens",
      description: "The provider counts the tokens, if it can. Otherwise, the gateway estimates them. Counting is free."
    })
  )

export const Messages = HttpApiGroup.make("messages")
  .add(createMessage)
  .add(countTokens)
  .annotate(OpenApi.Description, "Chat in the format of Anthropic's clients.")
  .middleware(Authenticated)
