import { Option, Schema } from "effect"
import {
  callIdMark,
  type ResponseFormat,
  readCallId,
  type Tool,
  type ToolCall,
  type ToolChoice
} from "../../domain/Chat.ts"
import { describedField, isWithin, matching, NonEmptyString, optional } from "../../domain/Constraints.ts"
import { nestsWithin } from "../../domain/Json.ts"
import { replaceLoneSurrogates } from "../../domain/JsonText.ts"
import {
  fieldPath,
  invalidAt,
  invalidIn,
  isAbsent,
  isArray,
  isBoolean,
  isNonEmptyString,
  isObject,
  isOneOf,
  isString,
  type JsonObject,
  type Path,
  readEach,
  readObject,
  readObjectIn,
  readOptionalString
} from "../body/Guards.ts"
import { JsonSchema, mustBeOneOf, typesOf } from "../schema/SharedFields.ts"
import { cacheMarkField, readCacheMark } from "./ContentParts.ts"

/** Ids and names are map keys, which are slow if they are longer. */
export const maxNameLength = 4096
export const CallId = NonEmptyString.pipe(
  Schema.filter((wire) => isWithin(maxNameLength, readCallId(wire).id), {
    jsonSchema: {
      type: "string",
      minLength: 1,
      anyOf: [{ maxLength: maxNameLength }, { pattern: callIdMark }],
      description: `The tool call's id from the response. At most ${maxNameLength.toLocaleString("en-US")} characters before an optional \`${callIdMark}\`.`
    }
  })
)

interface NameRule {
  readonly pattern: RegExp
  readonly problem: string
}

/** OpenAI's own maximum is shorter than 128. Each adapter shortens longer names for its providers. */
const toolName: NameRule = {
  pattern: /^[a-zA-Z0-9_.:-]{1,128}$/,
  problem: "is required and must be 1 to 128 letters, digits, underscores, dashes, dots or colons"
}
export const formatName: NameRule = {
  pattern: /^[a-zA-Z0-9_-]{1,64}$/,
  problem: "is required and must be 1 to 64 letters, digits, underscores or dashes"
}

export const isNamedBy = ({ pattern }: NameRule, name: unknown): name is string => isString(name) && pattern.test(name)

/** Models get a custom tool as a function with this single argument. */
const customArgument = "input"

const customParameters = {
  type: "object",
  properties: { [customArgument]: { type: "string", description: "The complete input, as plain text." } },
  required: [customArgument],
  additionalProperties: false
}

export const encodeCustomArguments = (input: string): string => JSON.stringify({ [customArgument]: input })

/** Describes a grammar to the model. Its fields are in the format in Responses, and in `format.grammar` in chat completions. */
const describeGrammar = (format: unknown): string => {
  if (!isObject(format)) return ""
  const { definition, syntax } = isObject(format.grammar) ? format.grammar : format
  return isString(definition) ? `\n\nThe input must conform to this ${String(syntax)} grammar:\n${definition}` : ""
}

const describeCustomTool = ({ description, format }: JsonObject): string =>
  ((isString(description) ? description : "") + describeGrammar(format)).trim()

const parseString = Schema.decodeUnknownOption(Schema.parseJson(Schema.String))

const parseArguments = Schema.decodeUnknownOption(
  Schema.parseJson(Schema.Record({ key: Schema.String, value: Schema.Unknown }))
)

const inputStart = new RegExp(String.raw`^\s*\{\s*"${customArgument}"\s*:\s*"`)
/** The length of the longest incomplete JSON escape, such as `\u123`. */
const maxEscapeLength = 5

/** Returns the input from arguments that were cut off within it, or undefined for any other text. */
const readIncompleteInput = (text: string): string | undefined => {
  const [start] = inputStart.exec(text) ?? []
  if (start === undefined) return undefined
  for (let escapeLength = 0; escapeLength <= maxEscapeLength; escapeLength++) {
    const json = `"${text.slice(start.length, text.length - escapeLength)}"`
    const input = Option.getOrUndefined(parseString(json))
    if (input !== undefined) return input
  }
  return undefined
}

