import { Predicate } from "effect"
import type { ChatRequest, ResponseFormat, Tool, ToolChoice } from "../../domain/Chat.ts"
import { canBeObject, resolveLocal } from "../../domain/JsonSchema.ts"
import { keepSource, stringify } from "../../domain/JsonSource.ts"
import { asList, type Fields } from "../client/JsonFields.ts"
import { fitCalls } from "./ToolCalls.ts"
import { type ClientNames, clientNames, fitNamesIn } from "./ToolNames.ts"
import { emptyParameters, type FittedRoot, fitRoot, repairSchema } from "./ToolSchemas.ts"
import { fitEnds, fitTurns } from "./TurnMerging.ts"
import type { SchemaRoot, WireRules } from "./WireRules.ts"

/** The JSON Schema subset that a vendor compiles to a grammar. */
interface StrictRules {
  readonly keywords: ReadonlySet<string>
  readonly formats: ReadonlySet<unknown>
  readonly requiresAllProperties: boolean
  readonly allowsRecursion: boolean
  /** The largest `minItems` that the vendor accepts. Undefined: any. */
  readonly maxMinItems: number | undefined
  /** Limits of one schema. */
  readonly maxProperties: number
  readonly maxLevels: number
  readonly maxEnumValues: number
  /** Limits of all strict schemas of a request. */
  readonly maxSchemas: number
  readonly maxOptionalProperties: number
  readonly maxUnions: number
}

