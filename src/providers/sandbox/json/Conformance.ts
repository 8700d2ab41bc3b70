import { isDeepStrictEqual } from "node:util"
import { Predicate } from "effect"
import {
  dereference,
  isNode,
  listAt,
  type Node,
  namesAt,
  nodeAt,
  own,
  positions,
  propertySchema,
  type Run,
  spend,
  typesOf
} from "./JsonSchema.ts"

const maxDepth = 150

const hasType = (type: string, value: unknown): boolean => {
  if (type === "integer") return Number.isInteger(value)
  if (type === "null") return value === null
  if (type === "array") return Array.isArray(value)
  if (type === "object") return isNode(value)
  return typeof value === type
}

const numberAt = (node: Node, key: string, otherwise: number): number => {
  const value = own(node, key)
  return typeof value === "number" ? value : otherwise
}

const isWithin = (value: number, node: Node, least: string, most: string): boolean =>
  value >= numberAt(node, least, value) && value <= numberAt(node, most, value)

const partsOf = (value: unknown): number => (Predicate.isObject(value) ? JSON.stringify(value).length >> 2 : 1)

/** Ignores `format` and patterns, and is true once the run's steps are spent. */
export const conforms = (run: Run, schema: unknown, value: unknown, depth = 0): boolean => {
  if (schema === false) return false
  if (!isNode(schema) || !spend(run, 1) || depth > maxDepth) return true
  return (
    isListed(run, schema, value) &&
    isShaped(run, schema, value, depth + 1) &&
    isAllowed(run, schema, (other) => conforms(run, other, value, depth + 1))
  )
}

const isListed = (run: Run, schema: Node, value: unknown): boolean => {
  const types = typesOf(schema)
  if (types?.some((type) => hasType(type, value)) === false) return own(schema, "nullable") === true && value === null
  const constant = Object.hasOwn(schema, "const") ? [[own(schema, "const")]] : []
  const choices = Object.hasOwn(schema, "enum") ? [listAt(run, schema, "enum")] : []
  return [...constant, ...choices].every((allowed) => {
    if (typeof value === "string") spend(run, (allowed.length >> 3) * (1 + (value.length >> 8)))
    if (allowed.includes(value) || !Predicate.isObject(value)) return allowed.includes(value)
    return !spend(run, allowed.length * partsOf(value)) || allowed.some((other) => isDeepStrictEqual(other, value))
  })
}

const isShaped = (run: Run, schema: Node, value: unknown, depth: number): boolean => {
  if (typeof value === "number") return isNumber(schema, value)
  if (typeof value === "string") return isText(run, schema, value)
  if (Array.isArray(value)) return isArray(run, schema, value, depth)
  return !isNode(value) || isObject(run, schema, value, depth)
}

const isNumber = (schema: Node, value: number): boolean => {
  const step = numberAt(schema, "multipleOf", 0)
  return (
    isWithin(value, schema, "minimum", "maximum") &&
    value > numberAt(schema, "exclusiveMinimum", Number.NEGATIVE_INFINITY) &&
    value < numberAt(schema, "exclusiveMaximum", Number.POSITIVE_INFINITY) &&
    (step === 0 || Number.isInteger(value / step))
  )
}

const isText = (run: Run, schema: Node, value: string): boolean => {
  if (!Object.hasOwn(schema, "minLength") && !Object.hasOwn(schema, "maxLength")) return true
  spend(run, value.length >> 3)
  return isWithin(Array.from(value).length, schema, "minLength", "maxLength")
}

const isArray = (run: Run, schema: Node, value: ReadonlyArray<unknown>, depth: number): boolean => {
  if (!isWithin(value.length, schema, "minItems", "maxItems")) return false
  if (own(schema, "uniqueItems") === true) {
    const texts = new Set(value.map((item) => JSON.stringify(item)))
    for (const text of texts) spend(run, 1 + (text.length >> 4))
    if (texts.size < value.length) return false
  }
  const { prefix, rest } = positions(run, schema)
  if (!value.every((item, at) => conforms(run, at < prefix.length ? prefix[at] : rest, item, depth))) return false
  if (!Object.hasOwn(schema, "contains")) return true
  const held = value.filter((item) => conforms(run, own(schema, "contains"), item, depth)).length
  return held >= numberAt(schema, "minContains", 1) && held <= numberAt(schema, "maxContains", held)
}

const isObject = (run: Run, schema: Node, value: Node, depth: number): boolean => {
  const names = Object.keys(value)
  spend(run, names.length >> 1)
  const hasAll = (needed: ReadonlyArray<string>) => needed.every((name) => Object.hasOwn(value, name))
  return (
    isWithin(names.length, schema, "minProperties", "maxProperties") &&
    hasAll(namesAt(run, schema, "required")) &&
    names.every(
      (name) =>
        conforms(run, propertySchema(run, schema, name), value[name], depth) &&
        conforms(run, own(schema, "propertyNames"), name, depth) &&
        hasAll(namesAt(run, nodeAt(schema, "dependentRequired"), name)) &&
        conforms(run, own(nodeAt(schema, "dependentSchemas"), name), value, depth)
    )
  )
}

const isAllowed = (run: Run, schema: Node, holds: (schema: unknown) => boolean): boolean => {
  if (!dereference(run, schema).every(holds) || !listAt(run, schema, "allOf").every(holds)) return false
  if (Object.hasOwn(schema, "anyOf") && !listAt(run, schema, "anyOf").some(holds)) return false
  if (Object.hasOwn(schema, "oneOf") && listAt(run, schema, "oneOf").filter(holds).length !== 1) return false
  if (Object.hasOwn(schema, "not") && holds(own(schema, "not")) && run.steps > 0) return false
  return !Object.hasOwn(schema, "if") || holds(own(schema, holds(own(schema, "if")) ? "then" : "else"))
}