/** Returns a custom tool's input from the arguments of a call. Some models give the argument another name. */
export const readCustomInput = (text: string): string => {
  const args = Option.getOrElse(parseArguments(text), (): JsonObject => ({}))
  const input = args[customArgument] ?? (Object.keys(args).length === 1 ? Object.values(args)[0] : undefined)
  return isString(input) ? input : (readIncompleteInput(text) ?? text)
}

const ToolName = matching(toolName.pattern)

/** The fields that tools and formats of all dialects share, apart from their JSON Schema. `readDefinition` reads them. */
const definitionFields = (name: Schema.Schema<string>) => ({
  name,
  description: optional(Schema.String),
  strict: optional(Schema.Boolean)
})

export const functionFields = (name: Schema.Schema<string>) => ({
  ...definitionFields(name),
  parameters: optional(JsonSchema)
})
const FunctionFields = Schema.Struct(functionFields(ToolName))

/** A function in the format of the Messages API. */
export const messagesToolOf = (name: Schema.Schema<string>) =>
  Schema.Struct({
    type: optional(Schema.Literal("custom")),
    ...definitionFields(name),
    input_schema: JsonSchema,
    ...cacheMarkField
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
  Schema.Struct({ type: Schema.Literal("function"), function: FunctionFields, ...cacheMarkField }).annotations({
    identifier: "Tool"
  }),
  Schema.Struct({ type: Schema.Literal("custom"), custom: CustomFields, ...cacheMarkField }).annotations({
    identifier: "CustomTool",
    description: "A tool whose input is free text."
  }),
  Schema.Struct({
    type: Schema.Literal("function"),
    function: optional(Schema.Null),
    ...FunctionFields.fields,
    ...cacheMarkField
  }).annotations({ identifier: "FlatTool", description: "A function in Cursor's format." }),
  Schema.Struct({
    type: Schema.Literal("custom"),
    custom: optional(Schema.Null),
    input_schema: optional(Schema.Null),
    ...CustomFields.fields,
    ...cacheMarkField
  }).annotations({ identifier: "FlatCustomTool", description: "A custom tool in Cursor's format." }),
  messagesToolOf(ToolName).annotations({
    identifier: "MessagesStyleTool",
    description: "A function in the format of the Messages API."
  })
)

/** The types of tools that the client runs. */
export const CallableType = Schema.Literal("function", "custom")
/** The tool choices that are strings, in chat completions and Responses. */
export const ChoiceMode = Schema.Literal("auto", "none", "required")
export const AllowedMode = Schema.Literal("auto", "required")

const NamedTool = Schema.Struct({ name: ToolName })
const AllowedTool = Schema.Union(
  Schema.Struct({ type: Schema.Literal("function"), function: NamedTool }),
  Schema.Struct({ type: Schema.Literal("custom"), custom: NamedTool }),
  Schema.Struct({ type: CallableType, name: ToolName })
)
const allowedFields = { mode: AllowedMode, tools: Schema.NonEmptyArray(AllowedTool) }

export const ToolChoiceField = Schema.Union(
  ChoiceMode,
  Schema.Struct({ type: ChoiceMode }),
  AllowedTool,
  Schema.Struct({ type: Schema.Literal("allowed_tools"), allowed_tools: Schema.Struct(allowedFields) }),
  Schema.Struct({ type: Schema.Literal("allowed_tools"), ...allowedFields })
)

const FormatName = matching(formatName.pattern)

export const schemaFields = (name: Schema.Schema<string>) => ({
  ...definitionFields(name),
  schema: optional(JsonSchema)
})

export const ResponseFormatField = Schema.Union(
  TextFormat,
  Schema.Struct({
    type: Schema.Literal("json_object"),
    schema: optional(JsonSchema, "The JSON Schema of the response."),
    json_schema: describedField(Schema.Null, "Requires the type `json_schema`.")
  }),
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    json_schema: Schema.Struct(schemaFields(FormatName))
  })
)

const maxLevels = 100

const checkLevels = (schema: JsonObject, path: Path, field: string): JsonObject =>
  nestsWithin(maxLevels, schema) ? schema : invalidIn(path, field, `must not nest more than ${maxLevels} levels deep`)

