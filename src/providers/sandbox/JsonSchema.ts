import { Predicate } from "effect"
import { type Pattern, parse } from "./Pattern.ts"
import { type Budget, matches } from "./PatternText.ts"

export type Node = Readonly<Record<string, unknown>>

/** One document's schema with what is spent on it. */
export interface Document {
  readonly root: unknown
  readonly budget: Budget
  readonly patterns: Map<string, Pattern | undefined>
}

export const isNode = (value: unknown): value is Node => Predicate.isRecord(value)

/** A keyword of the schema itself, never one of the prototype's. */
export const own = (node: Node, key: string): unknown => (Object.hasOwn(node, key) ? node[key] : undefined)
export const listAt = (node: Node, key: string): ReadonlyArray<unknown> => {
  const value = own(node, key)
  return Array.isArray(value) ? value : []
}
export const namesAt = (node: Node, key: string): ReadonlyArray<string> => listAt(node, key).filter(Predicate.isString)
export const nodeAt = (node: Node, key: string): Node => {
  const value = own(node, key)
  return isNode(value) ? value : {}
}
export const numberAt = (node: Node, key: string): number | undefined => {
  const value = own(node, key)
  return typeof value === "number" ? value : undefined
}
export const stringAt = (node: Node, key: string): string | undefined => {
  const value = own(node, key)
  return typeof value === "string" ? value : undefined
}

/** The types a schema names; undefined where it names none. */
export const typesOf = (node: Node): ReadonlyArray<string> | undefined => {
  const type = own(node, "type")
  if (typeof type === "string") return [type]
  return Array.isArray(type) ? type.filter(Predicate.isString) : undefined
}

/** Schemas by position, and the one for the rest, in the old spelling and the new. */
export const positions = (node: Node): { readonly prefix: ReadonlyArray<unknown>; readonly rest: unknown } => {
  const items = own(node, "items")
  if (Array.isArray(items)) return { prefix: items, rest: own(node, "additionalItems") }
  return { prefix: listAt(node, "prefixItems"), rest: items }
}

/** What a reference inside the document means; true, which allows everything, where it leads nowhere. */
export const resolve = ({ root }: Document, reference: string): unknown => {
  const [, pointer] = /^#((?:\/[^/]*)*)$/.exec(reference) ?? []
  if (pointer === undefined) return true
  let found = root
  for (const step of pointer.split("/").slice(1)) {
    const key = decoded(step).replaceAll("~1", "/").replaceAll("~0", "~")
    if (Array.isArray(found)) found = found[Number(key)]
    else found = isNode(found) ? own(found, key) : undefined
  }
  return found ?? true
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

export const referenceIn = (node: Node): string | undefined =>
  stringAt(node, "$ref") ?? stringAt(node, "$dynamicRef") ?? stringAt(node, "$recursiveRef")

export const patternOf = ({ patterns }: Document, source: string): Pattern | undefined => {
  if (!patterns.has(source)) patterns.set(source, parse(source))
  return patterns.get(source)
}

/** Whether `text` matches; true where the pattern is not understood. */
export const fits = (document: Document, source: string, text: string): boolean => {
  const pattern = patternOf(document, source)
  return pattern === undefined || matches(pattern, text, document.budget)
}

/** The schemas that hold for one property of an object. */
export const propertySchemas = (document: Document, node: Node, name: string): ReadonlyArray<unknown> => {
  const properties = nodeAt(node, "properties")
  const named = Object.hasOwn(properties, name) ? [properties[name]] : []
  const matched = Object.entries(nodeAt(node, "patternProperties")).flatMap(([source, schema]) =>
    fits(document, source, name) ? [schema] : []
  )
  const found = [...named, ...matched]
  const rest = own(node, "additionalProperties")
  return found.length === 0 && rest !== undefined ? [rest] : found
}
