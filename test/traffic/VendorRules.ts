/** What vendors refuse, as public reports quote it: the hosts of the cases refuse it too. Each rule has a name. */

import { Predicate } from "effect"
import { list, record, records, string } from "../contracts/ChatHosts.ts"
import type { ChatWireName as Wire } from "./Case.ts"
import { rulesOn, turnDemands, turnRules } from "./VendorTurns.ts"

type Fields = Record<PropertyKey, unknown>
type Rule = (body: Fields, text: string) => ReadonlyArray<string>

interface NamedTool {
  readonly name: string
  readonly schema: unknown
  readonly strict: boolean
}

/** The tools of a request on each wire, those of the vendor itself left out. */
const toolsOn: Readonly<Record<Wire, (body: Fields) => ReadonlyArray<NamedTool>>> = {
  "openai-chat": ({ tools }) =>
    records(tools)
      .filter(({ type }) => type === "function")
      .map(({ function: given }) => toolOf(record(given), "parameters")),
  "openai-responses": ({ tools }) =>
    records(tools)
      .filter(({ type }) => type === "function")
      .map((tool) => toolOf(tool, "parameters")),
  anthropic: ({ tools }) =>
    records(tools)
      .filter(({ type }) => type === undefined || type === "custom")
      .map((tool) => toolOf(tool, "input_schema")),
  gemini: ({ tools }) =>
    records(tools)
      .flatMap(({ functionDeclarations }) => records(functionDeclarations))
      .map((tool) => toolOf(tool, "parametersJsonSchema"))
}

const toolOf = (tool: Fields, field: string): NamedTool => {
  return { name: string(tool.name), schema: tool[field], strict: tool.strict === true }
}

export const toolNamesOn = (wire: Wire, body: unknown): ReadonlyArray<string> =>
  toolsOn[wire](record(body)).map(({ name }) => name)

/** Names in the history and in the choice of a tool. */
const otherNamesOn: Readonly<Record<Wire, (body: Fields) => ReadonlyArray<unknown>>> = {
  "openai-chat": ({ messages, tool_choice }) => [
    ...records(messages).flatMap(({ tool_calls }) => records(tool_calls).map(({ function: of }) => record(of).name)),
    ...namesOf(record(record(tool_choice).function).name)
  ],
  "openai-responses": ({ input, tool_choice }) => [
    ...records(input).flatMap(({ name, type }) => (type === "function_call" ? [name] : [])),
    ...namesOf(record(tool_choice).name)
  ],
  anthropic: ({ messages, tool_choice }) => [
    ...records(messages).flatMap(({ content }) =>
      records(content).flatMap(({ name, type }) => (type === "tool_use" ? [name] : []))
    ),
    ...namesOf(record(tool_choice).name)
  ],
  gemini: ({ contents, toolConfig }) => [
    ...records(contents).flatMap(({ parts }) =>
      records(parts).flatMap(({ functionCall, functionResponse }) =>
        namesOf(record(functionCall ?? functionResponse).name)
      )
    ),
    ...list(record(record(toolConfig).functionCallingConfig).allowedFunctionNames)
  ]
}

const namesOf = (name: unknown) => (name === undefined ? [] : [name])

const chosenOn: Readonly<Record<Wire, (body: Fields) => ReadonlyArray<unknown>>> = {
  "openai-chat": ({ tool_choice }) => namesOf(record(record(tool_choice).function).name),
  "openai-responses": ({ tool_choice }) => namesOf(record(tool_choice).name),
  anthropic: ({ tool_choice }) => namesOf(record(tool_choice).name),
  gemini: ({ toolConfig }) => list(record(record(toolConfig).functionCallingConfig).allowedFunctionNames)
}

const namePatterns: Readonly<Record<Wire, RegExp>> = {
  "openai-chat": /^[a-zA-Z0-9_-]{1,64}$/,
  "openai-responses": /^[a-zA-Z0-9_-]{1,64}$/,
  anthropic: /^[a-zA-Z0-9_-]{1,128}$/,
  gemini: /^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$/
}

