import { Schema } from "effect"
import type { ResponseFormat, Tool } from "../../domain/Chat.ts"
import { Filled, optional } from "../../domain/Constraints.ts"
import { isAbsent, isFilled, isObject, isString, type JsonObject } from "../body/Guards.ts"
import {
  isChoiceWord,
  type ReadChoice,
  readAllowed,
  readCustom,
  readFunction,
  readJsonSchema
} from "../chat/ChatTools.ts"
import { declaredTools, isCallable, ToolNames } from "../chat/ClientTools.ts"
import { invalidAt, invalidIn, readObject } from "../chat/FieldReaders.ts"
import { otherThan } from "../schema/SharedFields.ts"

export const ResponsesToolChoice = Schema.Union(
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

export interface ReadTools {
  readonly tools: ReadonlyArray<Tool>
  readonly names: ToolNames
  /** Tools that only a host can have. */
  readonly hosted: ReadonlyArray<JsonObject>
  /** What no translation holds of the other tools. */
  readonly unread: ReadonlyArray<JsonObject>
  readonly webSearch: boolean
}

const translated: ReadonlySet<string> = new Set(["type", "name", "description", "parameters", "strict", "format"])

const isSearch = ({ type }: JsonObject): boolean => isString(type) && type.startsWith("web_search")

export const readTools = (body: JsonObject): ReadTools => {
  const names = new ToolNames()
  const tools: Array<Tool> = []
  const hosted: Array<JsonObject> = []
  const unread: Array<JsonObject> = []
  for (const declared of declaredTools(body)) {
    const { definition, path } = declared
    const { type } = definition
    if (!isFilled(type)) return invalidIn(path, "type", "is required and must be a string")
    if (type === "namespace") {
      unread.push(definition)
      continue
    }
    if (!isCallable(definition)) {
      hosted.push(definition)
      continue
    }
    if (!isFilled(definition.name)) return invalidIn(path, "name", "is required and must be a string")
    const name = names.declare(declared)
    if (name === undefined) {
      unread.push(definition)
      continue
    }
    if (Object.keys(definition).some((field) => !translated.has(field))) unread.push(definition)
    tools.push(type === "custom" ? readCustom(definition, name, path) : readFunction({ ...definition, name }, path))
  }
  return { tools, names, hosted, unread, webSearch: hosted.some(isSearch) }
}

const isHosted = (tool: unknown): boolean => isObject(tool) && !isCallable(tool)

/** A choice of hosted tools is left to the model. */
export const readToolChoice = (given: unknown, { hosted, names, tools }: ReadTools): ReadChoice => {
  const invalid = (problem: string) => invalidAt("tool_choice", problem)
  const isNone = tools.length === 0
  if (isAbsent(given)) return { toolChoice: undefined, tools }
  if (isChoiceWord(given)) {
    if (given === "required" && isNone && hosted.length === 0) return invalid("needs `tools`")
    return { toolChoice: isNone ? undefined : given, tools }
  }
  if (!isObject(given) || !isFilled(given.type)) {
    return invalid("must be auto, none, required or an object with a `type`")
  }
  const functionOf = (tool: unknown): string | undefined => {
    if (!isObject(tool) || !isFilled(tool.name)) return undefined
    return names.functionOf(tool.name, isFilled(tool.namespace) ? tool.namespace : undefined)
  }
  if (given.type === "allowed_tools") return readAllowed(given, tools, functionOf, isHosted)
  if (!isCallable(given)) return { toolChoice: undefined, tools }
  const name = functionOf(given)
  if (!tools.some((tool) => tool.function.name === name) || name === undefined) {
    return invalid("must name one of `tools`")
  }
  return { toolChoice: { type: "function", function: { name } }, tools }
}

/** `text` is the default, so it counts as absent. */
export const readFormat = (given: unknown): ResponseFormat | undefined => {
  if (isAbsent(given)) return undefined
  const format = readObject(given, "text.format")
  switch (format.type) {
    case "text":
      return undefined
    case "json_object":
      return { type: "json_object" }
    case "json_schema":
      return readJsonSchema(format, "text.format")
    default:
      return invalidIn("text.format", "type", "must be one of text, json_object, json_schema")
  }
}
