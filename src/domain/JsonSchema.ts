import { Predicate } from "effect"

type JsonSchema = Readonly<Record<PropertyKey, unknown>>

const typesOf = ({ type }: JsonSchema): ReadonlyArray<unknown> => (Array.isArray(type) ? type : [type])

/** Whether the type of a schema, if it has one, allows an object. */
export const mayBeObject = (schema: unknown): boolean =>
  Predicate.isRecord(schema) && typesOf(schema).some((type) => type === undefined || type === "object")

/** Whether values of these types, constants and branches can be an object; references count as such. */
export const canBeObject = (schema: JsonSchema): boolean => {
  if (!mayBeObject(schema)) return false
  if (Array.isArray(schema.enum) && !schema.enum.some(Predicate.isRecord)) return false
  if (schema.const !== undefined && !Predicate.isRecord(schema.const)) return false
  return ["anyOf", "oneOf"].every((name) => {
    const branches = schema[name]
    return !Array.isArray(branches) || branches.length === 0 || branches.some(mayBeObject)
  })
}
