import { Schema } from "effect"
import { Filled, optional, upTo } from "../../domain/Constraints.ts"
import { imagePart } from "../chat/PartSchema.ts"
import { longestName } from "../chat/Schema.ts"
import { otherThan, textOr } from "../schema/SharedFields.ts"
import { Tools } from "./ToolSchema.ts"

const TextPart = Schema.Struct({
  type: Schema.Literal("input_text", "output_text", "text"),
  text: Schema.String
}).annotations({ identifier: "ResponsesTextPart" })
const ImagePart = imagePart({}).annotations({ identifier: "ResponsesImagePart" })
const RefusalPart = Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String })
const message = { type: optional(Schema.Literal("message")) }

const SystemMessage = Schema.Struct({
  ...message,
  role: Schema.Literal("system", "developer"),
  content: textOr(TextPart)
}).annotations({ identifier: "ResponsesSystemMessage" })
const UserMessage = Schema.Struct({
  ...message,
  role: Schema.Literal("user"),
  content: textOr(Schema.Union(TextPart, ImagePart))
}).annotations({ identifier: "ResponsesUserMessage" })
const AssistantMessage = Schema.Struct({
  ...message,
  role: Schema.Literal("assistant"),
  content: Schema.Union(Schema.String, Schema.Array(Schema.Union(TextPart, RefusalPart)))
}).annotations({ identifier: "ResponsesAssistantMessage" })

const call = {
  call_id: Filled.annotations({ description: "As the answer had it." }),
  name: Filled.pipe(upTo(longestName)),
  namespace: optional(Filled, "Of the tool, where it has one.")
}
const FunctionCall = Schema.Struct({
  type: Schema.Literal("function_call"),
  ...call,
  arguments: Schema.String.annotations({ description: "A JSON text, as the model wrote it." })
}).annotations({ identifier: "ResponsesFunctionCall" })
const CustomToolCall = Schema.Struct({
  type: Schema.Literal("custom_tool_call"),
  ...call,
  input: Schema.String
}).annotations({ identifier: "ResponsesCustomToolCall" })
const CallOutput = Schema.Struct({
  type: Schema.Literal("function_call_output", "custom_tool_call_output"),
  call_id: Filled.annotations({ description: "Of an earlier call in `input`." }),
  output: Schema.Union(Schema.String, Schema.Array(Schema.Union(TextPart, ImagePart)))
}).annotations({ identifier: "ResponsesCallOutput" })

const texts = optional(Schema.Array(Schema.Struct({ text: Schema.String })))
const ReasoningItem = Schema.Struct({
  type: Schema.Literal("reasoning"),
  summary: texts,
  content: texts,
  encrypted_content: optional(Schema.String)
}).annotations({ identifier: "ResponsesReasoning", description: "As the answer had it." })

const AddedTools = Schema.Struct({
  type: Schema.Literal("additional_tools", "tool_search_output"),
  tools: Tools
}).annotations({ identifier: "ResponsesAddedTools", description: "Tools beside those of the body." })

const OtherItem = Schema.Struct({
  type: otherThan(
    "message",
    "function_call",
    "custom_tool_call",
    "function_call_output",
    "custom_tool_call_output",
    "reasoning",
    "additional_tools",
    "tool_search_output",
    "item_reference"
  )
}).annotations({
  identifier: "ResponsesOtherItem",
  description:
    "Any other item: passed on to a route that speaks this API. Elsewhere the items of a host's own tools are left out; any other is a 400."
})

const StoredReasoning = Schema.Struct({
  type: Schema.Literal("item_reference"),
  id: Schema.String.pipe(Schema.filter((id) => id.startsWith("rs_"), { jsonSchema: { pattern: "^rs_" } }))
}).annotations({
  identifier: "ResponsesItemReference",
  description: "Nothing is stored: a reference to reasoning is left out, and any other is refused."
})

export const Input = Schema.Union(
  Schema.String,
  Schema.NonEmptyArray(
    Schema.Union(
      SystemMessage,
      UserMessage,
      AssistantMessage,
      FunctionCall,
      CustomToolCall,
      CallOutput,
      ReasoningItem,
      AddedTools,
      OtherItem,
      StoredReasoning
    )
  )
).annotations({ description: "A user's text, or the whole conversation so far as items, oldest first." })
