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

/** The subschema that a local reference means. */
export const resolveLocal = (root: JsonSchema, reference: unknown): JsonSchema | undefined => {
  if (reference === "#") return root
  if (typeof reference !== "string" || !reference.startsWith("#/")) return undefined
  const found = pointerSteps(decodePointer(reference.slice(2))).reduce(stepInto, root as unknown)
  return Predicate.isRecord(found) ? found : undefined
}

/** Parts may refer to each other in any number of ways. */
const maxVisits = 128

/** Whether values of these types, constants, parts and branches can be an object. A reference that leads nowhere or in circles may be one. */
export const canBeObject = (root: JsonSchema): boolean => {
  let visits = 0
  const can = (schema: unknown): boolean => {
    if (schema === true) return true
    if (!mayBeObject(schema) || !Predicate.isRecord(schema)) return false
    if (Array.isArray(schema.enum) && !schema.enum.some(Predicate.isRecord)) return false
    if (schema.const !== undefined && !Predicate.isRecord(schema.const)) return false
    visits += 1
    if (visits > maxVisits) return true
    const target = schema.$ref === undefined ? undefined : resolveLocal(root, schema.$ref)
    if (target !== undefined && !can(target)) return false
    if (Array.isArray(schema.allOf) && !schema.allOf.every(can)) return false
    return ["anyOf", "oneOf"].every((name) => {
      const branches = schema[name]
      return !Array.isArray(branches) || branches.length === 0 || branches.some(can)
    })
  }
  return can(root)
}
