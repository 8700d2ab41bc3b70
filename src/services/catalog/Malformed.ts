import { type Either, ParseResult, Predicate } from "effect"
import { findNearest } from "../../domain/Nearest.ts"
import { keyOf, Numeral, type Path } from "./CatalogSource.ts"

export interface Mistake {
  readonly path: Path
  readonly message: string
}

export type Decode<A> = (value: unknown) => Either.Either<A, ParseResult.ParseError>

export const strict = { errors: "all", onExcessProperty: "error" } as const
const maxMessageLength = 240

const shorten = (message: string): string =>
  message.length > maxMessageLength
    ? `${message.slice(0, maxMessageLength)}…`
    : message.replace(/^Expected/, "expected")

const issuesOf = (error: ParseResult.ParseError) => ParseResult.ArrayFormatter.formatErrorSync(error)
type Issue = ReturnType<typeof issuesOf>[number]

const maxTypos = (name: string): number => (name.length < 4 ? 0 : name.length < 7 ? 1 : 2)

/** The valid keys that the message of an unknown key lists. */
const knownKeys = ({ message }: Issue): ReadonlyArray<string> =>
  message
    .replace(/^is unexpected, expected: /, "")
    .replaceAll('"', "")
    .split(" | ")

/** Returns the valid key that is most similar to an unknown one, if there is exactly one. */
const findMeantKey = (issue: Issue): string | undefined => {
  const [meant, ...others] = findNearest(String(issue.path.at(-1)), knownKeys(issue), maxTypos)
  return others.length === 0 ? meant : undefined
}

const describeIssue = (issue: Issue): string => {
  if (issue._tag === "Missing") return "is missing"
  if (issue._tag !== "Unexpected") return shorten(issue.message)
  const meant = findMeantKey(issue)
  const known = knownKeys(issue).join(", ")
  return shorten(`unknown key; ${meant === undefined ? "known" : `did you mean ${meant}? Known`}: ${known}`)
}

const siblingOf = (path: Path, key: string): Path => [...path.slice(0, -1), key]

/** Does not report a key as missing if it is only misspelt. */
export const mistakesOf = (error: ParseResult.ParseError): ReadonlyArray<Mistake> => {
  const issues = issuesOf(error)
  const misspelt = new Set(
    issues.flatMap((issue) => {
      const meant = issue._tag === "Unexpected" ? findMeantKey(issue) : undefined
      return meant === undefined ? [] : [keyOf(siblingOf(issue.path, meant))]
    })
  )
  return issues
    .filter(({ _tag, path }) => _tag !== "Missing" || !misspelt.has(keyOf(path)))
    .map((issue) => ({ path: issue.path, message: describeIssue(issue) }))
}

const remove = Symbol("remove")

/** One of these is valid for most keys, and breaks no rule about another key. */
const standIns = [{}, [], new Numeral("1"), true, "x", "https://example.com", "1K", remove] as const

const standInsFor = (path: Path) =>
  path.at(-1) === "context_length" ? [new Numeral("1000000000"), ...standIns] : standIns

const isMapping = (value: unknown): value is Readonly<Record<string, unknown>> =>
  Predicate.isReadonlyRecord(value) && !(value instanceof Numeral)

const getAt = (value: unknown, [step, ...rest]: Path): unknown => {
  if (step === undefined) return value
  if (Array.isArray(value)) return getAt(value[Number(step)], rest)
  return Predicate.isReadonlyRecord(value) && Object.hasOwn(value, step) ? getAt(value[String(step)], rest) : undefined
}

/** Returns undefined if the path does not exist, or if removing a list's item would move later items. */
const setAt = (value: unknown, [step, ...rest]: Path, change: unknown): unknown => {
  if (step === undefined) return change
  if (Array.isArray(value)) {
    const items: ReadonlyArray<unknown> = value
    const index = Number(step)
    if (rest.length === 0 && change === remove) {
      return items.some((item, at) => at !== index && isMapping(item)) ? undefined : items.toSpliced(index, 1)
    }
    const changed = setAt(items[index], rest, change)
    return changed === undefined ? undefined : items.toSpliced(index, 1, changed)
  }
  if (!isMapping(value)) return undefined
  const key = String(step)
  if (rest.length === 0 && change === remove) {
    return Object.fromEntries(Object.entries(value).filter(([name]) => name !== key))
  }
  const changed = setAt(Object.hasOwn(value, key) ? value[key] : undefined, rest, change)
  return changed === undefined ? undefined : { ...value, [key]: changed }
}

interface Repaired<A> {
  readonly entry: A
  /** Paths with a stand-in. */
  readonly replaced: ReadonlyArray<Path>
  readonly removed: ReadonlyArray<Path>
}

const maxRounds = 100

/**
 * Corrects misspelt keys and replaces invalid values with stand-ins, so that the rules can check the rest of the entry.
 * Returns undefined if that is impossible.
 */
export const repair = <A>(decode: Decode<A>, malformed: unknown): Repaired<A> | undefined => {
  const tries = new Map<string, number>()
  const replaced: Array<Path> = []
  const removed: Array<Path> = []
  let value = malformed

  const repairIssue = (issue: Issue): unknown => {
    const { _tag, path } = issue
    if (_tag === "Unexpected") {
      const meant = findMeantKey(issue)
      const target = meant === undefined ? undefined : siblingOf(path, meant)
      const without = setAt(value, path, remove)
      return target === undefined || getAt(value, target) !== undefined
        ? without
        : setAt(without, target, getAt(value, path))
    }
    const key = keyOf(path)
    const used = tries.get(key) ?? 0
    const standIn = standInsFor(path)[used]
    if (standIn === undefined) return undefined
    tries.set(key, used + 1)
    replaced.push(path)
    if (standIn === remove) removed.push(path)
    return setAt(value, path, standIn)
  }

  for (let round = 0; round < maxRounds; round += 1) {
    const decoded = decode(value)
    if (decoded._tag === "Right") return { entry: decoded.right, replaced, removed }
    const seen = new Set<string>()
    for (const issue of issuesOf(decoded.left)) {
      const key = keyOf(issue.path)
      if (seen.has(key)) continue
      seen.add(key)
      value = repairIssue(issue)
      if (value === undefined) return undefined
    }
  }
  return undefined
}

const startsWith = (path: Path, start: Path): boolean => start.every((step, index) => path[index] === step)

/** Whether a mistake is about a stand-in or a removed key, and thus caused by the repair. */
export const isCausedByRepair = (
  { message, path }: Mistake,
  { removed, replaced }: Omit<Repaired<unknown>, "entry">
): boolean =>
  replaced.some((one) => startsWith(path, one)) ||
  removed.some((one) => startsWith(one, path) && message.includes(String(one.findLast(Predicate.isString))))
