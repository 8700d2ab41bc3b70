import { Schema } from "effect"
import { matching, optional } from "../../domain/Constraints.ts"
import { JsonSchema } from "../schema/SharedFields.ts"
import { marked } from "./PartSchema.ts"

const Name = matching(/^[a-zA-Z0-9_.:-]{1,128}$/)

const Function = Schema.Struct({
  name: Name,
  description: optional(Schema.String),
  parameters: optional(JsonSchema),
  strict: optional(Schema.Boolean)
})

const grammar = { syntax: Schema.String, definition: Schema.String }
const Custom = Schema.Struct({
  name: Name,
  description: optional(Schema.String),
  format: optional(
    Schema.Union(
      Schema.Struct({ type: Schema.Literal("text") }),
      Schema.Struct({ type: Schema.Literal("grammar"), grammar: Schema.Struct(grammar) }),
      Schema.Struct({ type: Schema.Literal("grammar"), ...grammar })
    )
  )
})

export const Tool = Schema.Union(
  Schema.Struct({ type: Schema.Literal("function"), function: Function, ...marked }).annotations({
    identifier: "Tool"
  }),
  Schema.Struct({ type: Schema.Literal("custom"), custom: Custom, ...marked }).annotations({
    identifier: "CustomTool",
    description: "A tool whose input is free text."
  }),
  Schema.Struct({
    type: Schema.Literal("function"),
    function: optional(Schema.Null),
    ...Function.fields,
    ...marked
  }).annotations({ identifier: "FlatTool", description: "A function in the form that Cursor sends." }),
  Schema.Struct({
    type: Schema.Literal("custom"),
    custom: optional(Schema.Null),
    input_schema: optional(Schema.Null),
    ...Custom.fields,
    ...marked
  }).annotations({ identifier: "FlatCustomTool", description: "A custom tool in the form that Cursor sends." }),
  Schema.Struct({
    type: optional(Schema.Literal("custom")),
    name: Name,
    description: optional(Schema.String),
    input_schema: JsonSchema,
    strict: optional(Schema.Boolean),
    ...marked
  }).annotations({ identifier: "MessagesStyleTool", description: "A function as the Messages API has it." })
)

const named = Schema.Struct({ name: Name })
const AllowedTool = Schema.Union(
  Schema.Struct({ type: Schema.Literal("function"), function: named }),
  Schema.Struct({ type: Schema.Literal("custom"), custom: named }),
  Schema.Struct({ type: Schema.Literal("function", "custom"), name: Name })
)
const allowed = { mode: Schema.Literal("auto", "required"), tools: Schema.NonEmptyArray(AllowedTool) }

export const ToolChoice = Schema.Union(
  Schema.Literal("auto", "none", "required"),
  Schema.Struct({ type: Schema.Literal("auto", "none", "required") }),
  AllowedTool,
  Schema.Struct({ type: Schema.Literal("allowed_tools"), allowed_tools: Schema.Struct(allowed) }),
  Schema.Struct({ type: Schema.Literal("allowed_tools"), ...allowed })
)
