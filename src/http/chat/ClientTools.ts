import { createHash } from "node:crypto"
import { Schema } from "effect"
import { NonEmptyString, optional } from "../../domain/Constraints.ts"
import { isArray, isNonEmptyString, isObject, isOneOf, type JsonObject } from "../body/Guards.ts"
import { otherThan, typesOf } from "../schema/SharedFields.ts"
import { CallableType, formatName, functionFields, grammarFields, isNamedBy, TextFormat } from "./ChatTools.ts"

const FunctionTool = Schema.Struct({
  type: Schema.Literal("function"),
  ...functionFields(NonEmptyString)
}).annotations({ identifier: "ResponsesFunctionTool" })

const CustomTool = Schema.Struct({
  type: Schema.Literal("custom"),
  name: NonEmptyString,
  description: optional(Schema.String),
  format: optional(Schema.Union(TextFormat, Schema.Struct({ type: Schema.Literal("grammar"), ...grammarFields })))
}).annotations({ identifier: "ResponsesCustomTool", description: "A tool whose input is free text." })

const NamespaceTool = Schema.Struct({
  type: Schema.Literal("namespace"),
  name: NonEmptyString,
  description: optional(Schema.String),
  tools: Schema.Array(Schema.Union(FunctionTool, CustomTool))
}).annotations({ identifier: "ResponsesNamespaceTool" })

const HostedTool = Schema.Struct({ type: otherThan(...typesOf(FunctionTool, CustomTool, NamespaceTool)) }).annotations({
  identifier: "ResponsesHostedTool",
  description: "A tool that the provider runs or knows, such as `web_search`, `tool_search` or `local_shell`."
})

/** The tools of a Responses body, in `tools` and within `input`. */
export const ClientToolsField = Schema.Array(Schema.Union(FunctionTool, CustomTool, NamespaceTool, HostedTool))

/** A tool as its client names it. */
export interface ClientTool {
  readonly name: string
  readonly namespace?: string | undefined
  readonly isCustom: boolean
}

interface DeclaredTool {
  /** The path in the body, such as `tools[2]`. */
  readonly path: string
  readonly definition: JsonObject
  readonly namespace: string | undefined
}

function* listTools(tools: unknown, path: string, namespace?: string): Generator<DeclaredTool> {
  if (!isArray(tools)) return
  for (const [index, definition] of tools.entries()) {
    if (!isObject(definition)) continue
    const toolPath = `${path}[${index}]`
    if (definition.type === "namespace") {
      const { tools: _, ...namespaceDefinition } = definition
      yield { path: toolPath, definition: namespaceDefinition, namespace: undefined }
      yield* listTools(
        definition.tools,
        `${toolPath}.tools`,
        isNonEmptyString(definition.name) ? definition.name : undefined
      )
    } else yield { path: toolPath, definition, namespace }
  }
}

/** Returns whether an item of `input` contains tools. */
export const addsTools = ({ type }: JsonObject): boolean => type === "additional_tools" || type === "tool_search_output"

/** Lists every tool and namespace of a body, in `tools` and within `input`. */
export function* listDeclaredTools({ input, tools }: JsonObject): Generator<DeclaredTool> {
  yield* listTools(tools, "tools")
  if (!isArray(input)) return
  for (const [index, item] of input.entries()) {
    if (isObject(item) && addsTools(item)) yield* listTools(item.tools, `input[${index}].tools`)
  }
}

const flatten = (name: string, namespace: string | undefined): string => {
  if (namespace === undefined) return name
  return namespace.endsWith("__") ? namespace + name : `${namespace}__${name}`
}

/**
 * The names of functions for a request without namespaces of tools. They need no table, because each follows from the
 * name of its tool.
 */
export const flatNames = { toFunctionName: flatten }

const maxLength = 64
const hashLength = 8

const shorten = (name: string, hashInput = name): string => {
  const hash = createHash("sha256").update(hashInput).digest("hex").slice(0, hashLength)
  return `${name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, maxLength - hashLength - 1)}_${hash}`
}

/** Returns a unique key. A flat name is not unique: `b__c` in `a` has the same one as `c` in `a__b`. */
const makeKey = (name: string, namespace: string | undefined): string => JSON.stringify([namespace, name])

/** Maps a client's tools to functions, whose names have no namespace and at most 64 characters. */
export class ToolNames {
  readonly #functions = new Map<string, string>()
  readonly #tools = new Map<string, ClientTool>()

  /** Adds a tool. Returns the name of its function, or undefined if the tool was already declared. */
  declare({ definition: { name, type }, namespace }: DeclaredTool): string | undefined {
    if (!isNonEmptyString(name)) return undefined
    const key = makeKey(name, namespace)
    if (this.#functions.has(key)) return undefined
    const flatName = this.toFunctionName(name, namespace)
    const functionName = this.#tools.has(flatName) ? shorten(flatName, key) : flatName
    this.#functions.set(key, functionName)
    this.#tools.set(functionName, { name, namespace, isCustom: type === "custom" })
    return functionName
  }

  toFunctionName(name: string, namespace: string | undefined): string {
    const functionName = this.#functions.get(makeKey(name, namespace))
    if (functionName !== undefined) return functionName
    const flat = flatten(name, namespace)
    return isNamedBy(formatName, flat) ? flat : shorten(flat)
  }

  findClientTool(functionName: string): ClientTool {
    return this.#tools.get(functionName) ?? { name: functionName, isCustom: false }
  }
}

const isCallableType = isOneOf(...CallableType.literals)

export const isCallable = ({ type }: JsonObject): boolean => isCallableType(type)

export const makeToolNames = (body: JsonObject): ToolNames => {
  const names = new ToolNames()
  for (const tool of listDeclaredTools(body)) if (isCallable(tool.definition)) names.declare(tool)
  return names
}
