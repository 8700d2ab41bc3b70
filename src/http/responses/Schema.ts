import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Filled, optional, upTo } from "../../domain/Constraints.ts"
import { GenerationErrors } from "../errors/Schemas.ts"
import { problem } from "../schema/Decoding.ts"
import { Authenticated, GatewayTag } from "../schema/Headers.ts"
import {
  documentEvents,
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
import { Input } from "./InputSchema.ts"
import { ResponseObject } from "./ResponseSchema.ts"
import { ToolChoice, Tools } from "./ToolSchema.ts"

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
  input: Input,
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
    Tools,
    "`function` and `custom` tools, also in a `namespace`, work with every model that has tools. `web_search` searches where the model can. Others need a route that speaks this API, and are left out elsewhere."
  ),
  tool_choice: optional(ToolChoice, "Whether the model may or must call a tool, or which of `tools`."),
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

const description = `The Responses convention, for clients and coding agents that speak it. Answers with JSON, or with server-sent events when \`stream\` is true:

\`\`\`
event: response.created
data: {"type":"response.created","sequence_number":0,"response":{…}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":4,"delta":"Hello",…}

event: response.completed
data: {"type":"response.completed","sequence_number":8,"response":{…}}
\`\`\`

A stream is whole only with its \`response.completed\` or \`response.incomplete\`; one that breaks ends with \`response.failed\`, and costs nothing. Nothing is stored: \`GET\` and \`DELETE /responses/{id}\` are 404.`

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
  .annotate(OpenApi.Description, "Text in the Responses convention, whole or as a stream.")
  .middleware(Authenticated)
