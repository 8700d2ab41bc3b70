import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Integer, NonEmptyString } from "../../domain/Constraints.ts"
import { CacheUse, citation, toolUse } from "../chat/ChatSchema.ts"
import { GenerationErrors, Hint } from "../errors/ErrorMessages.ts"
import { Authenticated, GatewayTag } from "../schema/Headers.ts"
import { AnyObject, documentEvents, otherThan, Tokens, UnixSeconds } from "../schema/SharedFields.ts"
import { ResponsesRequest } from "./ResponsesBody.ts"

const Status = Schema.Literal("in_progress", "completed", "incomplete")

export const ResponsesUsage = Schema.Struct({
  input_tokens: Tokens,
  input_tokens_details: CacheUse,
  output_tokens: Tokens,
  output_tokens_details: Schema.Struct({ reasoning_tokens: Tokens }),
  total_tokens: Tokens,
  ...toolUse
}).annotations({ identifier: "ResponsesUsage", description: "The billed tokens." })
export type ResponsesUsage = typeof ResponsesUsage.Type

const UrlCitation = Schema.Struct({ type: Schema.Literal("url_citation"), ...citation }).annotations({
  identifier: "ResponsesUrlCitation",
  description: "A source that a search found."
})
const Annotation = Schema.Union(UrlCitation, Schema.Struct({ type: otherThan("url_citation") }))

const OutputText = Schema.Struct({
  type: Schema.Literal("output_text"),
  text: Schema.String,
  annotations: Schema.Array(Annotation)
})
const Message = Schema.Struct({
  type: Schema.Literal("message"),
  id: NonEmptyString,
  status: Status,
  role: Schema.Literal("assistant"),
  content: Schema.Array(OutputText)
}).annotations({ identifier: "ResponsesOutputMessage" })
const callFields = {
  id: NonEmptyString,
  status: Status,
  call_id: NonEmptyString,
  name: NonEmptyString,
  namespace: Schema.optional(NonEmptyString)
}
const FunctionCall = Schema.Struct({
  type: Schema.Literal("function_call"),
  ...callFields,
  arguments: Schema.String
}).annotations({ identifier: "ResponsesOutputFunctionCall" })
const CustomToolCall = Schema.Struct({
  type: Schema.Literal("custom_tool_call"),
  ...callFields,
  input: Schema.String
}).annotations({ identifier: "ResponsesOutputCustomToolCall" })
const Reasoning = Schema.Struct({
  type: Schema.Literal("reasoning"),
  id: NonEmptyString,
  summary: Schema.Array(Schema.Struct({ type: Schema.Literal("summary_text"), text: Schema.String })),
  encrypted_content: Schema.optional(Schema.NullOr(Schema.String))
}).annotations({ identifier: "ResponsesOutputReasoning" })

const Other = Schema.Struct({
  type: otherThan("message", "function_call", "custom_tool_call", "reasoning")
}).annotations({ identifier: "ResponsesOutputOther", description: "Any other item from a provider with this API." })

const Failed = Schema.Struct({ code: Schema.String, message: Schema.String, hint: Hint })

const ResponseObject = Schema.Struct({
  id: Schema.String.annotations({ description: "The gateway's own id of the response." }),
  object: Schema.Literal("response"),
  created_at: UnixSeconds,
  status: Schema.Literal("in_progress", "completed", "incomplete", "failed"),
  error: Schema.NullOr(Failed),
  incomplete_details: Schema.NullOr(
    Schema.Struct({ reason: Schema.Literal("max_output_tokens", "content_filter") })
  ).annotations({ description: "Why the response is incomplete." }),
  model: Schema.String.annotations({ description: "The catalog id of the request." }),
  output: Schema.Array(Schema.Union(Message, FunctionCall, CustomToolCall, Reasoning, Other)),
  usage: Schema.NullOr(ResponsesUsage),
  store: Schema.Literal(false),
  metadata: AnyObject
}).annotations({ identifier: "Response", description: "The complete response." })

const eventFields = { sequence_number: Tokens }
const itemEventFields = { ...eventFields, item_id: NonEmptyString, output_index: Integer }

export const ResponseStreamEvent = Schema.Union(
  Schema.Struct({
    type: Schema.Literal(
      "response.created",
      "response.in_progress",
      "response.completed",
      "response.incomplete",
      "response.failed"
    ),
    ...eventFields,
    response: ResponseObject
  }),
  Schema.Struct({
    type: Schema.Literal("response.output_item.added", "response.output_item.done"),
    ...eventFields,
    output_index: Integer,
    item: AnyObject
  }),
  Schema.Struct({
    type: Schema.Literal(
      "response.content_part.added",
      "response.content_part.done",
      "response.reasoning_summary_part.added",
      "response.reasoning_summary_part.done"
    ),
    ...itemEventFields,
    part: AnyObject
  }),
  Schema.Struct({
    type: Schema.Literal(
      "response.output_text.delta",
      "response.reasoning_summary_text.delta",
      "response.function_call_arguments.delta",
      "response.custom_tool_call_input.delta"
    ),
    ...itemEventFields,
    delta: Schema.String
  }),
  Schema.Struct({
    type: Schema.Literal("response.output_text.annotation.added"),
    ...itemEventFields,
    content_index: Integer,
    annotation_index: Integer,
    annotation: Annotation
  }),
  Schema.Struct({
    type: Schema.Literal("response.output_text.done", "response.reasoning_summary_text.done"),
    ...itemEventFields,
    text: Schema.String
  }),
  Schema.Struct({
    type: Schema.Literal("response.function_call_arguments.done"),
    ...itemEventFields,
    name: NonEmptyString,
    arguments: Schema.String
  }),
  Schema.Struct({
    type: Schema.Literal("response.custom_tool_call_input.done"),
    ...itemEventFields,
    input: Schema.String
  })
).annotations({
  identifier: "ResponseStreamEvent",
  description:
    "The JSON of one server-sent event. Providers with this API send further events. A complete stream ends with `response.completed` or `response.incomplete`. A broken stream ends with `response.failed`."
})

const description = `For clients and coding agents that use OpenAI's Responses API. The response is JSON, or server-sent events if \`stream\` is true:

\`\`\`
event: response.created
data: {"type":"response.created","sequence_number":0,"response":{…}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":4,"delta":"Hello",…}

event: response.completed
data: {"type":"response.completed","sequence_number":8,"response":{…}}
\`\`\`

A complete stream ends with \`response.completed\` or \`response.incomplete\`. A broken stream ends with \`response.failed\` and is free. The gateway stores nothing: \`GET\` and \`DELETE /responses/{id}\` return 404.`

export const createResponse = HttpApiEndpoint.post("create", "/responses")
  .setHeaders(GatewayTag)
  .setPayload(ResponsesRequest)
  .addSuccess(ResponseObject)
  .addError(GenerationErrors)
  .annotateContext(
    OpenApi.annotations({
      identifier: "createResponse",
      summary: "Create a response",
      description,
      ...documentEvents("ResponseStreamEvent")
    })
  )

export const Responses = HttpApiGroup.make("responses")
  .add(createResponse)
  .annotate(OpenApi.Description, "Chat in OpenAI's Responses format, with or without a stream.")
  .middleware(Authenticated)
