import { Predicate } from "effect"
import type { ChatRequest, ResponseFormat, Tool, ToolChoice } from "../../domain/Chat.ts"
import { canBeObject } from "../../domain/JsonSchema.ts"
import { keepSource, stringify } from "../../domain/JsonSource.ts"
import type { Fields } from "../client/Json.ts"
import { makeStrictBudget } from "./StrictSchemas.ts"
import { fitCalls } from "./ToolCalls.ts"
import { type ClientNames, clientNames, fitNamesIn } from "./ToolNames.ts"
import { type FittedRoot, fitRoot, mendSchema, noParameters } from "./ToolSchemas.ts"
import { fitEnds, fitTurns } from "./Turns.ts"
import type { SchemaRoot, WireRules } from "./WireRules.ts"

type StrictBudget = (schema: Fields) => boolean

/** A wire without the field takes no schema as strict. */
const strictBudget = ({ strict }: WireRules): StrictBudget =>
  strict === "none" ? () => false : makeStrictBudget(strict)

/** A description that also says what the schema no longer does. */
const describe = (description: string | undefined, subject: string, { lost }: FittedRoot): string | undefined => {
  if (lost === undefined) return description
  const rule = `${subject} must also match this JSON Schema: ${stringify(lost)}`
  return description === undefined || description === "" ? rule : `${description}\n\n${rule}`
}

const fitSchema = (given: Fields | undefined, kind: SchemaRoot, { needsItems }: WireRules): FittedRoot | undefined => {
  if (given === undefined) return kind === "properties" ? { schema: noParameters } : undefined
  if (kind === "any") return undefined
  const root = fitRoot(given, kind)
  const schema = mendSchema(root.schema, needsItems)
  return schema === root.schema ? root : { ...root, schema }
}

const fitTool = (tool: Tool, rules: WireRules, name: string, isStrict: StrictBudget): Tool => {
  const given = tool.function
  const root = fitSchema(given.parameters, rules.toolRoot, rules)
  const parameters = root === undefined ? given.parameters : root.schema
  const strict = given.strict === true && !(parameters !== undefined && isStrict(parameters)) ? undefined : given.strict
  if (name === given.name && parameters === given.parameters && strict === given.strict) return tool
  const description = root === undefined ? given.description : describe(given.description, "The arguments", root)
  return { ...tool, function: { ...given, name, description, parameters, strict } }
}

/** Fits names, roots and strictness of tools. */
export const fitTools = (
  tools: ReadonlyArray<Tool>,
  rules: WireRules,
  names: ReadonlyMap<string, string> | undefined
): ReadonlyArray<Tool> => {
  if (tools.length === 0) return tools
  const isStrict = strictBudget(rules)
  const fitted = tools.map((tool) =>
    fitTool(tool, rules, names?.get(tool.function.name) ?? tool.function.name, isStrict)
  )
  return fitted.every((tool, at) => tool === tools[at]) ? tools : fitted
}

/** The same for the schema of an answer. */
export const fitAnswerFormat = (format: ResponseFormat, rules: WireRules): ResponseFormat => {
  if (format.type !== "json_schema") return format
  const given = format.json_schema
  if (given.schema === undefined) return format
  const root = fitSchema(given.schema, rules.answerRoot, rules) ?? { schema: given.schema }
  const { schema } = root
  const strict = given.strict === true && !strictBudget(rules)(schema) ? undefined : given.strict
  if (schema === given.schema && strict === given.strict) return format
  const description = describe(given.description, "The answer", root)
  return { type: "json_schema", json_schema: { ...given, description, schema, strict } }
}

type SchemaField = "input_schema" | "parameters" | "schema"

const fitDefinition = (
  definition: Fields,
  field: SchemaField,
  subject: string,
  kind: SchemaRoot,
  rules: WireRules
): Fields => {
  const given = definition[field]
  const root = fitSchema(Predicate.isRecord(given) ? given : undefined, kind, rules)
  if (root === undefined || root.schema === given) return definition
  const before = typeof definition.description === "string" ? definition.description : undefined
  const description = describe(before, subject, root)
  return keepSource(definition, {
    ...definition,
    [field]: root.schema,
    ...(description !== undefined && { description }),
    ...(definition.strict === true && { strict: strictBudget(rules)(root.schema) })
  })
}

/** A tool of a client's own body with a root that the host takes. */
export const fitNativeTool = (tool: Fields, field: SchemaField, rules: WireRules): Fields =>
  fitDefinition(tool, field, "The arguments", rules.toolRoot, rules)

/** The same for the schema of its answer. */
export const fitNativeFormat = (format: Fields, rules: WireRules): Fields =>
  format.type === "json_schema" && Predicate.isRecord(format.schema)
    ? fitDefinition(format, "schema", "The answer", rules.answerRoot, rules)
    : format

/** Whether the wire accepts no schema near the one that the client requests for the answer. */
export const declinesFormat = (format: ResponseFormat | undefined, { answerRoot }: WireRules): boolean =>
  format?.type === "json_schema" &&
  answerRoot !== "any" &&
  format.json_schema.schema !== undefined &&
  !canBeObject(format.json_schema.schema)

interface Fitted {
  readonly request: ChatRequest
  /** For the answer; undefined: all names were sent as they are. */
  readonly names: ClientNames | undefined
}

const fitChoice = (choice: ToolChoice | undefined, names: ReadonlyMap<string, string> | undefined) => {
  const name = typeof choice === "object" ? names?.get(choice.function.name) : undefined
  return name === undefined ? choice : ({ type: "function", function: { name } } as const)
}

/** Fits a request to what a wire accepts. Returns the same object if nothing has to change. */
export const fitRequest = (request: ChatRequest, rules: WireRules): Fitted => {
  const sent = fitNamesIn(request, rules)
  const turns = fitTurns(request.messages, rules, request.unpricedMarks !== "all")
  const messages = fitEnds(fitCalls(turns, rules, sent), rules)
  const tools = fitTools(request.tools, rules, sent)
  const toolChoice = fitChoice(request.toolChoice, sent)
  const responseFormat = request.responseFormat && fitAnswerFormat(request.responseFormat, rules)
  const isSame =
    messages === request.messages &&
    tools === request.tools &&
    toolChoice === request.toolChoice &&
    responseFormat === request.responseFormat
  return {
    request: isSame ? request : { ...request, messages, tools, toolChoice, responseFormat },
    names: clientNames(sent)
  }
}
