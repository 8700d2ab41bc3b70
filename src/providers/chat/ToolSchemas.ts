import { Predicate } from "effect"
import { mayBeObject, resolveLocal } from "../../domain/JsonSchema.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import { asList, asRecords, type Fields, without } from "../client/Json.ts"
import type { SchemaRoot } from "./WireRules.ts"

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

export const noParameters = { type: "object", properties: {} } as const

/** At the root, wires refuse these whatever the type. */
const refusedAtRoot = ["$ref", "allOf", "anyOf", "const", "enum", "not", "oneOf"]

/** A limit, since the paths to a shared or recursive part may be too many. */
const maxVisits = 128
/** Each merge copies all properties so far: many of them count as another visit. */
const propertiesPerVisit = 64

export interface FittedRoot {
  readonly schema: Fields
  /** The removed constraints, as a JSON Schema. */
  readonly lost?: Fields
}

/** The constraints on an object from all parts of a root. */
interface Shape {
  readonly properties: ReadonlyMap<string, unknown>
  readonly required: ReadonlyArray<string>
  /** Undefined: additional properties are allowed. */
  readonly additional: unknown
}

const emptyShape: Shape = { properties: new Map(), required: [], additional: undefined }

const isSame = (one: unknown, other: unknown): boolean => {
  if (Object.is(one, other)) return true
  if (!Predicate.isRecord(one) || !Predicate.isRecord(other)) return false
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => Object.is(one[name], other[name]))
}

/** Keeps the identity of subschemas, which hold their source. */
const mergeProperties = (
  one: Shape["properties"],
  other: Shape["properties"],
  merge: (one: unknown, other: unknown) => unknown
): Shape["properties"] => {
  if (one.size === 0 || one === other) return other
  if (other.size === 0) return one
  const merged = new Map(one)
  for (const [name, schema] of other) {
    const before = merged.get(name)
    merged.set(name, before === undefined || isSame(before, schema) ? schema : merge(before, schema))
  }
  return merged
}

/** Keywords that a merged root replaces, or that limit no value. */
const silent: ReadonlySet<string> = new Set([
  "$anchor",
  "$comment",
  "$defs",
  "$id",
  "$ref",
  "$schema",
  "additionalProperties",
  "allOf",
  "anyOf",
  "default",
  "definitions",
  "deprecated",
  "description",
  "examples",
  "oneOf",
  "properties",
  "required",
  "title",
  "type"
])

/** Whether a part has constraints that a merged root cannot have. */
const saysMore = (part: Fields): boolean =>
  !mayBeObject(part) ||
  Object.keys(part).some((name) => !silent.has(name)) ||
  [part.anyOf, part.oneOf].some((branches) => asList(branches).length > 1)

class RootMerger {
  readonly #root: Fields
  readonly #unions = new WeakMap<object, ReadonlyArray<unknown>>()
  #visits = 0
  /** How many of the schemas seen say more than their merged shape. */
  #losses = 0
  /** Whether a reference could not be resolved, or there were too many parts. */
  isCut = false

  constructor(root: Fields) {
    this.#root = root
  }

  /** One flat `anyOf` of all variants. */
  readonly #joinSchemas = (one: unknown, other: unknown): unknown => {
    const before = (Predicate.isObject(one) ? this.#unions.get(one) : undefined) ?? [one]
    const more = (Predicate.isObject(other) ? this.#unions.get(other) : undefined) ?? [other]
    const variants = [...before, ...more.filter((variant) => !before.some((known) => isSame(known, variant)))]
    const union = { anyOf: variants }
    this.#unions.set(union, variants)
    return union
  }

  readonly #intersect = (one: Shape, other: Shape): Shape => ({
    properties: mergeProperties(one.properties, other.properties, (a, b) => ({ allOf: [a, b] })),
    required: [...new Set([...one.required, ...other.required])],
    additional: other.properties.size === 0 ? (one.additional ?? other.additional) : other.additional
  })

  readonly #join = (one: Shape, other: Shape): Shape => ({
    properties: mergeProperties(one.properties, other.properties, this.#joinSchemas),
    required: one.required.filter((name) => other.required.includes(name)),
    additional: one.additional === false && other.additional === false ? false : undefined
  })

  #resolve(reference: unknown, open: ReadonlySet<unknown>): Shape {
    const target = open.has(reference) ? undefined : resolveLocal(this.#root, reference)
    if (target !== undefined) return this.shapeOf(target, new Set([...open, reference]))
    this.isCut = true
    return emptyShape
  }

  /** Whether a part of the root says more than its shape. */
  readonly losesOf = (part: Fields): boolean => {
    const before = this.#losses
    this.shapeOf(part)
    return this.isCut || this.#losses > before
  }

  shapeOf(schema: Fields, open: ReadonlySet<unknown> = new Set()): Shape {
    const { $ref, additionalProperties: additional, properties, required } = schema
    this.#visits += 1 + (Predicate.isRecord(properties) ? Object.keys(properties).length / propertiesPerVisit : 0)
    if (this.#visits > maxVisits) {
      this.isCut = true
      return emptyShape
    }
    if (saysMore(schema)) this.#losses += 1
    let shape: Shape = {
      properties: new Map(Predicate.isRecord(properties) ? Object.entries(properties) : []),
      required: asList(required).filter(Predicate.isString),
      additional
    }
    if ($ref !== undefined) shape = this.#intersect(shape, this.#resolve($ref, open))
    for (const part of asRecords(schema.allOf)) shape = this.#intersect(shape, this.shapeOf(part, open))
    for (const name of ["anyOf", "oneOf"]) {
      const branches = asRecords(schema[name]).filter(mayBeObject)
      const shapes = branches.map((branch) => this.shapeOf(branch, open))
      const [first, ...others] = shapes
      if (first !== undefined) shape = this.#intersect(shape, others.reduce(this.#join, first))
    }
    return shape
  }
}

