import { Predicate } from "effect"
import type { ChatRequest, ResponseFormat, Tool, ToolChoice } from "../../domain/Chat.ts"
import { canBeObject, resolveLocal } from "../../domain/JsonSchema.ts"
import { keepSource, stringify } from "../../domain/JsonSource.ts"
import { asList, type Fields } from "../client/Json.ts"
import { fitCalls } from "./ToolCalls.ts"
import { type ClientNames, clientNames, fitNamesIn } from "./ToolNames.ts"
import { type FittedRoot, fitRoot, mendSchema, noParameters } from "./ToolSchemas.ts"
import { fitEnds, fitTurns } from "./Turns.ts"
import type { SchemaRoot, WireRules } from "./WireRules.ts"

/** What a vendor compiles to a grammar. */
interface StrictRules {
  readonly keywords: ReadonlySet<string>
  readonly formats: ReadonlySet<unknown>
  /** Whether each property has to be required. */
  readonly requiresAll: boolean
  readonly takesRecursion: boolean
  /** The maximum of an array's `minItems`; undefined: any. */
  readonly maxMinItems: number | undefined
  /** Limits of one schema. */
  readonly maxProperties: number
  readonly maxLevels: number
  readonly maxEnum: number
  /** Limits of all strict schemas of a request. */
  readonly maxSchemas: number
  readonly maxOptional: number
  readonly maxUnions: number
}

const common = [
  "$defs",
  "$ref",
  "$schema",
  "additionalProperties",
  "anyOf",
  "const",
  "definitions",
  "description",
  "enum",
  "items",
  "minItems",
  "pattern",
  "properties",
  "required",
  "title",
  "type"
]
const formats = ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"]
const unlimited = Number.POSITIVE_INFINITY

/** From the vendors' documents on structured outputs, November 2026. */
const rulesOf: Readonly<Record<"openai" | "anthropic", StrictRules>> = {
  openai: {
    keywords: new Set([
      ...common,
      "exclusiveMaximum",
      "exclusiveMinimum",
      "format",
      "maxItems",
      "maximum",
      "minimum",
      "multipleOf"
    ]),
    formats: new Set(formats),
    requiresAll: true,
    takesRecursion: true,
    maxMinItems: undefined,
    maxProperties: 5_000,
    maxLevels: 10,
    maxEnum: 1_000,
    maxSchemas: unlimited,
    maxOptional: unlimited,
    maxUnions: unlimited
  },
  anthropic: {
    keywords: new Set([...common, "allOf", "default", "format"]),
    formats: new Set([...formats, "uri"]),
    requiresAll: false,
    takesRecursion: false,
    maxMinItems: 1,
    maxProperties: unlimited,
    maxLevels: 100,
    maxEnum: unlimited,
    maxSchemas: 20,
    maxOptional: 24,
    maxUnions: 16
  }
}

/** A chain of references within one schema; no vendor's grammar goes so deep, and the check recurses. */
const maxOpen = 256

const isScalar = (value: unknown): boolean => typeof value !== "object" || value === null

class StrictSchema {
  optional = 0
  unions = 0
  #properties = 0
  #enum = 0
  readonly #root: Fields
  readonly #rules: StrictRules
  readonly #fitting = new Set<Fields>()
  readonly #open = new Set<Fields>()

  constructor(root: Fields, rules: StrictRules) {
    this.#root = root
    this.#rules = rules
  }

  #countsFit(schema: Fields): boolean {
    if (Array.isArray(schema.type) || Array.isArray(schema.anyOf)) this.unions += 1
    this.#enum += asList(schema.enum).length
    return this.#enum <= this.#rules.maxEnum && this.#properties <= this.#rules.maxProperties
  }

  #valuesFit({ enum: values, format, minItems, type }: Fields): boolean {
    const { formats, maxMinItems = unlimited } = this.#rules
    if (format !== undefined && !formats.has(format)) return false
    if (typeof minItems === "number" && minItems > maxMinItems) return false
    if (type === "array") return true
    return values === undefined || asList(values).every(isScalar)
  }

  #objectFits({ additionalProperties, properties, required, type }: Fields): boolean {
    const isObject = asList(Array.isArray(type) ? type : [type]).includes("object")
    if (!isObject && properties === undefined) return true
    if (!isObject || additionalProperties !== false || !Predicate.isRecord(properties)) return false
    const names = Object.keys(properties)
    const needed = new Set(asList(required))
    const optional = names.filter((name) => !needed.has(name)).length
    this.#properties += names.length
    this.optional += optional
    return optional === 0 || !this.#rules.requiresAll
  }

  #referenceFits(reference: unknown, levels: number): boolean {
    const target = resolveLocal(this.#root, reference)
    if (target === undefined || this.#open.size > maxOpen) return false
    if (this.#open.has(target)) return this.#rules.takesRecursion
    return this.fits(target, levels)
  }

  #membersFit(schema: Fields, levels: number): boolean {
    const { $ref, additionalProperties: _, items, properties } = schema
    const subschemas = [schema.$defs, schema.definitions, properties].flatMap((member) =>
      Predicate.isRecord(member) ? Object.values(member) : []
    )
    const parts = [...asList(schema.anyOf), ...asList(schema.allOf), ...(items === undefined ? [] : [items])]
    return (
      ($ref === undefined || this.#referenceFits($ref, levels)) &&
      subschemas.every((member) => this.fits(member, levels - 1)) &&
      parts.every((member) => this.fits(member, levels - 1))
    )
  }

  fits(schema: unknown, levels: number): boolean {
    if (!Predicate.isRecord(schema) || levels < 0) return false
    if (this.#fitting.has(schema)) return true
    if (!Object.keys(schema).every((name) => this.#rules.keywords.has(name))) return false
    const saysWhat = ["type", "anyOf", "allOf", "$ref", "enum", "const"].some((name) => Object.hasOwn(schema, name))
    if (!saysWhat || !this.#valuesFit(schema) || !this.#objectFits(schema) || !this.#countsFit(schema)) return false
    this.#open.add(schema)
    const isFitting = this.#membersFit(schema, levels)
    this.#open.delete(schema)
    if (isFitting) this.#fitting.add(schema)
    return isFitting
  }
}

/** Decides which schemas of one request are sent as strict: those that the vendor takes so, up to its limits. */
export const makeStrictBudget = (vendor: "openai" | "anthropic") => {
  const rules = rulesOf[vendor]
  let [schemas, optional, unions] = [0, 0, 0]
  return (schema: Fields): boolean => {
    if (schemas === rules.maxSchemas) return false
    const strict = new StrictSchema(schema, rules)
    if (!strict.fits(schema, rules.maxLevels)) return false
    if (optional + strict.optional > rules.maxOptional || unions + strict.unions > rules.maxUnions) return false
    schemas += 1
    optional += strict.optional
    unions += strict.unions
    return true
  }
}

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
