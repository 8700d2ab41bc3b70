import { createHash } from "node:crypto"
import { Schema } from "effect"
import { Filled, optional } from "../../domain/Constraints.ts"
import { isArray, isFilled, isObject, isOneOf, type JsonObject } from "../body/Guards.ts"
import { otherThan, typesOf } from "../schema/SharedFields.ts"
import { CallableType, formatName, functionFields, grammarFields, isNamedBy, TextFormat } from "./ChatTools.ts"

const FunctionTool = Schema.Struct({
  type: Schema.Literal("function"),
  ...functionFields(Filled)
}).annotations({ identifier: "ResponsesFunctionTool" })

const CustomTool = Schema.Struct({
  type: Schema.Literal("custom"),
  name: Filled,
  description: optional(Schema.String),
  format: optional(Schema.Union(TextFormat, Schema.Struct({ type: Schema.Literal("grammar"), ...grammarFields })))
}).annotations({ identifier: "ResponsesCustomTool", description: "A tool whose input is free text." })

const NamespaceTool = Schema.Struct({
  type: Schema.Literal("namespace"),
  name: Filled,
  description: optional(Schema.String),
  tools: Schema.Array(Schema.Union(FunctionTool, CustomTool))
}).annotations({ identifier: "ResponsesNamespaceTool" })

const HostedTool = Schema.Struct({ type: otherThan(...typesOf(FunctionTool, CustomTool, NamespaceTool)) }).annotations({
  identifier: "ResponsesHostedTool",
  description: "Such as `web_search`, `tool_search` or `local_shell`."
})

/** The tools of a Responses body, in `tools` and among the input. */
export const ClientToolsField = Schema.Array(Schema.Union(FunctionTool, CustomTool, NamespaceTool, HostedTool))

/** A tool by the names that its client knows it by. */
export interface ClientTool {
  readonly name: string
  readonly namespace?: string | undefined
  readonly isCustom: boolean
}

interface DeclaredTool {
  /** In the body, such as `tools[2]`. */
  readonly path: string
  readonly definition: JsonObject
  readonly namespace: string | undefined
}

function* declaredIn(tools: unknown, path: string, namespace?: string): Generator<DeclaredTool> {
  if (!isArray(tools)) return
  for (const [index, definition] of tools.entries()) {
    if (!isObject(definition)) continue
    const at = `${path}[${index}]`
    if (definition.type === "namespace") {
      const { tools: _, ...own } = definition
      yield { path: at, definition: own, namespace: undefined }
      yield* declaredIn(definition.tools, `${at}.tools`, isFilled(definition.name) ? definition.name : undefined)
    } else yield { path: at, definition, namespace }
  }
}

/** Some clients send their tools among the input. */
export const addsTools = ({ type }: JsonObject): boolean => type === "additional_tools" || type === "tool_search_output"

/** Every tool and namespace of a body, whatever it is sent in. */
export function* declaredTools({ input, tools }: JsonObject): Generator<DeclaredTool> {
  yield* declaredIn(tools, "tools")
  if (!isArray(input)) return
  for (const [index, item] of input.entries()) {
    if (isObject(item) && addsTools(item)) yield* declaredIn(item.tools, `input[${index}].tools`)
  }
}

const flatten = (name: string, namespace: string | undefined): string => {
  if (namespace === undefined) return name
  return namespace.endsWith("__") ? namespace + name : `${namespace}__${name}`
}

/** The names of a client whose tools are all functions. */
export const flatNames = { functionOf: flatten }

const longest = 64
const hashLength = 8

const shorten = (name: string, hashed = name): string => {
  const hash = createHash("sha256").update(hashed).digest("hex").slice(0, hashLength)
  return `${name.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, longest - hashLength - 1)}_${hash}`
}

/** Two tools may have one flat name: `a` with `b__c`, and `a__b` with `c`. */
const keyOf = (name: string, namespace: string | undefined): string => JSON.stringify([namespace, name])

/** Functions have one flat space of names, each of at most 64 characters. */
export class ToolNames {
  readonly #functions = new Map<string, string>()
  readonly #tools = new Map<string, ClientTool>()

  /** The function's name; undefined: the tool is there already. */
  declare({ definition: { name, type }, namespace }: DeclaredTool): string | undefined {
    if (!isFilled(name)) return undefined
    const key = keyOf(name, namespace)
    if (this.#functions.has(key)) return undefined
    const own = this.functionOf(name, namespace)
    const functionName = this.#tools.has(own) ? shorten(own, key) : own
    this.#functions.set(key, functionName)
    this.#tools.set(functionName, { name, namespace, isCustom: type === "custom" })
    return functionName
  }

  functionOf(name: string, namespace: string | undefined): string {
    const known = this.#functions.get(keyOf(name, namespace))
    if (known !== undefined) return known
    const flat = flatten(name, namespace)
    return isNamedBy(formatName, flat) ? flat : shorten(flat)
  }

  clientTool(functionName: string): ClientTool {
    return this.#tools.get(functionName) ?? { name: functionName, isCustom: false }
  }
}

const isCallableType = isOneOf(...CallableType.literals)

export const isCallable = ({ type }: JsonObject): boolean => isCallableType(type)

export const toolNamesOf = (body: JsonObject): ToolNames => {
  const names = new ToolNames()
  for (const tool of declaredTools(body)) if (isCallable(tool.definition)) names.declare(tool)
  return names
}
