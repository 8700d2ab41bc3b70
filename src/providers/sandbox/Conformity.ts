import { hasFormat } from "./Formats.ts"
import {
  type Document,
  fits,
  isNode,
  listAt,
  type Node,
  namesAt,
  nodeAt,
  numberAt,
  own,
  positions,
  propertySchemas,
  referenceIn,
  resolve,
  stringAt,
  typesOf
} from "./JsonSchema.ts"

const deepest = 150

const equal = (left: unknown, right: unknown, depth = 0): boolean => {
  if (depth > deepest) return false
  if (Array.isArray(left)) {
    return (
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((item, at) => equal(item, right[at], depth + 1))
    )
  }
  if (!isNode(left) || !isNode(right)) return left === right
  const keys = Object.keys(left)
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && equal(left[key], right[key], depth + 1))
  )
}

const isOf = (type: string, value: unknown): boolean => {
  if (type === "integer") return Number.isInteger(value)
  if (type === "null") return value === null
  if (type === "array") return Array.isArray(value)
  if (type === "object") return isNode(value)
  return typeof value === type
}

const below = (value: number, limit: number | undefined): boolean => limit === undefined || value <= limit
const above = (value: number, limit: number | undefined): boolean => limit === undefined || value >= limit

/**
 * Whether `value` satisfies `schema`, a `format` by its looks. True as well once the document's budget is spent: then
 * the value is as good as it gets.
 */
export const conforms = (document: Document, schema: unknown, value: unknown, depth = 0): boolean => {
  if (schema === false) return false
  if (!isNode(schema)) return true
  document.budget.steps -= 1
  if (document.budget.steps <= 0 || depth > deepest) return true
  const holds = (other: unknown): boolean => conforms(document, other, value, depth + 1)
  return combined(document, schema, holds) && listed(document, schema, value) && shaped(document, schema, value, depth)
}

const combined = (document: Document, schema: Node, holds: (schema: unknown) => boolean): boolean => {
  const reference = referenceIn(schema)
  if (reference !== undefined && !holds(resolve(document, reference))) return false
  if (!listAt(schema, "allOf").every(holds)) return false
  if (Object.hasOwn(schema, "anyOf") && !listAt(schema, "anyOf").some(holds)) return false
  if (Object.hasOwn(schema, "oneOf") && listAt(schema, "oneOf").filter(holds).length !== 1) return false
  if (Object.hasOwn(schema, "not") && holds(own(schema, "not")) && document.budget.steps > 0) return false
  if (!Object.hasOwn(schema, "if")) return true
  return holds(own(schema, holds(own(schema, "if")) ? "then" : "else") ?? true)
}

const listed = (document: Document, schema: Node, value: unknown): boolean => {
  const types = typesOf(schema)
  if (types !== undefined && !types.some((type) => isOf(type, value))) {
    return own(schema, "nullable") === true && value === null
  }
  if (Object.hasOwn(schema, "const") && !equal(own(schema, "const"), value)) return false
  const choices = listAt(schema, "enum")
  document.budget.steps -= choices.length >> 2
  return !Object.hasOwn(schema, "enum") || choices.some((choice) => equal(choice, value))
}

const shaped = (document: Document, schema: Node, value: unknown, depth: number): boolean => {
  if (typeof value === "number") return numeric(schema, value)
  if (typeof value === "string") return textual(document, schema, value)
  if (Array.isArray(value)) return arrayed(document, schema, value, depth)
  return isNode(value) ? keyed(document, schema, value, depth) : true
}

const numeric = (schema: Node, value: number): boolean => {
  const [over, under] = [numberAt(schema, "exclusiveMinimum"), numberAt(schema, "exclusiveMaximum")]
  const step = numberAt(schema, "multipleOf")
  return (
    above(value, numberAt(schema, "minimum")) &&
    below(value, numberAt(schema, "maximum")) &&
    (over === undefined || value > over) &&
    (under === undefined || value < under) &&
    (step === undefined || Number.isInteger(value / step))
  )
}

const textual = (document: Document, schema: Node, value: string): boolean => {
  const length = Array.from(value).length
  const pattern = stringAt(schema, "pattern")
  const format = stringAt(schema, "format")
  return (
    above(length, numberAt(schema, "minLength")) &&
    below(length, numberAt(schema, "maxLength")) &&
    (format === undefined || hasFormat(format, value)) &&
    (pattern === undefined || fits(document, pattern, value))
  )
}

const arrayed = (document: Document, schema: Node, value: ReadonlyArray<unknown>, depth: number): boolean => {
  const { prefix, rest } = positions(schema)
  if (!above(value.length, numberAt(schema, "minItems")) || !below(value.length, numberAt(schema, "maxItems"))) {
    return false
  }
  if (own(schema, "uniqueItems") === true && new Set(value.map((item) => JSON.stringify(item))).size < value.length) {
    return false
  }
  const each = value.every((item, at) => conforms(document, at < prefix.length ? prefix[at] : rest, item, depth + 1))
  if (!each || !Object.hasOwn(schema, "contains")) return each
  const held = value.filter((item) => conforms(document, own(schema, "contains"), item, depth + 1)).length
  return above(held, numberAt(schema, "minContains") ?? 1) && below(held, numberAt(schema, "maxContains"))
}

const keyed = (document: Document, schema: Node, value: Node, depth: number): boolean => {
  const names = Object.keys(value)
  const required = namesAt(schema, "required")
  document.budget.steps -= required.length >> 3
  if (!above(names.length, numberAt(schema, "minProperties"))) return false
  if (!below(names.length, numberAt(schema, "maxProperties"))) return false
  if (!required.every((name) => Object.hasOwn(value, name))) return false
  return names.every(
    (name) =>
      propertySchemas(document, schema, name).every((each) => conforms(document, each, value[name], depth + 1)) &&
      conforms(document, own(schema, "propertyNames"), name, depth + 1) &&
      namesAt(nodeAt(schema, "dependentRequired"), name).every((other) => Object.hasOwn(value, other)) &&
      conforms(document, own(nodeAt(schema, "dependentSchemas"), name), value, depth + 1)
  )
}