export const readSchema = (from: JsonObject, field: string, path: Path): JsonObject =>
  checkLevels(readObjectIn(from, field, path), path, field)

const readOptionalSchema = (from: JsonObject, field: string, path: Path): JsonObject | undefined =>
  isAbsent(from[field]) ? undefined : checkLevels(readObject(from[field], fieldPath(path, field)), path, field)

export const readDefinition = (definition: JsonObject, path: Path, rule: NameRule) => {
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
  const fields = readDefinition(definition, path, toolName)
  const parameters = readOptionalSchema(definition, "parameters", path)
  return { type: "function", function: parameters === undefined ? fields : { ...fields, parameters } }
}

export const readJsonSchema = (definition: JsonObject, path: Path): ResponseFormat => {
  const fields = readDefinition(definition, path, formatName)
  const schema = readOptionalSchema(definition, "schema", path)
  return { type: "json_schema", json_schema: schema === undefined ? fields : { ...fields, schema } }
}

/** `field` is the dialect's name of the id. Lone surrogates are replaced, because providers parse the arguments again. */
export const makeToolCall = (clientId: string, name: string, text: string, path: Path, field = "an `id`"): ToolCall => {
  const { id, signature } = readCallId(clientId)
  if (!isWithin(maxNameLength, id) || !isWithin(maxNameLength, name)) {
    return invalidAt(path, `must have ${field} and a name of at most ${maxNameLength} characters`)
  }
  const call = { id, type: "function", function: { name, arguments: replaceLoneSurrogates(text) } } as const
  return signature === undefined ? call : { ...call, signature }
}

/** Reads a custom tool as a function with one argument. */
export const readCustomTool = (definition: JsonObject, name: unknown, path: Path): Tool => {
  const tool = readFunction({ name, description: definition.description }, path)
  const description = describeCustomTool(definition)
  return { type: "function", function: { name: tool.function.name, description, parameters: customParameters } }
}

/** Reads a tool. Cursor sends a tool's fields next to its `type`, or sends tools of the Messages API. */
const readTool = (tool: JsonObject, path: Path): Tool => {
  if (tool.type === "custom" && isAbsent(tool.input_schema)) {
    const { custom } = tool
    return isObject(custom)
      ? readCustomTool(custom, custom.name, fieldPath(path, "custom"))
      : readCustomTool(tool, tool.name, path)
  }
  if (!isAbsent(tool.input_schema) && (isAbsent(tool.type) || tool.type === "custom")) {
    return readFunction({ ...tool, parameters: tool.input_schema }, path)
  }
  if (tool.type !== "function") return invalidIn(path, "type", "must be function or custom")
  return isAbsent(tool.function) && isNonEmptyString(tool.name)
    ? readFunction(tool, path)
    : readFunction(readObjectIn(tool, "function", path), fieldPath(path, "function"))
}

/** Keeps the first tool of each name, because providers refuse duplicate names. */
export const removeDuplicateTools = (tools: ReadonlyArray<Tool>): ReadonlyArray<Tool> => {
  const names = new Set<string>()
  for (const tool of tools) names.add(tool.function.name)
  return names.size === tools.length ? tools : tools.filter((tool) => names.delete(tool.function.name))
}

export const readTools = (value: unknown): ReadonlyArray<Tool> => {
  if (isAbsent(value)) return []
  const readItem = (tool: JsonObject, path: Path) => ({ ...readTool(tool, path), ...readCacheMark(tool, path) })
  return removeDuplicateTools(readEach(value, "tools", readItem))
}

/** Returns the names of the custom tools, or undefined if there are none. */
export const findCustomTools = (tools: ReadonlyArray<Tool>): ReadonlySet<string> | undefined => {
  const customTools = tools.filter((tool) => tool.function.parameters === customParameters)
  return customTools.length === 0 ? undefined : new Set(customTools.map((tool) => tool.function.name))
}

export const isChoiceMode = isOneOf(...ChoiceMode.literals)
const isAllowedMode = isOneOf(...AllowedMode.literals)

