import { Option, Schema } from "effect"
import { callIdMark, readCallId } from "../../domain/CallId.ts"
import type { ResponseFormat, Tool, ToolCall, ToolChoice } from "../../domain/Chat.ts"
import { described, Filled, isWithin, matching, optional } from "../../domain/Constraints.ts"
import { nestsWithin } from "../../domain/Json.ts"
import { withWholePairs } from "../../domain/JsonText.ts"
import { isAbsent, isArray, isBoolean, isFilled, isObject, isOneOf, isString, type JsonObject } from "../body/Guards.ts"
import { JsonSchema, mustBeOneOf, typesOf } from "../schema/SharedFields.ts"
import { marked, readCacheMark } from "./ContentParts.ts"
import {
  below,
  invalidAt,
  invalidIn,
  type Path,
  readEach,
  readObject,
  readObjectIn,
  readOptionalString
} from "./FieldReaders.ts"

/** The longest id or name of a call: longer texts make slow keys. */
export const longestName = 4096
export const CallId = Filled.pipe(
  Schema.filter((wire) => isWithin(longestName, readCallId(wire).id), {
    jsonSchema: {
      type: "string",
      minLength: 1,
      anyOf: [{ maxLength: longestName }, { pattern: callIdMark }],
      description: `As the answer had it; at most ${longestName.toLocaleString("en-US")} characters before the \`${callIdMark}\` that some have.`
    }
  })
)

interface NameRule {
  readonly pattern: RegExp
  readonly problem: string
}

/** OpenAI's own maximum is shorter: each wire fits the names to its hosts. */
const toolName: NameRule = {
  pattern: /^[a-zA-Z0-9_.:-]{1,128}$/,
  problem: "is required and must be 1 to 128 letters, digits, underscores, dashes, dots or colons"
}
export const formatName: NameRule = {
  pattern: /^[a-zA-Z0-9_-]{1,64}$/,
  problem: "is required and must be 1 to 64 letters, digits, underscores or dashes"
}

export const isNamedBy = ({ pattern }: NameRule, name: unknown): name is string => isString(name) && pattern.test(name)

/** The one argument of the function that stands for a custom tool. */
const customArgument = "input"

const customParameters = {
  type: "object",
  properties: { [customArgument]: { type: "string", description: "The whole input, as plain text." } },
  required: [customArgument],
  additionalProperties: false
}

/** The arguments of that function. */
export const customArguments = (input: string): string => JSON.stringify({ [customArgument]: input })

/** Responses has the grammar's fields in the format, chat completions in an object of it. */
const grammarOf = (format: unknown): string => {
  if (!isObject(format)) return ""
  const { definition, syntax } = isObject(format.grammar) ? format.grammar : format
  return isString(definition) ? `\n\nThe input must conform to this ${String(syntax)} grammar:\n${definition}` : ""
}

const customDescription = ({ description, format }: JsonObject): string =>
  ((isString(description) ? description : "") + grammarOf(format)).trim()

const parseString = Schema.decodeUnknownOption(Schema.parseJson(Schema.String))

const parseArguments = Schema.decodeUnknownOption(
  Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
)

const openInput = new RegExp(String.raw`^\s*\{\s*"${customArgument}"\s*:\s*"`)
/** Characters of an escape that lacks its last one. */
const longestCutEscape = 5

/** The input in arguments that end within it; undefined for any other text. */
const cutInput = (text: string): string | undefined => {
  const [opening] = openInput.exec(text) ?? []
  if (opening === undefined) return undefined
  for (let cut = 0; cut <= longestCutEscape; cut++) {
    const given = Option.getOrUndefined(parseString(`"${text.slice(opening.length, text.length - cut)}"`))
    if (given !== undefined) return given
  }
  return undefined
}

/** The input of a custom tool; some models wrap their text under another name. */
export const customInput = (text: string): string => {
  const given = Option.getOrElse(parseArguments(text), (): JsonObject => ({}))
  const input = given[customArgument] ?? (Object.keys(given).length === 1 ? Object.values(given)[0] : undefined)
  return isString(input) ? input : (cutInput(text) ?? text)
}

const ToolName = matching(toolName.pattern)

