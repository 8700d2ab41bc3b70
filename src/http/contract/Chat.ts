import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { reasoningEfforts } from "../../domain/Model.ts"
import { Authenticated } from "./Authenticated.ts"
import { ChatCompletion, ToolCall } from "./ChatCompletion.ts"
import { described } from "./Described.ts"
import {
  BadGateway,
  BadRequest,
  Forbidden,
  Internal,
  NoSuchModel,
  OutOfTime,
  PaymentRequired,
  TooLarge,
  TooManyRequests,
  Unavailable
} from "./Errors.ts"
import { Integer } from "./Integer.ts"

const Name = Schema.String.pipe(Schema.pattern(/^[a-zA-Z0-9_-]{1,64}$/))
const JsonSchema = Schema.Record({ key: Schema.String, value: Schema.Unknown }).annotations({
  jsonSchema: { type: "object", description: "A JSON Schema, at most 100 levels deep." }
})

const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }).annotations({
  identifier: "TextPart"
})
const RefusalPart = Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String })
const ImagePart = Schema.Struct({
  type: Schema.Literal("image_url"),
  image_url: Schema.Struct({
    url: Schema.String.annotations({
      description: "An http(s) URL, or `data:image/…;base64,…`; PNG, JPEG, WebP or GIF.",
      arbitrary: () => (fc) => fc.webUrl({ validSchemes: ["http", "https"] })
    }),
    detail: Schema.optional(Schema.Literal("auto", "low", "high"))
  })
}).annotations({ identifier: "ImagePart" })

const textOr = <A, I>(part: Schema.Schema<A, I>) => Schema.Union(Schema.String, Schema.NonEmptyArray(part))

const SystemMessage = Schema.Struct({
  role: Schema.Literal("system", "developer"),
  content: textOr(TextPart),
  name: Schema.optional(Schema.String)
})
const UserMessage = Schema.Struct({
  role: Schema.Literal("user"),
  content: textOr(Schema.Union(TextPart, ImagePart)),
  name: Schema.optional(Schema.String)
})
const AssistantMessage = Schema.Struct({
  role: Schema.Literal("assistant"),
  content: Schema.optional(Schema.NullOr(textOr(Schema.Union(TextPart, RefusalPart)))).annotations({
    description: "May be left out, also without `tool_calls`."
  }),
  name: Schema.optional(Schema.String),
  refusal: Schema.optional(Schema.NullOr(Schema.String)),
  reasoning_content: Schema.optional(Schema.NullOr(Schema.String)),
  tool_calls: Schema.optional(Schema.Array(ToolCall))
})
const ToolMessage = Schema.Struct({
  role: Schema.Literal("tool"),
  content: textOr(TextPart),
  tool_call_id: Schema.String.pipe(Schema.minLength(1)).annotations({
    description: "A tool call of an earlier assistant message."
  })
})

const Tool = Schema.Struct({
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: Name,
    description: Schema.optional(Schema.String),
    parameters: Schema.optional(JsonSchema),
    strict: Schema.optional(Schema.NullOr(Schema.Boolean))
  })
}).annotations({ identifier: "Tool" })

const ToolChoice = Schema.Union(
  Schema.Literal("auto", "none", "required"),
  Schema.Struct({ type: Schema.Literal("auto", "none", "required") }),
  Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct({ name: Name }) })
)

const ResponseFormat = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text") }),
  Schema.Struct({
    type: Schema.Literal("json_object"),
    schema: Schema.optional(JsonSchema).annotations({ description: "As a `json_schema` of any name." })
  }),
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    json_schema: Schema.Struct({
      name: Name,
      description: Schema.optional(Schema.String),
      schema: Schema.optional(JsonSchema),
      strict: Schema.optional(Schema.NullOr(Schema.Boolean))
    })
  })
)

const TokenCap = Integer.pipe(Schema.positive())
const Stop = Schema.String.pipe(Schema.minLength(1))
const Penalty = Schema.Number.pipe(Schema.between(-2, 2))

/** What a chat request may hold. Fields that are not listed are accepted and ignored; null means left out. */
export const ChatCompletionRequest = Schema.Struct({
  model: Schema.String.pipe(Schema.minLength(1)).annotations({ description: "The catalog id of a chat model." }),
  messages: Schema.NonEmptyArray(Schema.Union(SystemMessage, UserMessage, AssistantMessage, ToolMessage)),
  stream: described(Schema.Boolean, "Default false; true answers with server-sent events."),
  stream_options: described(
    Schema.Struct({ include_usage: Schema.optional(Schema.Boolean) }),
    "`include_usage` adds a last chunk with the usage."
  ),
  max_tokens: described(
    TokenCap,
    "Default 4096. Above the model's own cap it is lowered to that cap; some models refuse it instead."
  ),
  max_completion_tokens: described(TokenCap, "Alias of `max_tokens`; wins when both are given."),
  temperature: described(Schema.Number.pipe(Schema.between(0, 2)), "Dropped for models that take no sampling."),
  top_p: described(Schema.Number.pipe(Schema.between(0, 1)), "Dropped for models that take no sampling."),
  stop: described(Schema.Union(Stop, Schema.Array(Stop).pipe(Schema.maxItems(16))), "Generation stops at these."),
  tools: described(Schema.Array(Tool), "Functions that the model may call; models with the tools capability."),
  tool_choice: described(ToolChoice, "A function, where named, is one of `tools`."),
  parallel_tool_calls: described(Schema.Boolean, "Whether one answer may hold several tool calls."),
  reasoning_effort: described(
    Schema.Literal("none", "minimal", ...reasoningEfforts),
    "Reasoning models only; which values a model takes is in its `params`. `none` is left out, `minimal` is `low`."
  ),
  response_format: described(ResponseFormat, "Not every model takes one."),
  web_search: described(Schema.Boolean, "Default false; server-side web search, where the model has it."),
  seed: described(Integer, "Dropped for models that take no sampling."),
  frequency_penalty: described(Penalty, "Dropped for models that take no sampling."),
  presence_penalty: described(Penalty, "Dropped for models that take no sampling."),
  n: described(Schema.Literal(1), "Only 1.")
}).annotations({ identifier: "ChatCompletionRequest" })

const complete = HttpApiEndpoint.post("complete", "/chat/completions")
  .setPayload(ChatCompletionRequest)
  .addSuccess(ChatCompletion)
  .addError(BadRequest)
  .addError(PaymentRequired)
  .addError(Forbidden)
  .addError(NoSuchModel)
  .addError(TooLarge)
  .addError(TooManyRequests)
  .addError(Internal)
  .addError(BadGateway)
  .addError(Unavailable)
  .addError(OutOfTime)
  .annotateContext(
    OpenApi.annotations({
      identifier: "createChatCompletion",
      summary: "Create a chat completion",
      description: "Answers with JSON, or with server-sent events when `stream` is true.",
      transform: (operation) => {
        operation.responses[200].content["text/event-stream"] = {
          schema: { $ref: "#/components/schemas/ChatStreamEvent" }
        }
        return operation
      }
    })
  )

export const Chat = HttpApiGroup.make("chat").add(complete).middleware(Authenticated)