/** At the root of a schema of a tool. */
const rootWords = ["anyOf", "oneOf", "allOf", "not", "enum", "$ref"]
const isOpenAi = (wire: Wire) => wire === "openai-chat" || wire === "openai-responses"

/** What no draft of JSON Schema that vendors know says so, at any depth. */
const formProblems = (wire: Wire, schema: unknown): ReadonlyArray<string> =>
  allIn(record(schema)).flatMap(({ exclusiveMinimum, items, required, type }) => [
    ...(required === undefined || Array.isArray(required)
      ? []
      : [`${JSON.stringify(required)} is not of type 'array'`]),
    ...(typeof exclusiveMinimum === "boolean" ? [`${String(exclusiveMinimum)} is not of type 'number'`] : []),
    ...(isOpenAi(wire) && type === "array" && items === undefined ? ["array schema missing items."] : [])
  ])

const schemaProblems = (wire: Wire, tool: NamedTool): ReadonlyArray<string> => [
  ...rootProblems(wire, tool),
  ...formProblems(wire, tool.schema).map((problem) => `Invalid schema for function '${tool.name}': ${problem}`)
]

const rootProblems = (wire: Wire, { name, schema }: NamedTool): ReadonlyArray<string> => {
  if (wire === "gemini") return []
  if (isOpenAi(wire) && schema === undefined) return []
  const root = record(schema)
  if (root.type !== "object") return [`Invalid schema for function '${name}': schema must be of type 'object'`]
  const words = rootWords.filter((word) => root[word] !== undefined)
  if (words.length > 0) return [`Invalid schema for function '${name}': ${words.join(", ")} at the top level`]
  return isOpenAi(wire) && !Predicate.isRecord(root.properties)
    ? [`Invalid schema for function '${name}': In context=(), object schema missing properties.`]
    : []
}

const subschemas = (schema: Fields): ReadonlyArray<Fields> => [
  ...["properties", "$defs", "definitions"].flatMap((key) => Object.values(record(schema[key])).map(record)),
  ...["anyOf", "allOf", "oneOf"].flatMap((key) => records(schema[key])),
  ...(schema.items === undefined ? [] : [record(schema.items)])
]

/** This schema and all below it. */
const allIn = (schema: Fields): ReadonlyArray<Fields> => [schema, ...subschemas(schema).flatMap(allIn)]

const isObjectSchema = ({ properties, type }: Fields) =>
  type === "object" || list(type).includes("object") || properties !== undefined

const unsupportedByClaude = [
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "maxItems"
]

const unsupportedByOpenAi = [
  "allOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "dependentRequired",
  "dependentSchemas",
  "patternProperties"
]

/** Any of them says what a value is. */
const kinds = ["type", "anyOf", "$ref", "enum", "const"]

/** What a schema lacks for `strict: true`. */
const strictProblems = (wire: Wire, name: string, given: unknown): ReadonlyArray<string> =>
  allIn(record(given)).flatMap((schema) => {
    const open =
      isObjectSchema(schema) && schema.additionalProperties !== false
        ? [`${name}: 'additionalProperties' is required to be supplied and to be false`]
        : []
    if (wire === "anthropic") {
      const words = unsupportedByClaude.filter((word) => schema[word] !== undefined)
      return [
        ...open,
        ...words.map((word) => `${name}: For '${String(schema.type)}' type, property '${word}' is not supported`)
      ]
    }
    const required = list(schema.required)
    const words = unsupportedByOpenAi.filter((word) => schema[word] !== undefined)
    const isAnything = kinds.every((word) => schema[word] === undefined)
    const missing = Object.keys(record(schema.properties)).filter((key) => !required.includes(key))
    return [
      ...open,
      ...words.map((word) => `${name}: '${word}' is not permitted`),
      ...(isAnything ? [`${name}: schema must have a 'type' key`] : []),
      ...missing.map((key) => `${name}: 'required' is required to include every key in properties. Missing '${key}'`)
    ]
  })