/** What tools and formats of every dialect have beside their JSON Schema; `readNamed` reads it. */
export const namedFields = (name: Schema.Schema<string>) => ({
  name,
  description: optional(Schema.String),
  strict: optional(Schema.Boolean)
})

/** The function of a tool; `readFunction` reads it. */
export const functionFields = (name: Schema.Schema<string>) => ({
  ...namedFields(name),
  parameters: optional(JsonSchema)
})
const FunctionFields = Schema.Struct(functionFields(ToolName))

/** A function as the Messages API has it. */
export const messagesToolOf = (name: Schema.Schema<string>) =>
  Schema.Struct({
    type: optional(Schema.Literal("custom")),
    ...namedFields(name),
    input_schema: JsonSchema,
    ...marked
  })

export const TextFormat = Schema.Struct({ type: Schema.Literal("text") })
export const grammarFields = { syntax: Schema.String, definition: Schema.String }
const CustomFields = Schema.Struct({
  name: ToolName,
  description: optional(Schema.String),
  format: optional(
    Schema.Union(
      TextFormat,
      Schema.Struct({ type: Schema.Literal("grammar"), grammar: Schema.Struct(grammarFields) }),
      Schema.Struct({ type: Schema.Literal("grammar"), ...grammarFields })
    )
  )
})

export const ToolField = Schema.Union(
  Schema.Struct({ type: Schema.Literal("function"), function: FunctionFields, ...marked }).annotations({
    identifier: "Tool"
  }),
  Schema.Struct({ type: Schema.Literal("custom"), custom: CustomFields, ...marked }).annotations({
    identifier: "CustomTool",
    description: "A tool whose input is free text."
  }),
  Schema.Struct({
    type: Schema.Literal("function"),
    function: optional(Schema.Null),
    ...FunctionFields.fields,
    ...marked
  }).annotations({ identifier: "FlatTool", description: "A function in the form that Cursor sends." }),
  Schema.Struct({
    type: Schema.Literal("custom"),
    custom: optional(Schema.Null),
    input_schema: optional(Schema.Null),
    ...CustomFields.fields,
    ...marked
  }).annotations({ identifier: "FlatCustomTool", description: "A custom tool in the form that Cursor sends." }),
  messagesToolOf(ToolName).annotations({
    identifier: "MessagesStyleTool",
    description: "A function as the Messages API has it."
  })
)

/** The types of tools that the client runs. */
export const CallableType = Schema.Literal("function", "custom")
/** What a tool choice of chats and of Responses may be in a word. */
export const ChoiceWord = Schema.Literal("auto", "none", "required")
export const AllowedMode = Schema.Literal("auto", "required")

const NamedTool = Schema.Struct({ name: ToolName })
const AllowedTool = Schema.Union(
  Schema.Struct({ type: Schema.Literal("function"), function: NamedTool }),
  Schema.Struct({ type: Schema.Literal("custom"), custom: NamedTool }),
  Schema.Struct({ type: CallableType, name: ToolName })
)
const allowedFields = { mode: AllowedMode, tools: Schema.NonEmptyArray(AllowedTool) }

export const ToolChoiceField = Schema.Union(
  ChoiceWord,
  Schema.Struct({ type: ChoiceWord }),
  AllowedTool,
  Schema.Struct({ type: Schema.Literal("allowed_tools"), allowed_tools: Schema.Struct(allowedFields) }),
  Schema.Struct({ type: Schema.Literal("allowed_tools"), ...allowedFields })
)

const FormatName = matching(formatName.pattern)

/** A JSON Schema for an answer; `readJsonSchema` reads it. */
export const schemaFields = (name: Schema.Schema<string>) => ({ ...namedFields(name), schema: optional(JsonSchema) })

export const ResponseFormatField = Schema.Union(
  TextFormat,
  Schema.Struct({
    type: Schema.Literal("json_object"),
    schema: optional(JsonSchema, "As a `json_schema` of any name."),
    json_schema: described(Schema.Null, "Needs the type `json_schema`.")
  }),
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    json_schema: Schema.Struct(schemaFields(FormatName))
  })
)

const maxLevels = 100

const requireShallow = (schema: JsonObject, path: Path, field: string): JsonObject =>
  nestsWithin(maxLevels, schema) ? schema : invalidIn(path, field, `must not nest more than ${maxLevels} levels deep`)

