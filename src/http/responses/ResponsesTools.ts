import { Schema } from "effect"
import type { ResponseFormat, Tool, ToolChoice } from "../../domain/Chat.ts"
import { Filled, optional } from "../../domain/Constraints.ts"
import { isAbsent, isArray, isFilled, isObject, isOneOf, isString, type JsonObject } from "../body/Guards.ts"
import { refuse, refuseAt } from "../body/Refusals.ts"
import { readCustom, readFunction, readJsonSchema } from "../chat/ChatTools.ts"
import { declaredTools, isCallable, ToolNames } from "../chat/ClientTools.ts"
import { isRefusal, type Result } from "../schema/Decoding.ts"
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

export const readTools = (body: JsonObject): Result<ReadTools> => {
  const names = new ToolNames()
  const tools: Array<Tool> = []
  const hosted: Array<JsonObject> = []
  const unread: Array<JsonObject> = []
  for (const declared of declaredTools(body)) {
    const { definition, path } = declared
    if (!isFilled(definition.type)) return refuseAt("tools", `${path}.type`, "is required and must be a string")
    if (definition.type === "namespace") {
      unread.push(definition)
      continue
    }
    if (!isCallable(definition)) {
      hosted.push(definition)
      continue
    }
    if (!isFilled(definition.name)) return refuseAt("tools", `${path}.name`, "is required and must be a string")
    const name = names.declare(declared)
    if (name === undefined) {
      unread.push(definition)
      continue
    }
    if (Object.keys(definition).some((field) => !translated.has(field))) unread.push(definition)
    const tool =
      definition.type === "custom" ? readCustom(definition, name, path) : readFunction({ ...definition, name }, path)
    if (isRefusal(tool)) return tool
    tools.push(tool)
  }
  return { tools, names, hosted, unread, webSearch: hosted.some(isSearch) }
}

const isWord = isOneOf("auto", "none", "required")

interface ReadChoice {
  readonly choice: ToolChoice | undefined
  /** The tools that the model may call. */
  readonly tools: ReadonlyArray<Tool>
}

/** A choice of hosted tools is left to the model. */
export const readToolChoice = (given: unknown, { names, tools, ...read }: ReadTools): Result<ReadChoice> => {
  const wrong = (problem: string) => refuseAt("tool_choice", "tool_choice", problem)
  const isNone = tools.length === 0
  if (isAbsent(given)) return { choice: undefined, tools }
  if (isWord(given)) {
    if (given === "required" && isNone && read.hosted.length === 0) return wrong("needs `tools`")
    return { choice: isNone ? undefined : given, tools }
  }
  if (!isObject(given) || !isFilled(given.type)) {
    return wrong("must be auto, none, required or an object with a `type`")
  }
  const functionOf = ({ name, namespace }: JsonObject): string | undefined =>
    isFilled(name) ? names.functionOf(name, isFilled(namespace) ? namespace : undefined) : undefined
  if (given.type === "allowed_tools") {
    if (!isArray(given.tools) || !(given.mode === "auto" || given.mode === "required")) {
      return wrong("must have a `mode`, auto or required, and `tools`")
    }
    const allowed = new Set(given.tools.map((tool) => (isObject(tool) ? functionOf(tool) : undefined)))
    const callable = tools.filter((tool) => allowed.has(tool.function.name))
    const namesHosted = given.tools.some((tool) => isObject(tool) && !isCallable(tool))
    if (callable.length === 0 && !namesHosted) return wrong("must name some of `tools`")
    return { choice: callable.length === 0 ? undefined : given.mode, tools: callable }
  }
  if (!isCallable(given)) return { choice: undefined, tools }
  const name = functionOf(given)
  if (!tools.some((tool) => tool.function.name === name) || name === undefined) {
    return wrong("must name one of `tools`")
  }
  return { choice: { type: "function", function: { name } }, tools }
}

/** `text` is the default, so it counts as absent. */
export const readFormat = (format: unknown): Result<ResponseFormat | undefined> => {
  if (isAbsent(format)) return undefined
  if (!isObject(format)) return refuseAt("text", "text.format", "must be an object")
  if (format.type === "text") return undefined
  if (format.type === "json_object") return { type: "json_object" }
  if (format.type !== "json_schema")
    return refuse("text", "`text.format.type` must be one of text, json_object, json_schema.")
  return readJsonSchema(format, "text", "text.format")
}
