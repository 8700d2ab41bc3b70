import { isNode, isSpent, listAt, maxEntries, type Node, namesOf, type Run, spend } from "./JsonSchema.ts"

const maxChoices = 60
const maxDepth = 60

/** The choices of an `enum`, those first that the prompt mentions, and of these another one for each salt. */
export const choicesOf = (run: Run, node: Node, salt: number): ReadonlyArray<unknown> => {
  let choices = run.choices.get(node)
  if (choices === undefined) {
    const all = listAt(run, node, "enum")
    spend(run, all.length)
    const isMentioned = all.map((choice) => typeof choice === "string" && run.words.mention(choice))
    choices = [...all.filter((_, at) => isMentioned[at]), ...all.filter((_, at) => !isMentioned[at])]
    run.choices.set(node, choices)
  }
  const from = salt % Math.max(1, choices.length)
  return [...choices.slice(from, from + maxChoices), ...choices.slice(0, from)].slice(0, maxChoices)
}

/** The schema's own values, as long as there is room for them. */
export function* withinBudget(run: Run, values: ReadonlyArray<unknown>): Generator {
  for (const value of values) {
    const size = sizeOf(run, value)
    if (isSpent(run)) return
    if (size > run.characters) continue
    // A text is charged once it is chosen.
    if (typeof value !== "string") run.characters -= size
    yield value
  }
}

/** The characters of a value as JSON, roughly; infinite for one that is too deep to be written. */
const sizeOf = (run: Run, value: unknown, depth = 0): number => {
  if (!spend(run, 1) || depth > maxDepth) return Number.POSITIVE_INFINITY
  if (typeof value === "string") return value.length
  let size = 4
  if (Array.isArray(value)) {
    for (const item of value) {
      size += 1 + sizeOf(run, item, depth + 1)
      if (size > run.characters) break
    }
  } else if (isNode(value)) {
    const names = namesOf(run, value)
    if (names.length >= maxEntries) return Number.POSITIVE_INFINITY
    for (const name of names) size += name.length + sizeOf(run, value[name], depth + 1)
  }
  return size
}
