import { Predicate } from "effect"

type JsonSchema = Readonly<Record<PropertyKey, unknown>>

const typesOf = ({ type }: JsonSchema): ReadonlyArray<unknown> => (Array.isArray(type) ? type : [type])

/** Whether the type of a schema, if it has one, allows an object. */
export const mayBeObject = (schema: unknown): boolean =>
  Predicate.isRecord(schema) && typesOf(schema).some((type) => type === undefined || type === "object")

const pointerSteps = (pointer: string): ReadonlyArray<string> =>
  pointer.split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))

const decodePointer = (fragment: string): string => {
  try {
    return decodeURIComponent(fragment)
  } catch {
    return fragment
  }
}

const stepInto = (value: unknown, step: string): unknown =>
  typeof value === "object" && value !== null && Object.hasOwn(value, step) ? Reflect.get(value, step) : undefined

/** Returns the subschema that a `$ref` names, such as `#/$defs/user`; undefined if it is not in this document. */
export const resolveLocal = (root: JsonSchema, reference: unknown): JsonSchema | undefined => {
  if (reference === "#") return root
  if (typeof reference !== "string" || !reference.startsWith("#/")) return undefined
  const target = pointerSteps(decodePointer(reference.slice(2))).reduce(stepInto, root as unknown)
  return Predicate.isRecord(target) ? target : undefined
}

/** A limit, because nested references can multiply the visits exponentially. Beyond it `canBeObject` returns true. */
const maxVisits = 128

/** Whether a value of the schema can be an object. Unresolved and circular references count as objects. */
export const canBeObject = (root: JsonSchema): boolean => {
  let visits = 0
  const acceptsObject = (schema: unknown): boolean => {
    if (schema === true) return true
    if (!mayBeObject(schema) || !Predicate.isRecord(schema)) return false
    if (Array.isArray(schema.enum) && !schema.enum.some(Predicate.isRecord)) return false
    if (schema.const !== undefined && !Predicate.isRecord(schema.const)) return false
    visits += 1
    if (visits > maxVisits) return true
    const target = schema.$ref === undefined ? undefined : resolveLocal(root, schema.$ref)
    if (target !== undefined && !acceptsObject(target)) return false
    if (Array.isArray(schema.allOf) && !schema.allOf.every(acceptsObject)) return false
    return ["anyOf", "oneOf"].every((name) => {
      const branches = schema[name]
      return !Array.isArray(branches) || branches.length === 0 || branches.some(acceptsObject)
    })
  }
  return acceptsObject(root)
}