/** Returns the mode of a choice such as `{"type": "auto"}`, which some clients send. */
const unwrapMode = (choice: unknown): unknown => (isObject(choice) && isChoiceMode(choice.type) ? choice.type : choice)

export interface ToolSelection {
  readonly toolChoice: ToolChoice | undefined
  /** The tools that the model may call. */
  readonly tools: ReadonlyArray<Tool>
}

const choiceProblem = "must be auto, none, required or an object that names a function"

/** Reads the name of a tool choice or an allowed tool, which Responses has next to the type instead of nested. */
const readChoiceName = (choice: unknown): unknown => {
  if (!isObject(choice) || (choice.type !== "function" && choice.type !== "custom")) return undefined
  const inner = choice[choice.type]
  return isObject(inner) ? (inner.name ?? null) : choice.name
}

/** Limits the tools to the allowed ones. Without a choice if only hosted tools are allowed, which the provider selects. */
export const selectAllowedTools = (
  { mode, tools: allowed }: JsonObject,
  tools: ReadonlyArray<Tool>,
  functionOf: (tool: unknown) => unknown,
  isHosted: (tool: unknown) => boolean = () => false
): ToolSelection => {
  if (!isArray(allowed) || !isAllowedMode(mode)) {
    return invalidAt("tool_choice", "must have a `mode`, auto or required, and `tools`")
  }
  const names = new Set(allowed.map(functionOf))
  const callable = tools.filter((tool) => names.has(tool.function.name))
  if (callable.length > 0) return { toolChoice: mode, tools: callable }
  return allowed.some(isHosted)
    ? { toolChoice: undefined, tools: callable }
    : invalidAt("tool_choice", "must name at least one of `tools`")
}

/** Reads the tool choice. `auto` and `none` are accepted without tools, because they need none. */
export const readToolChoice = (value: unknown, tools: ReadonlyArray<Tool>): ToolSelection => {
  const choice = unwrapMode(value)
  const invalid = (problem: string) => invalidAt("tool_choice", problem)
  if (isAbsent(choice)) return { toolChoice: undefined, tools }
  if (isChoiceMode(choice)) {
    if (tools.length > 0) return { toolChoice: choice, tools }
    return choice === "required" ? invalid("needs `tools`") : { toolChoice: undefined, tools }
  }
  if (isObject(choice) && choice.type === "allowed_tools") {
    return selectAllowedTools(isObject(choice.allowed_tools) ? choice.allowed_tools : choice, tools, readChoiceName)
  }
  const name = readChoiceName(choice)
  if (name === undefined) return invalid(choiceProblem)
  if (!isNamedBy(toolName, name)) return invalid("must name a function")
  if (!tools.some((tool) => tool.function.name === name)) return invalid("must name one of `tools`")
  return { toolChoice: { type: "function", function: { name } }, tools }
}

const formatPath = "response_format"

/** Reads `json_object`. With a schema, it counts as `json_schema`, because some providers accept that. */
const readJsonObject = ({ json_schema, schema }: JsonObject): ResponseFormat => {
  if (!isAbsent(json_schema)) return invalidIn(formatPath, "json_schema", "requires the type json_schema")
  return isAbsent(schema) ? { type: "json_object" } : readJsonSchema({ name: "response", schema }, formatPath)
}

const unknownFormat = mustBeOneOf(typesOf(...ResponseFormatField.members))

/** Reads a response format. Returns undefined for `text`, which is the default. */
export const readFormat = (
  value: unknown,
  path: string,
  readJson: (format: JsonObject) => ResponseFormat,
  readSchemaFormat: (format: JsonObject) => ResponseFormat
): ResponseFormat | undefined => {
  if (isAbsent(value)) return undefined
  const format = readObject(value, path)
  switch (format.type) {
    case "text":
      return undefined
    case "json_object":
      return readJson(format)
    case "json_schema":
      return readSchemaFormat(format)
    default:
      return invalidIn(path, "type", unknownFormat)
  }
}

export const readResponseFormat = (value: unknown): ResponseFormat | undefined =>
  readFormat(value, formatPath, readJsonObject, (format) =>
    readJsonSchema(readObjectIn(format, "json_schema", formatPath), fieldPath(formatPath, "json_schema"))
  )
