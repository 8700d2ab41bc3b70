import { type ResponseFormat, readCallId, type Tool, type ToolCall, type ToolChoice } from "../../domain/Chat.ts"
import { isWithin } from "../../domain/Constraints.ts"
import { nestsWithin } from "../../domain/Json.ts"
import { withWholePairs } from "../../domain/JsonText.ts"
import { isAbsent, isArray, isBoolean, isObject, isOneOf, isString, type JsonObject } from "../body/Guards.ts"
import { refuseAt } from "../body/Refusals.ts"
import { readCacheMark } from "./CacheControl.ts"
import { isRefusal, type Result, readEach } from "./Result.ts"
import { longestName } from "./Schema.ts"

export const maxLevels = 100

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/
export const isName = (value: unknown): value is string => isString(value) && namePattern.test(value)
const nameRule = "is required and must be 1 to 64 letters, digits, underscores or dashes"

interface Definition {
  readonly named: { readonly name: string; readonly description?: string; readonly strict?: boolean }
  readonly schema: JsonObject | undefined
}

const readDefinition = (
  definition: JsonObject,
  param: string,
  path: string,
  schemaField: "parameters" | "schema"
): Result<Definition> => {
  const { description, name, strict } = definition
  const schema = definition[schemaField]
  if (!isName(name)) return refuseAt(param, `${path}.name`, nameRule)
  if (!isAbsent(description) && !isString(description)) {
    return refuseAt(param, `${path}.description`, "must be a string")
  }
  if (!isAbsent(strict) && !isBoolean(strict)) return refuseAt(param, `${path}.strict`, "must be a boolean")
  if (!isAbsent(schema) && !isObject(schema)) return refuseAt(param, `${path}.${schemaField}`, "must be an object")
  if (!nestsWithin(maxLevels, schema)) {
    return refuseAt(param, `${path}.${schemaField}`, `must not nest more than ${maxLevels} levels deep`)
  }
  return {
    named: {
      name,
      ...(isAbsent(description) ? undefined : { description }),
      ...(isAbsent(strict) ? undefined : { strict })
    },
    schema: schema ?? undefined
  }
}

export const readFunction = (definition: JsonObject, path: string): Result<Tool> => {
  const read = readDefinition(definition, "tools", path, "parameters")
  if (isRefusal(read)) return read
  const { named, schema } = read
  return { type: "function", function: schema === undefined ? named : { ...named, parameters: schema } }
}

export const readJsonSchema = (definition: unknown, param: string, path: string): Result<ResponseFormat> => {
  if (!isObject(definition)) return refuseAt(param, path, "is required and must be an object")
  const read = readDefinition(definition, param, path, "schema")
  if (isRefusal(read)) return read
  const { named, schema } = read
  return { type: "json_schema", json_schema: schema === undefined ? named : { ...named, schema } }
}

/** Undefined where the id or the name is too long. Hosts parse the text again, so its escapes must be whole. */
export const toolCallOf = (onWire: string, name: string, text: string): ToolCall | undefined => {
  const { id, signature } = readCallId(onWire)
  if (!isWithin(longestName, id) || !isWithin(longestName, name)) return undefined
  const call = { id, type: "function", function: { name, arguments: withWholePairs(text) } } as const
  return signature === undefined ? call : { ...call, signature }
}

const readTool = (tool: unknown, index: number): Result<Tool> => {
  const path = `tools[${index}]`
  if (!isObject(tool)) return refuseAt("tools", path, "must be an object")
  if (tool.type !== "function") return refuseAt("tools", `${path}.type`, "must be function")
  if (!isObject(tool.function)) return refuseAt("tools", `${path}.function`, "is required and must be an object")
  const read = readFunction(tool.function, `${path}.function`)
  if (isRefusal(read)) return read
  const mark = readCacheMark(tool, "tools", () => path)
  return isRefusal(mark) ? mark : { ...read, ...mark }
}

export const readTools = (tools: unknown): Result<ReadonlyArray<Tool>> => {
  if (isAbsent(tools)) return []
  return isArray(tools) ? readEach(tools, readTool) : refuseAt("tools", "tools", "must be an array")
}

const isWord = isOneOf("auto", "none", "required")

/** Some clients send a word as the type of an object. */
const wordIn = (choice: unknown): unknown => (isObject(choice) && isWord(choice.type) ? choice.type : choice)

/** Without tools `auto` and `none` are harmless; anything else asks for a missing tool. */
export const readToolChoice = (given: unknown, tools: ReadonlyArray<Tool>): Result<ToolChoice | undefined> => {
  const choice = wordIn(given)
  const wrong = (problem: string) => refuseAt("tool_choice", "tool_choice", problem)
  if (isAbsent(choice)) return undefined
  if (isWord(choice)) {
    if (tools.length > 0) return choice
    return choice === "required" ? wrong("needs `tools`") : undefined
  }
  if (!isObject(choice) || choice.type !== "function" || !isObject(choice.function)) {
    return wrong("must be auto, none, required or an object that names a function")
  }
  const { name } = choice.function
  if (!isName(name)) return wrong("must name a function")
  if (!tools.some((tool) => tool.function.name === name)) return wrong("must name one of `tools`")
  return { type: "function", function: { name } }
}

/** Other hosts take the schema beside `json_object`. */
const readJsonObject = ({ json_schema, schema }: JsonObject): Result<ResponseFormat> => {
  if (!isAbsent(json_schema)) {
    return refuseAt("response_format", "response_format.json_schema", "needs the type json_schema")
  }
  return isAbsent(schema)
    ? { type: "json_object" }
    : readJsonSchema({ name: "response", schema }, "response_format", "response_format")
}

/** `text` is the default, so it counts as absent. */
export const readResponseFormat = (format: unknown): Result<ResponseFormat | undefined> => {
  if (isAbsent(format)) return undefined
  if (!isObject(format)) return refuseAt("response_format", "response_format", "must be an object")
  switch (format.type) {
    case "text":
      return undefined
    case "json_object":
      return readJsonObject(format)
    case "json_schema":
      return readJsonSchema(format.json_schema, "response_format", "response_format.json_schema")
    default:
      return refuseAt("response_format", "response_format.type", "must be one of text, json_object, json_schema")
  }
}
