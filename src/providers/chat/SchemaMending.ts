import { Predicate } from "effect"
import { keepSource } from "../../domain/JsonSource.ts"
import type { Fields } from "../client/Json.ts"

/** Keywords whose value is an object of schemas by name. */
const named: ReadonlySet<string> = new Set([
  "$defs",
  "definitions",
  "dependentSchemas",
  "patternProperties",
  "properties"
])

/** Keywords whose value is a schema, or a list of them. */
const single: ReadonlySet<string> = new Set([
  "additionalProperties",
  "allOf",
  "anyOf",
  "contains",
  "else",
  "if",
  "items",
  "not",
  "oneOf",
  "prefixItems",
  "propertyNames",
  "then"
])

const isArray = ({ type }: Fields): boolean => type === "array" || (Array.isArray(type) && type.includes("array"))

/** Rewrites a bound that draft 4 of JSON Schema marks as exclusive. */
const mendBound = (schema: Record<PropertyKey, unknown>, bound: "maximum" | "minimum"): void => {
  const name = bound === "maximum" ? "exclusiveMaximum" : "exclusiveMinimum"
  const isExclusive = schema[name]
  if (typeof isExclusive !== "boolean") return
  delete schema[name]
  if (!isExclusive || typeof schema[bound] !== "number") return
  schema[name] = schema[bound]
  delete schema[bound]
}

/** Lists the properties that draft 3 marks as required; a `required` that is no list is dropped. */
const mendRequired = (schema: Record<PropertyKey, unknown>, { properties }: Fields): void => {
  const names = Predicate.isRecord(properties)
    ? Object.entries(properties).flatMap(([name, of]) => (Predicate.isRecord(of) && of.required === true ? [name] : []))
    : []
  const { required } = schema
  const all = [...new Set([...(Array.isArray(required) ? required : []), ...names])]
  if (all.length > 0) schema.required = all
  else if (!Array.isArray(required)) delete schema.required
}

const mendMembers = (members: Fields, needsItems: boolean): Fields => {
  let mended: Record<PropertyKey, unknown> | undefined
  for (const name of Object.keys(members)) {
    const member = members[name]
    const own = mend(member, needsItems)
    if (own !== member) (mended ??= { ...members })[name] = own
  }
  return mended === undefined ? members : keepSource(members, mended)
}

const mendValue = (value: unknown, needsItems: boolean): unknown => {
  if (!Array.isArray(value)) return mend(value, needsItems)
  const list = value.map((item) => mend(item, needsItems))
  return list.every((item, at) => item === value[at]) ? value : list
}

const mendKeyword = (name: string, value: unknown, needsItems: boolean): unknown => {
  if (named.has(name)) return Predicate.isRecord(value) ? mendMembers(value, needsItems) : value
  return single.has(name) ? mendValue(value, needsItems) : value
}

const isOutdated = ({ exclusiveMaximum, exclusiveMinimum, required }: Fields): boolean =>
  typeof exclusiveMaximum === "boolean" ||
  typeof exclusiveMinimum === "boolean" ||
  (required !== undefined && !Array.isArray(required))

const mend = (schema: unknown, needsItems: boolean): unknown => {
  if (!Predicate.isRecord(schema)) return schema
  let mended: Record<PropertyKey, unknown> | undefined
  for (const name of Object.keys(schema)) {
    const value = schema[name]
    if (typeof value !== "object" || value === null) continue
    const own = mendKeyword(name, value, needsItems)
    if (own !== value) (mended ??= { ...schema })[name] = own
  }
  if (needsItems && isArray(schema) && (schema.items ?? schema.prefixItems ?? null) === null) {
    mended = { ...(mended ?? schema), items: {} }
  }
  if (mended === undefined && !isOutdated(schema)) return schema
  const changed = mended ?? { ...schema }
  mendRequired(changed, schema)
  mendBound(changed, "maximum")
  mendBound(changed, "minimum")
  return keepSource(schema, changed)
}

/**
 * The same schema in words that vendors take: without what an earlier draft of JSON Schema says in another way, and
 * with `items` for each array where they are demanded. A schema that needs nothing is returned as it is.
 */
export const mendSchema = (schema: Fields, needsItems: boolean): Fields => {
  const mended = mend(schema, needsItems)
  return Predicate.isRecord(mended) ? mended : schema
}
