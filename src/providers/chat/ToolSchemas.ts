import { Predicate } from "effect"
import { mayBeObject, resolveLocal } from "../../domain/JsonSchema.ts"
import { keepSource } from "../../domain/JsonSource.ts"
import { asList, asRecords, type Fields, without } from "../client/JsonFields.ts"
import type { SchemaRoot } from "./WireRules.ts"

/** Keywords whose value is an object of schemas by name. */
const schemaMapKeywords: ReadonlySet<string> = new Set([
  "$defs",
  "definitions",
  "dependentSchemas",
  "patternProperties",
  "properties"
])

/** Keywords whose value is a schema, or a list of them. */
const schemaKeywords: ReadonlySet<string> = new Set([
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

/** Rewrites an exclusive bound of JSON Schema draft 4. */
const repairBound = (schema: Record<PropertyKey, unknown>, bound: "maximum" | "minimum"): void => {
  const name = bound === "maximum" ? "exclusiveMaximum" : "exclusiveMinimum"
  const isExclusive = schema[name]
  if (typeof isExclusive !== "boolean") return
  delete schema[name]
  if (!isExclusive || typeof schema[bound] !== "number") return
  schema[name] = schema[bound]
  delete schema[bound]
}

/** Collects properties marked as required in JSON Schema draft 3. Drops a `required` that is no list. */
const repairRequired = (schema: Record<PropertyKey, unknown>, { properties }: Fields): void => {
  const names = Predicate.isRecord(properties)
    ? Object.entries(properties).flatMap(([name, property]) =>
        Predicate.isRecord(property) && property.required === true ? [name] : []
      )
    : []
  const { required } = schema
  const allNames = [...new Set([...(Array.isArray(required) ? required : []), ...names])]
  if (allNames.length > 0) schema.required = allNames
  else if (!Array.isArray(required)) delete schema.required
}

const repairMembers = (members: Fields, requiresItems: boolean): Fields => {
  let copy: Record<PropertyKey, unknown> | undefined
  for (const name of Object.keys(members)) {
    const member = members[name]
    const repairedMember = repair(member, requiresItems)
    if (repairedMember !== member) (copy ??= { ...members })[name] = repairedMember
  }
  return copy === undefined ? members : keepSource(members, copy)
}

const repairValue = (value: unknown, requiresItems: boolean): unknown => {
  if (!Array.isArray(value)) return repair(value, requiresItems)
  const list = value.map((item) => repair(item, requiresItems))
  return list.every((item, at) => item === value[at]) ? value : list
}

const repairKeyword = (name: string, value: unknown, requiresItems: boolean): unknown => {
  if (schemaMapKeywords.has(name)) return Predicate.isRecord(value) ? repairMembers(value, requiresItems) : value
  return schemaKeywords.has(name) ? repairValue(value, requiresItems) : value
}

const isOutdated = ({ exclusiveMaximum, exclusiveMinimum, required }: Fields): boolean =>
  typeof exclusiveMaximum === "boolean" ||
  typeof exclusiveMinimum === "boolean" ||
  (required !== undefined && !Array.isArray(required))

const repair = (schema: unknown, requiresItems: boolean): unknown => {
  if (!Predicate.isRecord(schema)) return schema
  let copy: Record<PropertyKey, unknown> | undefined
  for (const name of Object.keys(schema)) {
    const value = schema[name]
    if (typeof value !== "object" || value === null) continue
    const repairedValue = repairKeyword(name, value, requiresItems)
    if (repairedValue !== value) (copy ??= { ...schema })[name] = repairedValue
  }
  if (requiresItems && isArray(schema) && (schema.items ?? schema.prefixItems ?? null) === null) {
    copy = { ...(copy ?? schema), items: {} }
  }
  if (copy === undefined && !isOutdated(schema)) return schema
  const result = copy ?? { ...schema }
  repairRequired(result, schema)
  repairBound(result, "maximum")
  repairBound(result, "minimum")
  return keepSource(schema, result)
}

/**
 * Rewrites keywords of earlier JSON Schema drafts and, with `requiresItems`, adds missing `items` to arrays. Returns the
 * same object if nothing has to change.
 */
export const repairSchema = (schema: Fields, requiresItems: boolean): Fields => {
  const repaired = repair(schema, requiresItems)
  return Predicate.isRecord(repaired) ? repaired : schema
}

export const emptyParameters = { type: "object", properties: {} } as const

/** Keywords that wire formats refuse at the root, whatever the type. */
const refusedAtRoot = ["$ref", "allOf", "anyOf", "const", "enum", "not", "oneOf"]

/** Limits the visited subschemas, because shared ones may be reachable by very many paths. */
const maxVisits = 128
/** Each merge copies all properties so far, so this many count as another visit. */
const propertiesPerVisit = 64

export interface FittedRoot {
  readonly schema: Fields
  /** The removed constraints, as a JSON Schema. */
  readonly removed?: Fields
}

/** The constraints on an object from all parts of a root. */
interface Shape {
  readonly properties: ReadonlyMap<string, unknown>
  readonly required: ReadonlyArray<string>
  /** Undefined allows additional properties. */
  readonly additionalProperties: unknown
}

const emptyShape: Shape = { properties: new Map(), required: [], additionalProperties: undefined }

const isSame = (one: unknown, other: unknown): boolean => {
  if (Object.is(one, other)) return true
  if (!Predicate.isRecord(one) || !Predicate.isRecord(other)) return false
  const names = Object.keys(one)
  return names.length === Object.keys(other).length && names.every((name) => Object.is(one[name], other[name]))
}

/** Keeps the identity of subschemas, because it links them to their source text. */
const mergeProperties = (
  one: Shape["properties"],
  other: Shape["properties"],
  merge: (one: unknown, other: unknown) => unknown
): Shape["properties"] => {
  if (one.size === 0 || one === other) return other
  if (other.size === 0) return one
  const mergedProperties = new Map(one)
  for (const [name, schema] of other) {
    const existing = mergedProperties.get(name)
    mergedProperties.set(name, existing === undefined || isSame(existing, schema) ? schema : merge(existing, schema))
  }
  return mergedProperties
}

/** Keywords that a merged root replaces, or that don't constrain values. */
const neutralKeywords: ReadonlySet<string> = new Set([
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

/** Whether a part has constraints that a merged root cannot express. */
const hasExtraConstraints = (part: Fields): boolean =>
  !mayBeObject(part) ||
  Object.keys(part).some((name) => !neutralKeywords.has(name)) ||
  [part.anyOf, part.oneOf].some((branches) => asList(branches).length > 1)

class RootMerger {
  readonly #root: Fields
  readonly #unions = new WeakMap<object, ReadonlyArray<unknown>>()
  #visits = 0
  /** The number of visited schemas with constraints that their merged shape lacks. */
  #lossCount = 0
  /** Whether a reference could not be resolved, or the visit limit was reached. */
  isIncomplete = false

  constructor(root: Fields) {
    this.#root = root
  }

  /** Returns a flat `anyOf` of the variants of both schemas. */
  readonly #joinSchemas = (one: unknown, other: unknown): unknown => {
    const oneVariants = (Predicate.isObject(one) ? this.#unions.get(one) : undefined) ?? [one]
    const otherVariants = (Predicate.isObject(other) ? this.#unions.get(other) : undefined) ?? [other]
    const newVariants = otherVariants.filter((variant) => !oneVariants.some((known) => isSame(known, variant)))
    const variants = [...oneVariants, ...newVariants]
    const union = { anyOf: variants }
    this.#unions.set(union, variants)
    return union
  }

  readonly #intersect = (one: Shape, other: Shape): Shape => ({
    properties: mergeProperties(one.properties, other.properties, (a, b) => ({ allOf: [a, b] })),
    required: [...new Set([...one.required, ...other.required])],
    additionalProperties:
      other.properties.size === 0
        ? (one.additionalProperties ?? other.additionalProperties)
        : other.additionalProperties
  })

  readonly #join = (one: Shape, other: Shape): Shape => ({
    properties: mergeProperties(one.properties, other.properties, this.#joinSchemas),
    required: one.required.filter((name) => other.required.includes(name)),
    additionalProperties: one.additionalProperties === false && other.additionalProperties === false ? false : undefined
  })

  #resolve(reference: unknown, openReferences: ReadonlySet<unknown>): Shape {
    const target = openReferences.has(reference) ? undefined : resolveLocal(this.#root, reference)
    if (target !== undefined) return this.shapeOf(target, new Set([...openReferences, reference]))
    this.isIncomplete = true
    return emptyShape
  }

  readonly losesConstraints = (part: Fields): boolean => {
    const lossCountBefore = this.#lossCount
    this.shapeOf(part)
    return this.isIncomplete || this.#lossCount > lossCountBefore
  }

  shapeOf(schema: Fields, openReferences: ReadonlySet<unknown> = new Set()): Shape {
    const { $ref, additionalProperties, properties, required } = schema
    this.#visits += 1 + (Predicate.isRecord(properties) ? Object.keys(properties).length / propertiesPerVisit : 0)
    if (this.#visits > maxVisits) {
      this.isIncomplete = true
      return emptyShape
    }
    if (hasExtraConstraints(schema)) this.#lossCount += 1
    let shape: Shape = {
      properties: new Map(Predicate.isRecord(properties) ? Object.entries(properties) : []),
      required: asList(required).filter(Predicate.isString),
      additionalProperties: additionalProperties
    }
    if ($ref !== undefined) shape = this.#intersect(shape, this.#resolve($ref, openReferences))
    for (const part of asRecords(schema.allOf)) shape = this.#intersect(shape, this.shapeOf(part, openReferences))
    for (const name of ["anyOf", "oneOf"]) {
      const branches = asRecords(schema[name]).filter(mayBeObject)
      const shapes = branches.map((branch) => this.shapeOf(branch, openReferences))
      const [first, ...others] = shapes
      if (first !== undefined) shape = this.#intersect(shape, others.reduce(this.#join, first))
    }
    return shape
  }
}

/** Removes the properties of a branch except constants, because the merged root has all properties. */
const summarizeBranch = (branch: unknown): unknown => {
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

/** Returns the constraints of a union's branches. A single branch is omitted if the merged root expresses it. */
const removedBranches = (schema: Fields, merger: RootMerger): Fields => {
  const removed: Record<string, unknown> = {}
  for (const name of ["anyOf", "oneOf"]) {
    const branches = asList(schema[name])
    if (branches.length > 1 || asRecords(branches).some(merger.losesConstraints))
      removed[name] = branches.map(summarizeBranch)
  }
  return removed
}

/** Returns the constraints of `allOf` and `$ref` that merging loses. */
const removedParts = (schema: Fields, merger: RootMerger): Fields => {
  const parts = asRecords(schema.allOf).filter(merger.losesConstraints).map(summarizeBranch)
  const target = resolveLocal(schema, schema.$ref)
  if (target !== undefined && target !== schema && merger.losesConstraints(target))
    parts.unshift(summarizeBranch(target))
  return parts.length === 0 ? {} : { allOf: parts }
}

const removedConstraints = (schema: Fields, isIncomplete: boolean): Fields => {
  if (schema.type !== undefined && !mayBeObject(schema)) return { ...schema }
  const merger = new RootMerger(schema)
  const removed: Record<string, unknown> = {
    ...removedBranches(schema, merger),
    ...(!isIncomplete && removedParts(schema, merger))
  }
  for (const name of ["const", "enum", "not"]) if (schema[name] !== undefined) removed[name] = schema[name]
  if (isIncomplete) for (const name of ["$ref", "allOf"]) if (schema[name] !== undefined) removed[name] = schema[name]
  return removed
}

/** Returns the original object if nothing was merged into it. */
const propertiesOf = ({ properties: own }: Fields, merged: Shape["properties"]): Fields => {
  if (!Predicate.isRecord(own)) return Object.fromEntries(merged)
  const isOwn = merged.size === Object.keys(own).length && [...merged].every(([name, schema]) => own[name] === schema)
  return isOwn ? own : Object.fromEntries(merged)
}

const mergeRoot = (schema: Fields): FittedRoot => {
  const merger = new RootMerger(schema)
  const { additionalProperties, properties, required } = merger.shapeOf(schema)
  const removed = removedConstraints(schema, merger.isIncomplete)
  const fittedSchema = keepSource(schema, {
    type: "object",
    ...without(schema, [...refusedAtRoot, "additionalProperties", "properties", "required", "type"]),
    properties: propertiesOf(schema, properties),
    ...(required.length > 0 && { required }),
    ...(additionalProperties !== undefined && { additionalProperties })
  })
  return Object.keys(removed).length === 0 ? { schema: fittedSchema } : { schema: fittedSchema, removed }
}

/** Returns the closest schema with a root that the wire format accepts. */
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
