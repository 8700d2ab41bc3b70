import { Either, Encoding, Predicate } from "effect"
import type { Words } from "./Words.ts"

export type Node = Readonly<Record<string, unknown>>

/** Steps are counted, not timed, for the same value each time; one takes about a microsecond. */
export interface Run {
  readonly root: unknown
  readonly words: Words
  readonly names: WeakMap<Node, ReadonlyArray<string>>
  steps: number
  characters: number
  texts: number
}

export const maxEntries = 1_000
const maxTypes = 7
const maxReference = 1_000
const maxFacets = 200

export const spend = (run: Run, steps: number): boolean => {
  run.steps -= steps
  return run.steps > 0
}

export const isSpent = ({ characters, steps }: Run): boolean => steps <= 0 || characters <= 0

export const isNode = (value: unknown): value is Node => Predicate.isRecord(value)

/** Never a property of the prototype. */
export const own = (node: Node, key: string): unknown => (Object.hasOwn(node, key) ? node[key] : undefined)

export const listAt = (run: Run, node: Node, key: string): ReadonlyArray<unknown> => {
  const value = own(node, key)
  if (!Array.isArray(value)) return []
  const list = value.slice(0, maxEntries)
  spend(run, list.length >> 4)
  return list
}

export const namesOf = (run: Run, node: Node): ReadonlyArray<string> => {
  const names = run.names.get(node) ?? Object.keys(node).slice(0, maxEntries)
  run.names.set(node, names)
  spend(run, names.length >> 3)
  return names
}

export const namesAt = (run: Run, node: Node, key: string): ReadonlyArray<string> =>
  listAt(run, node, key).filter(Predicate.isString)

export const nodeAt = (node: Node, key: string): Node => {
  const value = own(node, key)
  return isNode(value) ? value : {}
}

export const typesOf = (node: Node): ReadonlyArray<string> | undefined => {
  const type = own(node, "type")
  if (typeof type === "string") return [type]
  return Array.isArray(type) ? type.slice(0, maxTypes).filter(Predicate.isString) : undefined
}

const keywords: ReadonlyArray<readonly [type: string, keys: string]> = [
  ["object", "properties required additionalProperties patternProperties minProperties propertyNames"],
  ["array", "items prefixItems minItems maxItems contains uniqueItems"],
  ["string", "pattern minLength maxLength format"],
  ["number", "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"]
]

export const typesAllowed = (facets: ReadonlyArray<Node>): ReadonlyArray<string> => {
  const [first, ...others] = facets.map(typesOf).filter(Predicate.isNotUndefined)
  if (first === undefined) {
    const isUsed = (key: string): boolean => facets.some((facet) => Object.hasOwn(facet, key))
    return [keywords.find(([, keys]) => keys.split(" ").some(isUsed))?.[0] ?? "string"]
  }
  const isNumeric = (types: ReadonlyArray<string>): boolean => types.includes("number") || types.includes("integer")
  const both = (types: ReadonlyArray<string>, more: ReadonlyArray<string>): ReadonlyArray<string> => [
    ...types.filter((type) => more.includes(type)),
    ...(types.includes("number") !== more.includes("number") && isNumeric(types) && isNumeric(more) ? ["integer"] : [])
  ]
  return others.reduce(both, first).toSorted((one, other) => Number(one === "null") - Number(other === "null"))
}

export const positions = (run: Run, node: Node) =>
  Array.isArray(own(node, "items"))
    ? { prefix: listAt(run, node, "items"), rest: own(node, "additionalItems") }
    : { prefix: listAt(run, node, "prefixItems"), rest: own(node, "items") }

/** Undefined allows anything; customers' patterns are never executed: unlisted names get the first pattern's schema. */
export const propertySchema = (run: Run, node: Node, name: string): unknown => {
  const properties = nodeAt(node, "properties")
  if (Object.hasOwn(properties, name)) return properties[name]
  const byPattern = nodeAt(node, "patternProperties")
  const [pattern] = namesOf(run, byPattern)
  return pattern === undefined ? own(node, "additionalProperties") : byPattern[pattern]
}

/** True, which allows everything, where `$ref` leads out or nowhere. */
export const dereference = (run: Run, node: Node): ReadonlyArray<unknown> => {
  const reference = own(node, "$ref")
  if (typeof reference !== "string") return []
  if (reference === "#") return [run.root]
  if (!reference.startsWith("#/") || reference.length > maxReference) return [true]
  spend(run, reference.length >> 2)
  let found = run.root
  for (const step of reference.slice(2).split("/")) {
    const decoded = Either.getOrElse(Encoding.decodeUriComponent(step), () => step)
    const key = decoded.replaceAll("~1", "/").replaceAll("~0", "~")
    if (Array.isArray(found)) found = found[Number(key)]
    else found = isNode(found) ? own(found, key) : undefined
  }
  return [found ?? true]
}

/** A schema's distance from an end, to choose the branch that stops a recursion. */
const reach = (schema: unknown): number => {
  if (!isNode(schema)) return 0
  if (Object.hasOwn(schema, "$ref")) return 2
  return (typesOf(schema) ?? []).some((type) => type === "object" || type === "array") ? 1 : 0
}

const branches = (run: Run, node: Node, key: string, nearestFirst: boolean): ReadonlyArray<unknown> => {
  if (!Object.hasOwn(node, key)) return [true]
  const list = listAt(run, node, key)
  spend(run, list.length >> 1)
  return nearestFirst ? list.toSorted((one, other) => reach(one) - reach(other)) : list
}

/** The ways to satisfy all `schemas`, each as schemas without branches; `nearestFirst` prefers ends of recursion. */
export function* alternatives(
  run: Run,
  [head, ...rest]: ReadonlyArray<unknown>,
  nearestFirst: boolean,
  facets: ReadonlyArray<Node> = []
): Generator<ReadonlyArray<Node>> {
  const hasSteps = spend(run, 1 + ((rest.length + facets.length) >> 4))
  if (head === undefined || facets.length > maxFacets || !hasSteps) yield facets
  else if (!isNode(head)) {
    if (head !== false) yield* alternatives(run, rest, nearestFirst, facets)
  } else {
    const always = [...dereference(run, head), ...listAt(run, head, "allOf")]
    const conditions = Object.hasOwn(head, "if") ? [["if", "then"], ["else"]] : [[]]
    for (const any of branches(run, head, "anyOf", nearestFirst)) {
      for (const one of branches(run, head, "oneOf", nearestFirst)) {
        for (const keys of conditions) {
          const condition = keys.map((key) => own(head, key) ?? true)
          yield* alternatives(run, [...always, any, one, ...condition, ...rest], nearestFirst, [...facets, head])
        }
      }
    }
  }
}
