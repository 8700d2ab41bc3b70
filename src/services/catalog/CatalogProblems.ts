import { type Either, JSONSchema, ParseResult, Predicate, Schema } from "effect"
import { findNearest } from "../../domain/Wording.ts"
import { keyOf, Numeral, type Path } from "./CatalogSource.ts"
import { BaseUrl, FamilyEntry, Headers, Name, Options, optional, VariableName } from "./EntryFields.ts"
import { markupFields } from "./Markup.ts"
import { ModelEntry } from "./ModelEntry.ts"

export interface Problem {
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

/** Returns the valid keys that Effect's message about an unknown key lists. */
const knownKeys = ({ message }: Issue): ReadonlyArray<string> =>
  message
    .replace(/^is unexpected, expected: /, "")
    .replaceAll('"', "")
    .split(" | ")

/** Returns the valid key that is most similar to an unknown one, if there is exactly one. */
const findIntendedKey = (issue: Issue): string | undefined => {
  const [intendedKey, ...others] = findNearest(String(issue.path.at(-1)), knownKeys(issue), maxTypos)
  return others.length === 0 ? intendedKey : undefined
}

const describeIssue = (issue: Issue): string => {
  if (issue._tag === "Missing") return "is missing"
  if (issue._tag !== "Unexpected") return shorten(issue.message)
  const intendedKey = findIntendedKey(issue)
  const known = knownKeys(issue).join(", ")
  return shorten(`unknown key; ${intendedKey === undefined ? "known" : `did you mean ${intendedKey}? Known`}: ${known}`)
}

const siblingOf = (path: Path, key: string): Path => [...path.slice(0, -1), key]

/**
 * Returns a problem per issue. A missing key is not reported if an unknown key looks like it: its message suggests the
 * correction.
 */
export const problemsOf = (error: ParseResult.ParseError): ReadonlyArray<Problem> => {
  const issues = issuesOf(error)
  const misspelt = new Set(
    issues.flatMap((issue) => {
      const intendedKey = issue._tag === "Unexpected" ? findIntendedKey(issue) : undefined
      return intendedKey === undefined ? [] : [keyOf(siblingOf(issue.path, intendedKey))]
    })
  )
  return issues
    .filter(({ _tag, path }) => _tag !== "Missing" || !misspelt.has(keyOf(path)))
    .map((issue) => ({ path: issue.path, message: describeIssue(issue) }))
}

const remove = Symbol("remove")

/**
 * Values to try in place of an invalid one. Almost every key accepts one of them, and none breaks a rule about another key.
 */
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

/**
 * Returns a copy with the change at the path. Undefined if the path does not exist, or if removing a list's item would
 * renumber others.
 */
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
  /** Paths whose value is a stand-in, or was removed. */
  readonly replaced: ReadonlyArray<Path>
  readonly removed: ReadonlyArray<Path>
}

const maxRounds = 100

/**
 * Corrects misspelt keys and replaces invalid values with stand-ins, because the rules can only check valid entries.
 * Returns undefined if that is impossible.
 */
export const repair = <A>(decode: Decode<A>, malformed: unknown): Repaired<A> | undefined => {
  const triesByKey = new Map<string, number>()
  const replaced: Array<Path> = []
  const removed: Array<Path> = []
  let value = malformed

  const repairIssue = (issue: Issue): unknown => {
    const { _tag, path } = issue
    if (_tag === "Unexpected") {
      const intendedKey = findIntendedKey(issue)
      const target = intendedKey === undefined ? undefined : siblingOf(path, intendedKey)
      const rest = setAt(value, path, remove)
      return target === undefined || getAt(value, target) !== undefined ? rest : setAt(rest, target, getAt(value, path))
    }
    const key = keyOf(path)
    const tries = triesByKey.get(key) ?? 0
    const standIn = standInsFor(path)[tries]
    if (standIn === undefined) return undefined
    triesByKey.set(key, tries + 1)
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

/** Whether a problem is about a stand-in or a removed key, and thus caused by the repair. */
export const isCausedByRepair = (
  { message, path }: Problem,
  { removed, replaced }: Omit<Repaired<unknown>, "entry">
): boolean =>
  replaced.some((one) => startsWith(path, one)) ||
  removed.some((one) => startsWith(one, path) && message.includes(String(one.findLast(Predicate.isString))))

export const ProviderEntry = Schema.Struct({
  adapter: Name,
  base_url: optional(BaseUrl),
  credential: optional(VariableName),
  headers: optional(Headers),
  trace_context: optional(Schema.Boolean),
  options: optional(Options)
})
export type ProviderEntry = typeof ProviderEntry.Type

export const CatalogFile = Schema.Struct({
  providers: Schema.Record({ key: Schema.String, value: ProviderEntry }),
  models: Schema.NonEmptyArray(ModelEntry),
  families: optional(Schema.Record({ key: Schema.String, value: FamilyEntry })),
  ...markupFields
})

export const catalogJsonSchema = (): JSONSchema.JsonSchema7Root => ({
  ...JSONSchema.make(CatalogFile),
  title: "Generation gateway catalog"
})