const formatOn = (wire: Wire, body: Fields) => {
  const format =
    wire === "openai-chat" ? record(record(body.response_format).json_schema) : record(record(body.text).format)
  return isOpenAi(wire) && format.schema !== undefined ? format : undefined
}

const formatProblems = (wire: Wire, body: Fields): ReadonlyArray<string> => {
  const format = formatOn(wire, body)
  if (format === undefined) return []
  const root = record(format.schema)
  const words = rootWords.filter((word) => word !== "$ref" && root[word] !== undefined)
  return [
    ...(root.type === "object" ? [] : ["Invalid schema for response_format: schema must be of type 'object'"]),
    ...words.map((word) => `Invalid schema for response_format: ${word} at the top level`),
    ...(format.strict === true ? strictProblems(wire, "response_format", format.schema) : [])
  ]
}

const repeated = (names: ReadonlyArray<string>) => names.filter((name, at) => names.indexOf(name) !== at)

/** Rules by their names, which a case can waive. */
const rules: Readonly<Record<string, (wire: Wire) => Rule>> = {
  names: (wire) => (body) =>
    [...toolNamesOn(wire, body), ...otherNamesOn[wire](body)]
      .filter((name) => typeof name !== "string" || !namePatterns[wire].test(name))
      .map((name) => `invalid tool name: ${String(name)}`),
  unique: (wire) => (body) => repeated(toolNamesOn(wire, body)).map((name) => `Tool names must be unique: ${name}`),
  choice: (wire) => (body) =>
    chosenOn[wire](body)
      .filter((name) => !toolNamesOn(wire, body).includes(String(name)))
      .map((name) => `Tool choice '${String(name)}' not found in 'tools'`),
  schemas: (wire) => (body) => toolsOn[wire](body).flatMap((tool) => schemaProblems(wire, tool)),
  strict: (wire) => (body) =>
    toolsOn[wire](body).flatMap(({ name, schema, strict }) => (strict ? strictProblems(wire, name, schema) : [])),
  format: (wire) => (body) => formatProblems(wire, body),
  surrogates: () => (_, text) =>
    /\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}/.test(
      text
    )
      ? ["invalid JSON: lone surrogate"]
      : []
}

/** Turns as a client of any wire wrote them. */
const lastRole = ({ contents, input, messages }: Fields): unknown => {
  const { role, type } = records(messages ?? contents ?? input).at(-1) ?? {}
  return type === "function_call" ? "assistant" : role === "model" ? "assistant" : role
}

/** Those of some models and hosts, which a case demands by name. They hold for native bodies, too. */
const demands: Readonly<Record<string, (wire: Wire) => Rule>> = {
  prefill: () => (body) =>
    lastRole(body) === "assistant" ? ["This model does not support assistant message prefill."] : []
}

/** What a host of the wire refuses of a request; a client's own body on its vendor's wire is the client's affair. */
export const refusedBy = (
  wire: Wire,
  body: unknown,
  text: string,
  {
    demands: extra = [],
    isNative,
    waives = []
  }: {
    readonly isNative: boolean
    readonly waives?: ReadonlyArray<string>
    readonly demands?: ReadonlyArray<string>
  }
): ReadonlyArray<string> => {
  const all = [...Object.entries(rules).map(([name, rule]) => [name, rule(wire)] as const), ...rulesOn(wire, turnRules)]
  const usual = all
    .filter(([name]) => !waives.includes(name) && (!isNative || name === "surrogates"))
    .map(([, rule]) => rule)
  const unusual = extra.map((name) => {
    const known = { ...turnRules, ...turnDemands }
    const rule = demands[name]?.(wire) ?? rulesOn(wire, known).find(([of]) => of === name)?.[1]
    if (rule === undefined && !(name in known)) throw new Error(`no such rule: ${name}`)
    return rule === undefined ? [] : [rule]
  })
  return [...usual, ...unusual.flat()].flatMap((rule) => rule(record(body), text))
}