export const readSchema = (from: JsonObject, field: string, path: Path): JsonObject =>
  requireShallow(readObjectIn(from, field, path), path, field)

const readOptionalSchema = (from: JsonObject, field: string, path: Path): JsonObject | undefined =>
  isAbsent(from[field]) ? undefined : requireShallow(readObject(from[field], below(path, field)), path, field)

export const readNamed = (definition: JsonObject, path: Path, rule: NameRule) => {
  const { name, strict } = definition
  if (!isNamedBy(rule, name)) return invalidIn(path, "name", rule.problem)
  const description = readOptionalString(definition, "description", path)
  if (!isAbsent(strict) && !isBoolean(strict)) return invalidIn(path, "strict", "must be a boolean")
  return {
    name,
    ...(description === undefined ? undefined : { description }),
    ...(isAbsent(strict) ? undefined : { strict })
  }
}

export const readFunction = (definition: JsonObject, path: Path): Tool => {
  const named = readNamed(definition, path, toolName)
  const parameters = readOptionalSchema(definition, "parameters", path)
  return { type: "function", function: parameters === undefined ? named : { ...named, parameters } }
}

export const readJsonSchema = (definition: JsonObject, path: Path): ResponseFormat => {
  const named = readNamed(definition, path, formatName)
  const schema = readOptionalSchema(definition, "schema", path)
  return { type: "json_schema", json_schema: schema === undefined ? named : { ...named, schema } }
}

/** `field` is what the dialect calls the id. Hosts parse the text again, so its escapes must be complete. */
export const toolCallOf = (onWire: string, name: string, text: string, path: Path, field = "an `id`"): ToolCall => {
  const { id, signature } = readCallId(onWire)
  if (!isWithin(longestName, id) || !isWithin(longestName, name)) {
    return invalidAt(path, `must have ${field} and a name of at most ${longestName} characters`)
  }
  const call = { id, type: "function", function: { name, arguments: withWholePairs(text) } } as const
  return signature === undefined ? call : { ...call, signature }
}

/** A custom tool as the function that stands for it. */
export const readCustom = (definition: JsonObject, name: unknown, path: Path): Tool => {
  const read = readFunction({ name, description: definition.description }, path)
  const description = customDescription(definition)
  return { type: "function", function: { name: read.function.name, description, parameters: customParameters } }
}

/** Cursor sends the fields of a tool beside its `type`, or tools of the Messages API. */
const readDefined = (tool: JsonObject, path: Path): Tool => {
  if (tool.type === "custom" && isAbsent(tool.input_schema)) {
    const { custom } = tool
    return isObject(custom) ? readCustom(custom, custom.name, below(path, "custom")) : readCustom(tool, tool.name, path)
  }
  if (!isAbsent(tool.input_schema) && (isAbsent(tool.type) || tool.type === "custom")) {
    return readFunction({ ...tool, parameters: tool.input_schema }, path)
  }
  if (tool.type !== "function") return invalidIn(path, "type", "must be function or custom")
  return isAbsent(tool.function) && isFilled(tool.name)
    ? readFunction(tool, path)
    : readFunction(readObjectIn(tool, "function", path), below(path, "function"))
}

/** The first tool of each name: vendors refuse two of one name, and a call could not tell them apart. */
export const firstOfEach = (tools: ReadonlyArray<Tool>): ReadonlyArray<Tool> => {
  const names = new Set<string>()
  for (const tool of tools) names.add(tool.function.name)
  return names.size === tools.length ? tools : tools.filter((tool) => names.delete(tool.function.name))
}

export const readTools = (given: unknown): ReadonlyArray<Tool> => {
  if (isAbsent(given)) return []
  const read = (tool: JsonObject, path: Path) => ({ ...readDefined(tool, path), ...readCacheMark(tool, path) })
  return firstOfEach(readEach(given, "tools", read))
}

/** The names of the custom tools among these; undefined without any. */
export const customToolsIn = (tools: ReadonlyArray<Tool>): ReadonlySet<string> | undefined => {
  const custom = tools.filter((tool) => tool.function.parameters === customParameters)
  return custom.length === 0 ? undefined : new Set(custom.map((tool) => tool.function.name))
}