/** A branch without the texts of its properties, which the merged ones still have. */
const outline = (branch: unknown): unknown => {
  if (!Predicate.isRecord(branch) || !Predicate.isRecord(branch.properties)) return branch
  const constants = Object.entries(branch.properties).flatMap(([name, property]) => {
    if (!Predicate.isRecord(property)) return []
    const { const: value, enum: values } = property
    if (value === undefined && values === undefined) return []
    return [[name, value === undefined ? { enum: values } : { const: value }]]
  })
  const { required } = branch
  const rest = without(branch, ["additionalProperties", "properties", "required", "type"])
  return {
    ...rest,
    ...(constants.length > 0 && { properties: Object.fromEntries(constants) }),
    ...(required !== undefined ? { required } : { title: rest.title ?? Object.keys(branch.properties).join(", ") })
  }
}

/** The constraints of a union's branches; a single branch is a part of the root. */
const lostBranches = (schema: Fields, merger: RootMerger): Fields => {
  const lost: Record<string, unknown> = {}
  for (const name of ["anyOf", "oneOf"]) {
    const branches = asList(schema[name])
    if (branches.length > 1 || asRecords(branches).some(merger.losesOf)) lost[name] = branches.map(outline)
  }
  return lost
}

/** The constraints of parts that all apply. */
const lostParts = (schema: Fields, merger: RootMerger): Fields => {
  const parts = asRecords(schema.allOf).filter(merger.losesOf).map(outline)
  const target = resolveLocal(schema, schema.$ref)
  if (target !== undefined && target !== schema && merger.losesOf(target)) parts.unshift(outline(target))
  return parts.length === 0 ? {} : { allOf: parts }
}

const lostOf = (schema: Fields, isCut: boolean): Fields => {
  if (schema.type !== undefined && !mayBeObject(schema)) return { ...schema }
  const merger = new RootMerger(schema)
  const lost: Record<string, unknown> = { ...lostBranches(schema, merger), ...(!isCut && lostParts(schema, merger)) }
  for (const name of ["const", "enum", "not"]) if (schema[name] !== undefined) lost[name] = schema[name]
  if (isCut) for (const name of ["$ref", "allOf"]) if (schema[name] !== undefined) lost[name] = schema[name]
  return lost
}

/** The object itself if nothing has been merged into it. */
const propertiesOf = ({ properties: own }: Fields, merged: Shape["properties"]): Fields => {
  if (!Predicate.isRecord(own)) return Object.fromEntries(merged)
  const isOwn = merged.size === Object.keys(own).length && [...merged].every(([name, schema]) => own[name] === schema)
  return isOwn ? own : Object.fromEntries(merged)
}

const mergeRoot = (schema: Fields): FittedRoot => {
  const merger = new RootMerger(schema)
  const { additional, properties, required } = merger.shapeOf(schema)
  const lost = lostOf(schema, merger.isCut)
  const fitted = keepSource(schema, {
    type: "object",
    ...without(schema, [...refusedAtRoot, "additionalProperties", "properties", "required", "type"]),
    properties: propertiesOf(schema, properties),
    ...(required.length > 0 && { required }),
    ...(additional !== undefined && { additionalProperties: additional })
  })
  return Object.keys(lost).length === 0 ? { schema: fitted } : { schema: fitted, lost }
}

/** The nearest schema with such a root. */
export const fitRoot = (schema: Fields, kind: Exclude<SchemaRoot, "any">): FittedRoot => {
  const { properties, type } = schema
  if (refusedAtRoot.some((name) => Object.hasOwn(schema, name)) || (type !== undefined && type !== "object")) {
    return mergeRoot(schema)
  }
  const hasProperties = Predicate.isRecord(properties)
  if (type === "object" && (hasProperties || kind === "object")) return { schema }
  const added = hasProperties || kind === "object" ? {} : { properties: {} }
  return { schema: keepSource(schema, { ...schema, type: "object", ...added }) }
}
