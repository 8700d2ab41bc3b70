import { typesAllowed } from "./Facets.ts"
import { isNode, listAt, type Node, own, typesOf } from "./JsonSchema.ts"
import type { Words } from "./Words.ts"

const mostChoices = 1_000
const mostTried = 60
const deepest = 60

/** Values that a schema names itself; `closed` where it allows no others. */
interface Given {
  readonly values: ReadonlyArray<unknown>
  readonly closed: boolean
}

export const givenIn = (facets: ReadonlyArray<Node>, words: Words, salt: number): Given => {
  const constant = facets.find((facet) => Object.hasOwn(facet, "const"))
  if (constant !== undefined) return { closed: true, values: [own(constant, "const")] }
  const choosing = facets.find((facet) => Object.hasOwn(facet, "enum"))
  if (choosing !== undefined) {
    const choices = listAt(choosing, "enum").slice(0, mostChoices)
    const liked = choices.filter((choice) => typeof choice === "string" && words.mention(choice))
    const inOrder = [...liked, ...choices.filter((choice) => !liked.includes(choice))]
    const from = salt % Math.max(1, inOrder.length)
    return { closed: true, values: [...inOrder.slice(from), ...inOrder.slice(0, from)].slice(0, mostTried) }
  }
  if (salt > 0) return { closed: false, values: [] }
  const values = facets.flatMap((facet) => {
    const suggested = Object.hasOwn(facet, "default") ? [own(facet, "default")] : []
    return [...suggested, ...listAt(facet, "examples").slice(0, 1)]
  })
  return { closed: false, values }
}

/** The characters of a value as JSON, roughly; infinite for one nested too deeply to be written. */
export const sizeOf = (value: unknown, depth = 0): number => {
  if (depth > deepest) return Number.POSITIVE_INFINITY
  if (typeof value === "string") return value.length
  if (Array.isArray(value)) return value.reduce((sum: number, item) => sum + 1 + sizeOf(item, depth + 1), 2)
  if (!isNode(value)) return 4
  return Object.entries(value).reduce((sum, [name, item]) => sum + name.length + sizeOf(item, depth + 1), 2)
}

/** The plainest value of the type that the schemas name, for when there is no room left for a better one. */
export const bare = (schemas: ReadonlyArray<unknown>): unknown => {
  const [type] = typesAllowed(
    schemas
      .filter(isNode)
      .filter((schema) => typesOf(schema) !== undefined)
      .slice(0, 4)
  )
  const plain: Readonly<Record<string, unknown>> = {
    object: {},
    array: [],
    string: "",
    number: 0,
    integer: 0,
    boolean: true
  }
  return type === undefined ? null : (plain[type] ?? null)
}