export const isChoiceWord = isOneOf(...ChoiceWord.literals)
const isAllowedMode = isOneOf(...AllowedMode.literals)

/** Some clients send a word as the type of an object. */
const wordIn = (choice: unknown): unknown => (isObject(choice) && isChoiceWord(choice.type) ? choice.type : choice)

export interface ReadChoice {
  readonly toolChoice: ToolChoice | undefined
  /** The tools that the model may call. */
  readonly tools: ReadonlyArray<Tool>
}

const choiceProblem = "must be auto, none, required or an object that names a function"

/** The name in a choice, or in one of the tools that are allowed: nested, or beside the type as in Responses. */
const chosenName = (choice: unknown): unknown => {
  if (!isObject(choice) || (choice.type !== "function" && choice.type !== "custom")) return undefined
  const inner = choice[choice.type]
  return isObject(inner) ? (inner.name ?? null) : choice.name
}

/** Limits the tools to the allowed ones. A tool of a host is no function, and is left to the model. */
export const readAllowed = (
  { mode, tools: allowed }: JsonObject,
  tools: ReadonlyArray<Tool>,
  functionOf: (tool: unknown) => unknown,
  isHosted: (tool: unknown) => boolean = () => false
): ReadChoice => {
  if (!isArray(allowed) || !isAllowedMode(mode)) {
    return invalidAt("tool_choice", "must have a `mode`, auto or required, and `tools`")
  }
  const names = new Set(allowed.map(functionOf))
  const callable = tools.filter((tool) => names.has(tool.function.name))
  if (callable.length > 0) return { toolChoice: mode, tools: callable }
  return allowed.some(isHosted)
    ? { toolChoice: undefined, tools: callable }
    : invalidAt("tool_choice", "must name some of `tools`")
}

/** Without tools `auto` and `none` are harmless; anything else asks for a missing tool. */
export const readToolChoice = (given: unknown, tools: ReadonlyArray<Tool>): ReadChoice => {
  const choice = wordIn(given)
  const invalid = (problem: string) => invalidAt("tool_choice", problem)
  if (isAbsent(choice)) return { toolChoice: undefined, tools }
  if (isChoiceWord(choice)) {
    if (tools.length > 0) return { toolChoice: choice, tools }
    return choice === "required" ? invalid("needs `tools`") : { toolChoice: undefined, tools }
  }
  if (isObject(choice) && choice.type === "allowed_tools") {
    return readAllowed(isObject(choice.allowed_tools) ? choice.allowed_tools : choice, tools, chosenName)
  }
  const name = chosenName(choice)
  if (name === undefined) return invalid(choiceProblem)
  if (!isNamedBy(toolName, name)) return invalid("must name a function")
  if (!tools.some((tool) => tool.function.name === name)) return invalid("must name one of `tools`")
  return { toolChoice: { type: "function", function: { name } }, tools }
}

const formatPath = "response_format"

/** Other hosts take the schema beside `json_object`. */
const readJsonObject = ({ json_schema, schema }: JsonObject): ResponseFormat => {
  if (!isAbsent(json_schema)) return invalidIn(formatPath, "json_schema", "needs the type json_schema")
  return isAbsent(schema) ? { type: "json_object" } : readJsonSchema({ name: "response", schema }, formatPath)
}

const unknownFormat = mustBeOneOf(typesOf(...ResponseFormatField.members))

/** Reads a format by its type. `text` is the default, so it counts as absent. */
export const readFormat = (
  given: unknown,
  path: string,
  readJson: (format: JsonObject) => ResponseFormat,
  readOfSchema: (format: JsonObject) => ResponseFormat
): ResponseFormat | undefined => {
  if (isAbsent(given)) return undefined
  const format = readObject(given, path)
  switch (format.type) {
    case "text":
      return undefined
    case "json_object":
      return readJson(format)
    case "json_schema":
      return readOfSchema(format)
    default:
      return invalidIn(path, "type", unknownFormat)
  }
}

export const readResponseFormat = (given: unknown): ResponseFormat | undefined =>
  readFormat(given, formatPath, readJsonObject, (format) =>
    readJsonSchema(readObjectIn(format, "json_schema", formatPath), below(formatPath, "json_schema"))
  )
