import { dereference, isNode, listAt, type Node, own, type Run, spend, typesOf } from "./JsonSchema.ts"

const maxFacets = 200

/** How far a schema is from an end, for choosing the branch that stops a recursion. */
const reach = (schema: unknown): number => {
  if (!isNode(schema)) return 0
  if (Object.hasOwn(schema, "$ref")) return 2
  return (typesOf(schema) ?? []).some((type) => type === "object" || type === "array") ? 1 : 0
}

const branches = (run: Run, node: Node, key: "anyOf" | "oneOf", nearestFirst: boolean) => {
  if (!Object.hasOwn(node, key)) return [true]
  const list = listAt(run, node, key)
  if (!nearestFirst) return list
  spend(run, list.length)
  return list.toSorted((one, other) => reach(one) - reach(other))
}

const conditions = (node: Node): ReadonlyArray<ReadonlyArray<unknown>> =>
  Object.hasOwn(node, "if") ? [[own(node, "if"), own(node, "then")], [own(node, "else")]] : [[]]

/**
 * The ways to satisfy all of `schemas` at once, each as plain schemas whose keywords all hold together. `nearestFirst`
 * tries the branches first that end a recursion.
 */
export function* alternatives(
  run: Run,
  schemas: ReadonlyArray<unknown>,
  nearestFirst: boolean,
  facets: ReadonlyArray<Node> = []
): Generator<ReadonlyArray<Node>> {
  const [head, ...rest] = schemas
  const isSpent = !spend(run, 1 + ((schemas.length + facets.length) >> 4))
  if (schemas.length === 0 || facets.length > maxFacets || isSpent) {
    yield facets
    return
  }
  if (head === false) return
  if (!isNode(head)) {
    yield* alternatives(run, rest, nearestFirst, facets)
    return
  }
  const always = [...dereference(run, head), ...listAt(run, head, "allOf")]
  for (const any of branches(run, head, "anyOf", nearestFirst)) {
    for (const one of branches(run, head, "oneOf", nearestFirst)) {
      for (const condition of conditions(head)) {
        yield* alternatives(run, [...always, any, one, ...condition, ...rest], nearestFirst, [...facets, head])
      }
    }
  }
}

const keywords: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
  ["object", ["properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames"]],
  ["array", ["items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems"]],
  ["string", ["pattern", "minLength", "maxLength", "format"]],
  ["number", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]]
]

const impliedType = (facets: ReadonlyArray<Node>): string =>
  keywords.find(([, keys]) => facets.some((facet) => keys.some((key) => Object.hasOwn(facet, key))))?.[0] ?? "string"

/** The types that all facets allow, or the one that their keywords imply; null comes last. */
export const typesAllowed = (facets: ReadonlyArray<Node>): ReadonlyArray<string> => {
  const [first, ...others] = facets.map(typesOf).filter((types) => types !== undefined)
  if (first === undefined) return [impliedType(facets)]
  const allowed = others.reduce(
    (types, more) =>
      types.flatMap((type) => {
        if (more.includes(type)) return [type]
        return (type === "number" && more.includes("integer")) || (type === "integer" && more.includes("number"))
          ? ["integer"]
          : []
      }),
    first
  )
  return allowed.toSorted((one, other) => Number(one === "null") - Number(other === "null"))
}

const limits = (facets: ReadonlyArray<Node>, key: string): ReadonlyArray<number> =>
  facets.map((facet) => own(facet, key)).filter((limit) => typeof limit === "number")

/** The highest of the facets' lower limits; minus infinity where there is none. */
export const atLeast = (facets: ReadonlyArray<Node>, ...keys: ReadonlyArray<string>): number =>
  Math.max(...keys.flatMap((key) => limits(facets, key)))

/** The lowest of the facets' upper limits; infinity where there is none. */
export const atMost = (facets: ReadonlyArray<Node>, ...keys: ReadonlyArray<string>): number =>
  Math.min(...keys.flatMap((key) => limits(facets, key)))
