import { Predicate } from "effect"
import {
  dereference,
  isNode,
  listAt,
  type Node,
  namesAt,
  namesOf,
  nodeAt,
  numberAt,
  own,
  positions,
  propertySchema,
  type Run,
  spend,
  typesOf
} from "./JsonSchema.ts"

const maxDepth = 150

const equal = (run: Run, left: unknown, right: unknown, depth = 0): boolean => {
  if (left === right) return true
  if (!spend(run, 1) || depth > maxDepth) return false
  if (Array.isArray(left)) {
    return (
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((item, at) => equal(run, item, right[at], depth + 1))
    )
  }
  if (!isNode(left) || !isNode(right)) return false
  const names = namesOf(run, left)
  return (
    names.length === namesOf(run, right).length &&
    names.every((name) => Object.hasOwn(right, name) && equal(run, left[name], right[name], depth + 1))
  )
}

const hasType = (type: string, value: unknown): boolean => {
  if (type === "integer") return Number.isInteger(value)
  if (type === "null") return value === null
  if (type === "array") return Array.isArray(value)
  if (type === "object") return isNode(value)
  return typeof value === type
}

const isWithin = (value: number, node: Node, least: string, most: string): boolean =>
  value >= (numberAt(node, least) ?? value) && value <= (numberAt(node, most) ?? value)

/**
 * Whether `value` satisfies `schema`, apart from `format`, `pattern` and the patterns of `patternProperties`. True as
 * well once the run's steps are spent: then the value is as good as it gets.
 */
export const conforms = (run: Run, schema: unknown, value: unknown, depth = 0): boolean => {
  if (schema === false) return false
  if (!isNode(schema) || !spend(run, 1) || depth > maxDepth) return true
  const holds = (other: unknown): boolean => conforms(run, other, value, depth + 1)
  return isListed(run, schema, value) && isShaped(run, schema, value, depth) && isAllowed(run, schema, holds)
}

const isListed = (run: Run, schema: Node, value: unknown): boolean => {
  const types = typesOf(schema)
  if (types?.some((type) => hasType(type, value)) === false) return own(schema, "nullable") === true && value === null
  if (Object.hasOwn(schema, "const") && !equal(run, own(schema, "const"), value)) return false
  if (!Object.hasOwn(schema, "enum")) return true
  const choices = listAt(run, schema, "enum")
  if (typeof value === "string") spend(run, (choices.length >> 3) * (1 + (value.length >> 8)))
  return choices.includes(value) || (Predicate.isObject(value) && choices.some((choice) => equal(run, choice, value)))
}

const isShaped = (run: Run, schema: Node, value: unknown, depth: number): boolean => {
  if (typeof value === "number") return isNumber(schema, value)
  if (typeof value === "string") return isText(run, schema, value)
  if (Array.isArray(value)) return isArray(run, schema, value, depth)
  return isNode(value) ? isObject(run, schema, value, depth) : true
}

const isNumber = (schema: Node, value: number): boolean => {
  const step = numberAt(schema, "multipleOf")
  return (
    isWithin(value, schema, "minimum", "maximum") &&
    value > (numberAt(schema, "exclusiveMinimum") ?? Number.NEGATIVE_INFINITY) &&
    value < (numberAt(schema, "exclusiveMaximum") ?? Number.POSITIVE_INFINITY) &&
    (step === undefined || Number.isInteger(value / step))
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
  const holds = (item: unknown, at: number): boolean =>
    conforms(run, at < prefix.length ? prefix[at] : rest, item, depth + 1)
  if (!value.every(holds)) return false
  if (!Object.hasOwn(schema, "contains")) return true
  const held = value.filter((item) => conforms(run, own(schema, "contains"), item, depth + 1)).length
  return held >= (numberAt(schema, "minContains") ?? 1) && held <= (numberAt(schema, "maxContains") ?? held)
}

const isObject = (run: Run, schema: Node, value: Node, depth: number): boolean => {
  const names = Object.keys(value)
  spend(run, names.length >> 1)
  if (!isWithin(names.length, schema, "minProperties", "maxProperties")) return false
  if (!namesAt(run, schema, "required").every((name) => Object.hasOwn(value, name))) return false
  return names.every(
    (name) =>
      conforms(run, propertySchema(run, schema, name), value[name], depth + 1) &&
      conforms(run, own(schema, "propertyNames"), name, depth + 1) &&
      namesAt(run, nodeAt(schema, "dependentRequired"), name).every((other) => Object.hasOwn(value, other)) &&
      conforms(run, own(nodeAt(schema, "dependentSchemas"), name), value, depth + 1)
  )
}

const isAllowed = (run: Run, schema: Node, holds: (schema: unknown) => boolean): boolean => {
  if (!dereference(run, schema).every(holds) || !listAt(run, schema, "allOf").every(holds)) return false
  if (Object.hasOwn(schema, "anyOf") && !listAt(run, schema, "anyOf").some(holds)) return false
  if (Object.hasOwn(schema, "oneOf") && listAt(run, schema, "oneOf").filter(holds).length !== 1) return false
  if (Object.hasOwn(schema, "not") && holds(own(schema, "not")) && run.steps > 0) return false
  return !Object.hasOwn(schema, "if") || holds(own(schema, holds(own(schema, "if")) ? "then" : "else"))
}