const commonKeywords = [
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
const stringFormats = ["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"]
const noLimit = Number.POSITIVE_INFINITY

/** Source: the vendors' documents on structured outputs, November 2026. */
const strictRules: Readonly<Record<"openai" | "anthropic", StrictRules>> = {
  openai: {
    keywords: new Set([
      ...commonKeywords,
      "exclusiveMaximum",
      "exclusiveMinimum",
      "format",
      "maxItems",
      "maximum",
      "minimum",
      "multipleOf"
    ]),
    formats: new Set(stringFormats),
    requiresAllProperties: true,
    allowsRecursion: true,
    maxMinItems: undefined,
    maxProperties: 5_000,
    maxLevels: 10,
    maxEnumValues: 1_000,
    maxSchemas: noLimit,
    maxOptionalProperties: noLimit,
    maxUnions: noLimit
  },
  anthropic: {
    keywords: new Set([...commonKeywords, "allOf", "default", "format"]),
    formats: new Set([...stringFormats, "uri"]),
    requiresAllProperties: false,
    allowsRecursion: false,
    maxMinItems: 1,
    maxProperties: noLimit,
    maxLevels: 100,
    maxEnumValues: noLimit,
    maxSchemas: 20,
    maxOptionalProperties: 24,
    maxUnions: 16
  }
}

/** Keeps the check, which recurses along references, from overflowing the stack. No vendor accepts deeper schemas. */
const maxReferenceDepth = 256

const isScalar = (value: unknown): boolean => typeof value !== "object" || value === null

class StrictSchema {
  optionalCount = 0
  unionCount = 0
  #propertyCount = 0
  #enumCount = 0
  readonly #root: Fields
  readonly #rules: StrictRules
  readonly #validSchemas = new Set<Fields>()
  readonly #schemasOnPath = new Set<Fields>()

  constructor(root: Fields, rules: StrictRules) {
    this.#root = root
    this.#rules = rules
  }

  #countsFit(schema: Fields): boolean {
    if (Array.isArray(schema.type) || Array.isArray(schema.anyOf)) this.unionCount += 1
    this.#enumCount += asList(schema.enum).length
    return this.#enumCount <= this.#rules.maxEnumValues && this.#propertyCount <= this.#rules.maxProperties
  }

  #valuesFit({ enum: values, format, minItems, type }: Fields): boolean {
    const { formats, maxMinItems = noLimit } = this.#rules
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
    const requiredNames = new Set(asList(required))
    const optionalCount = names.filter((name) => !requiredNames.has(name)).length
    this.#propertyCount += names.length
    this.optionalCount += optionalCount
    return optionalCount === 0 || !this.#rules.requiresAllProperties
  }

  #referenceFits(reference: unknown, levels: number): boolean {
    const target = resolveLocal(this.#root, reference)
    if (target === undefined || this.#schemasOnPath.size > maxReferenceDepth) return false
    if (this.#schemasOnPath.has(target)) return this.#rules.allowsRecursion
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
    if (this.#validSchemas.has(schema)) return true
    if (!Object.keys(schema).every((name) => this.#rules.keywords.has(name))) return false
    const definesValue = ["type", "anyOf", "allOf", "$ref", "enum", "const"].some((name) => Object.hasOwn(schema, name))
    if (!definesValue || !this.#valuesFit(schema) || !this.#objectFits(schema) || !this.#countsFit(schema)) return false
    this.#schemasOnPath.add(schema)
    const isFitting = this.#membersFit(schema, levels)
    this.#schemasOnPath.delete(schema)
    if (isFitting) this.#validSchemas.add(schema)
    return isFitting
  }
}

/** Returns a function that decides whether the next schema of a request can be `strict`, within the vendor's limits. */
export const makeStrictBudget = (vendor: "openai" | "anthropic") => {
  const rules = strictRules[vendor]
  let [schemaCount, optionalCount, unionCount] = [0, 0, 0]
  return (schema: Fields): boolean => {
    if (schemaCount === rules.maxSchemas) return false
    const strict = new StrictSchema(schema, rules)
    if (!strict.fits(schema, rules.maxLevels)) return false
    if (optionalCount + strict.optionalCount > rules.maxOptionalProperties) return false
    if (unionCount + strict.unionCount > rules.maxUnions) return false
    schemaCount += 1
    optionalCount += strict.optionalCount
    unionCount += strict.unionCount
    return true
  }
}

type StrictBudget = (schema: Fields) => boolean

const strictBudgetOf = ({ strict }: WireRules): StrictBudget =>
  strict === "none" ? () => false : makeStrictBudget(strict)

/** Appends the removed constraints to a description, so the model still reads them. */
const describeLoss = (
  description: string | undefined,
  subject: string,
  { removed }: FittedRoot
): string | undefined => {
  if (removed === undefined) return description
  const rule = `${subject} must also match this JSON Schema: ${stringify(removed)}`
  return description === undefined || description === "" ? rule : `${description}\n\n${rule}`
}

const fitSchema = (
  original: Fields | undefined,
  kind: SchemaRoot,
  { requiresItems }: WireRules
): FittedRoot | undefined => {
  if (original === undefined) return kind === "properties" ? { schema: emptyParameters } : undefined
  if (kind === "any") return undefined
  const root = fitRoot(original, kind)
  const schema = repairSchema(root.schema, requiresItems)
  return schema === root.schema ? root : { ...root, schema }
}

const fitTool = (tool: Tool, rules: WireRules, name: string, canBeStrict: StrictBudget): Tool => {
  const definition = tool.function
  const root = fitSchema(definition.parameters, rules.toolRoot, rules)
  const parameters = root === undefined ? definition.parameters : root.schema
  const strict =
    definition.strict === true && !(parameters !== undefined && canBeStrict(parameters)) ? undefined : definition.strict
  if (name === definition.name && parameters === definition.parameters && strict === definition.strict) return tool
  const description =
    root === undefined ? definition.description : describeLoss(definition.description, "The arguments", root)
  return { ...tool, function: { ...definition, name, description, parameters, strict } }
}

/** Changes names, schema roots and `strict` of tools to what the wire format accepts. */
export const fitTools = (
  tools: ReadonlyArray<Tool>,
  rules: WireRules,
  names: ReadonlyMap<string, string> | undefined
): ReadonlyArray<Tool> => {
  if (tools.length === 0) return tools
  const canBeStrict = strictBudgetOf(rules)
  const fittedTools = tools.map((tool) =>
    fitTool(tool, rules, names?.get(tool.function.name) ?? tool.function.name, canBeStrict)
  )
  return fittedTools.every((tool, at) => tool === tools[at]) ? tools : fittedTools
}

/** Changes the schema of an answer to what the wire format accepts. */
export const fitAnswerFormat = (format: ResponseFormat, rules: WireRules): ResponseFormat => {
  if (format.type !== "json_schema") return format
  const jsonSchema = format.json_schema
  if (jsonSchema.schema === undefined) return format
  const root = fitSchema(jsonSchema.schema, rules.answerRoot, rules) ?? { schema: jsonSchema.schema }
  const { schema } = root
  const strict = jsonSchema.strict === true && !strictBudgetOf(rules)(schema) ? undefined : jsonSchema.strict
  if (schema === jsonSchema.schema && strict === jsonSchema.strict) return format
  const description = describeLoss(jsonSchema.description, "The answer", root)
  return { type: "json_schema", json_schema: { ...jsonSchema, description, schema, strict } }
}

type SchemaField = "input_schema" | "parameters" | "schema"

const fitDefinition = (
  definition: Fields,
  field: SchemaField,
  subject: string,
  kind: SchemaRoot,
  rules: WireRules
): Fields => {
  const schema = definition[field]
  const root = fitSchema(Predicate.isRecord(schema) ? schema : undefined, kind, rules)
  if (root === undefined || root.schema === schema) return definition
  const ownDescription = typeof definition.description === "string" ? definition.description : undefined
  const description = describeLoss(ownDescription, subject, root)
  return keepSource(definition, {
    ...definition,
    [field]: root.schema,
    ...(description !== undefined && { description }),
    ...(definition.strict === true && { strict: strictBudgetOf(rules)(root.schema) })
  })
}

/** Changes the schema of a tool in a native body to what the provider accepts. */
export const fitNativeTool = (tool: Fields, field: SchemaField, rules: WireRules): Fields =>
  fitDefinition(tool, field, "The arguments", rules.toolRoot, rules)

/** Changes the answer schema in a native body to what the provider accepts. */
export const fitNativeFormat = (format: Fields, rules: WireRules): Fields =>
  format.type === "json_schema" && Predicate.isRecord(format.schema)
    ? fitDefinition(format, "schema", "The answer", rules.answerRoot, rules)
    : format

/** Whether the wire format cannot express the answer schema that the client requests. */
export const declinesFormat = (format: ResponseFormat | undefined, { answerRoot }: WireRules): boolean =>
  format?.type === "json_schema" &&
  answerRoot !== "any" &&
  format.json_schema.schema !== undefined &&
  !canBeObject(format.json_schema.schema)

interface FittedRequest {
  readonly request: ChatRequest
  /** Restores the client's names in the answer. Undefined if no name was changed. */
  readonly names: ClientNames | undefined
}

const fitChoice = (choice: ToolChoice | undefined, names: ReadonlyMap<string, string> | undefined) => {
  const name = typeof choice === "object" ? names?.get(choice.function.name) : undefined
  return name === undefined ? choice : ({ type: "function", function: { name } } as const)
}

/** Changes a request to what a wire format accepts. Returns the same object if nothing has to change. */
export const fitRequest = (request: ChatRequest, rules: WireRules): FittedRequest => {
  const sentNames = fitNamesIn(request, rules)
  const turns = fitTurns(request.messages, rules, request.unpricedBreakpoints !== "all")
  const messages = fitEnds(fitCalls(turns, rules, sentNames), rules)
  const tools = fitTools(request.tools, rules, sentNames)
  const toolChoice = fitChoice(request.toolChoice, sentNames)
  const responseFormat = request.responseFormat && fitAnswerFormat(request.responseFormat, rules)
  const isSame =
    messages === request.messages &&
    tools === request.tools &&
    toolChoice === request.toolChoice &&
    responseFormat === request.responseFormat
  return {
    request: isSame ? request : { ...request, messages, tools, toolChoice, responseFormat },
    names: clientNames(sentNames)
  }
}
