import {
  type Document,
  isNode,
  listAt,
  type Node,
  own,
  propertySchemas,
  referenceIn,
  resolve,
  typesOf
} from "./JsonSchema.ts"

const mostHops = 2_000

/** How far a schema is from an end, for choosing the branch that stops a recursion. */
const reach = (schema: unknown): number => {
  if (!isNode(schema)) return 0
  if (referenceIn(schema) !== undefined) return 2
  return (typesOf(schema) ?? []).some((type) => type === "object" || type === "array") ? 1 : 0
}

const branches = (node: Node, key: "anyOf" | "oneOf", nearestFirst: boolean): ReadonlyArray<unknown> => {
  if (!Object.hasOwn(node, key)) return [true]
  return nearestFirst ? listAt(node, key).toSorted((one, other) => reach(one) - reach(other)) : listAt(node, key)
}

const conditions = (node: Node): ReadonlyArray<ReadonlyArray<unknown>> =>
  Object.hasOwn(node, "if") ? [[own(node, "if"), own(node, "then")], [own(node, "else")]] : [[]]

/**
 * The ways to satisfy all of `schemas` at once, each as plain schemas without references and branches, whose
 * keywords all hold together. `nearestFirst` tries the branches first that end a recursion.
 */
export function* ways(
  document: Document,
  schemas: ReadonlyArray<unknown>,
  nearestFirst: boolean,
  facets: ReadonlyArray<Node> = [],
  hops = 0
): Generator<ReadonlyArray<Node>> {
  const [head, ...rest] = schemas
  document.budget.steps -= 1 + (schemas.length >> 4)
  if (schemas.length === 0 || document.budget.steps <= 0 || hops > mostHops) {
    yield facets
    return
  }
  if (head === false) return
  if (!isNode(head)) {
    yield* ways(document, rest, nearestFirst, facets, hops + 1)
    return
  }
  const reference = referenceIn(head)
  const meant = reference === undefined ? [] : [resolve(document, reference)]
  for (const any of branches(head, "anyOf", nearestFirst)) {
    for (const one of branches(head, "oneOf", nearestFirst)) {
      for (const condition of conditions(head)) {
        const more = [...meant, ...listAt(head, "allOf"), any, one, ...condition, ...rest]
        yield* ways(document, more, nearestFirst, [...facets, head], hops + 1)
      }
    }
  }
}

/** The types that all facets allow, or what their keywords tell, the most telling first. */
export const typesAllowed = (facets: ReadonlyArray<Node>): ReadonlyArray<string> => {
  const named = facets.flatMap((facet) => {
    const types = typesOf(facet)
    return types === undefined ? [] : [types]
  })
  const [first, ...others] = named
  if (first === undefined) return [impliedType(facets)]
  const allowed = others.reduce(
    (types, more) =>
      types.flatMap((type) => {
        if (more.includes(type)) return [type]
        if (type === "number" && more.includes("integer")) return ["integer"]
        return type === "integer" && more.includes("number") ? [type] : []
      }),
    first
  )
  return allowed.filter((type) => type !== "null").concat(allowed.includes("null") ? ["null"] : [])
}

const telling: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
  ["object", ["properties", "required", "additionalProperties", "patternProperties", "minProperties", "propertyNames"]],
  ["array", ["items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems"]],
  ["string", ["pattern", "minLength", "maxLength", "format"]],
  ["number", ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]]
]

const impliedType = (facets: ReadonlyArray<Node>): string =>
  telling.find(([, keywords]) => facets.some((facet) => keywords.some((key) => Object.hasOwn(facet, key))))?.[0] ??
  "string"

/** The largest of the facets' lower limits, or the smallest of their upper ones. */
export const tightest = (
  facets: ReadonlyArray<Node>,
  key: string,
  choose: (...limits: ReadonlyArray<number>) => number
): number | undefined => {
  const limits = facets.map((facet) => own(facet, key)).filter((limit) => typeof limit === "number")
  return limits.length === 0 ? undefined : limits.reduce((one, other) => choose(one, other))
}

export const propertyFacets = (document: Document, facets: ReadonlyArray<Node>, name: string): ReadonlyArray<unknown> =>
  facets.flatMap((facet) => propertySchemas(document, facet, name))
