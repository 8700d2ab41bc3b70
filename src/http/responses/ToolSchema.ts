import { Schema } from "effect"
import { Filled, optional } from "../../domain/Constraints.ts"
import { JsonSchema, otherThan } from "../schema/SharedFields.ts"

const FunctionTool = Schema.Struct({
  type: Schema.Literal("function"),
  name: Filled,
  description: optional(Schema.String),
  parameters: optional(JsonSchema),
  strict: optional(Schema.Boolean)
}).annotations({ identifier: "ResponsesFunctionTool" })

const CustomTool = Schema.Struct({
  type: Schema.Literal("custom"),
  name: Filled,
  description: optional(Schema.String),
  format: optional(
    Schema.Union(
      Schema.Struct({ type: Schema.Literal("text") }),
      Schema.Struct({ type: Schema.Literal("grammar"), syntax: Schema.String, definition: Schema.String })
    )
  )
}).annotations({ identifier: "ResponsesCustomTool", description: "A tool whose input is free text." })

const NamespaceTool = Schema.Struct({
  type: Schema.Literal("namespace"),
  name: Filled,
  description: optional(Schema.String),
  tools: Schema.Array(Schema.Union(FunctionTool, CustomTool))
}).annotations({ identifier: "ResponsesNamespaceTool" })

const HostedTool = Schema.Struct({ type: otherThan("function", "custom", "namespace") }).annotations({
  identifier: "ResponsesHostedTool",
  description: "Such as `web_search`, `tool_search` or `local_shell`."
})

export const Tools = Schema.Array(Schema.Union(FunctionTool, CustomTool, NamespaceTool, HostedTool))

export const ToolChoice = Schema.Union(
  Schema.Literal("auto", "none", "required"),
  Schema.Struct({ type: Schema.Literal("function", "custom"), name: Filled, namespace: optional(Filled) }),
  Schema.Struct({
    type: Schema.Literal("allowed_tools"),
    mode: Schema.Literal("auto", "required"),
    tools: Schema.Array(Schema.Struct({ type: Filled, name: optional(Schema.String) }))
  }),
  Schema.Struct({ type: otherThan("function", "custom", "allowed_tools") }).annotations({
    description: "A hosted tool: left to the model elsewhere than on routes that speak this API."
  })
)
