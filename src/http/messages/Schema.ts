import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Anything, atLeast, Filled, Integer, matching, optional } from "../../domain/Constraints.ts"
import { CountTokensErrors, GenerationErrors } from "../errors/Schemas.ts"
import { problem } from "../schema/Decoding.ts"
import { Authenticated, GatewayTag } from "../schema/Headers.ts"
import {
  AnyObject,
  documentEvents,
  endUser,
  Flag,
  JsonSchema,
  modelOf,
  numberFrom,
  otherThan,
  StopTexts,
  samplingOnly,
  stopsProblem,
  TokenCap,
  textOr
} from "../schema/SharedFields.ts"
import { Message, TokenCount } from "./AnswerSchema.ts"
import { AssistantTurn, mark, SystemTurn, TextBlock, UserTurn } from "./BlockSchema.ts"

const CustomTool = Schema.Struct({
  type: optional(Schema.Literal("custom")),
  name: matching(/^[a-zA-Z0-9_-]{1,128}$/),
  description: optional(Schema.String),
  input_schema: JsonSchema,
  strict: optional(Schema.Boolean),
  ...mark
}).annotations({ identifier: "MessagesTool" })
const OtherTool = Schema.Struct({ type: otherThan("custom") }).annotations({
  identifier: "MessagesOtherTool",
  description:
    "`web_search_…` needs a model with web search. Tools that the client runs (`bash_…`, `text_editor_…`, `memory_…`, `computer_…`, `browser_…`) need a route that speaks this API; any other is passed on to such a route and left out elsewhere."
})

const ToolChoice = Schema.Struct({
  type: Schema.Literal("auto", "any", "none", "tool"),
  name: optional(Filled, "With the type `tool`: one of `tools`."),
  disable_parallel_tool_use: optional(Schema.Boolean)
}).annotations({ identifier: "MessagesToolChoice" })

const Budget = Integer.pipe(atLeast(0)).annotations(problem("must be an integer of at least 0"))
const Stops = StopTexts.annotations(stopsProblem("must be an array of non-empty strings"))
const object = problem("must be an object")

const prompt = {
  model: modelOf("a chat model"),
  messages: Schema.NonEmptyArray(Schema.Union(UserTurn, AssistantTurn, SystemTurn)).annotations({
    description: "The conversation so far, oldest first."
  }),
  system: optional(textOr(TextBlock), "The system prompt."),
  tools: optional(Schema.Array(Schema.Union(CustomTool, OtherTool)), "What the model may call."),
  tool_choice: optional(ToolChoice, "Whether the model may or must call a tool, or which one."),
  thinking: optional(
    Schema.Struct({ type: optional(Schema.String), budget_tokens: optional(Budget) }).annotations(object),
    "`enabled` with `budget_tokens`, `adaptive` or `disabled`. A model that cannot reason so does what is nearest."
  ),
  output_config: optional(
    Schema.Struct({ effort: optional(Schema.String), format: optional(Anything) }).annotations(object),
    "`effort` from `low` to `max`; `format` is `{type: json_schema, schema}`."
  ),
  output_format: optional(Anything, "The older place of `output_config.format`."),
  cache_control: optional(Anything, "Caches the prompt up to its last block.")
}

export const MessagesRequest = Schema.Struct({
  ...prompt,
  max_tokens: optional(TokenCap, "Default: the model's own cap, to which a higher one is lowered."),
  stream: optional(Flag, "Default false; true answers with server-sent events."),
  stop_sequences: optional(Stops, "Generation stops before any of these texts."),
  temperature: optional(numberFrom(0, 1), `Default 1. ${samplingOnly}`),
  top_p: optional(numberFrom(0, 1), samplingOnly),
  top_k: optional(Schema.Number.annotations(problem("must be a number")), "For routes that speak this API."),
  metadata: optional(
    AnyObject.annotations(object),
    "For routes that speak this API, but for `user_id`, which is kept as a `user` is."
  ),
  ...endUser
}).annotations({ identifier: "MessagesRequest" })

const CountTokensRequest = Schema.Struct(prompt).annotations({ identifier: "CountTokensRequest" })

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
        "The Messages API of Anthropic's clients, Claude Code among them, for every chat model. Answers with JSON, or with server-sent events from `message_start` to `message_stop` when `stream` is true; a stream that breaks ends with an `error` event, and costs nothing.",
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
      description: "By the provider where a route of the model can, else by the gateway's own count. Costs nothing."
    })
  )

export const Messages = HttpApiGroup.make("messages")
  .add(createMessage)
  .add(countTokens)
  .annotate(OpenApi.Description, "Text in the convention of Anthropic's clients.")
  .middleware(Authenticated)
