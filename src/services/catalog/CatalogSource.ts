import { Data } from "effect"
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type ScalarTag,
  stringify,
  type Tags
} from "yaml"
import type { RouteOptions } from "../../domain/Model.ts"
import { toUsdText } from "../../domain/Money.ts"

/** `key` is a path such as `models[3].pricing`. */
export interface LocatedProblem {
  readonly file: string
  readonly line: number
  readonly key: string
  readonly message: string
}

/** Returns a line such as `catalog.yaml:41: models[3].pricing.prompt_per_1m_usd: is missing`. */
const render = ({ file, line, key, message }: LocatedProblem): string =>
  key === "" ? `${file}:${line}: ${message}` : `${file}:${line}: ${key}: ${message}`

export class NothingToServe extends Data.TaggedError("NothingToServe")<{ readonly message: string }> {}

/** The problems are in the order of lines. The message has one line per problem. */
export class CatalogInvalid extends Data.TaggedError("CatalogInvalid")<{
  readonly problems: ReadonlyArray<LocatedProblem>
}> {
  override get message(): string {
    return this.problems.map(render).join("\n")
  }
}

/** A number as its source text, because prices must not pass through floating point. */
export class Numeral {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  toString(): string {
    return this.text
  }
}

export interface SourceFile {
  readonly file: string
  readonly text: string
}

export type Path = ReadonlyArray<PropertyKey>

interface Parsed {
  /** Numbers are `Numeral`. Undefined if the text is not YAML. */
  readonly value: unknown
  readonly problems: ReadonlyArray<LocatedProblem>
  /** Returns the line of the key or of its nearest existing parent, counted from 1. */
  readonly lineOf: (path: Path) => number
}

const numberTags = new Set(["tag:yaml.org,2002:int", "tag:yaml.org,2002:float"])

const numeral: ScalarTag = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  test: /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/,
  identify: (value) => value instanceof Numeral || typeof value === "bigint",
  resolve: (text) => new Numeral(text),
  stringify: ({ value }) => (typeof value === "bigint" ? toUsdText(value) : String(value))
}

/** Writes YAML that `parse` reads; bigints are amounts in nano-USD. */
export const write = (value: unknown): string =>
  stringify(value, {
    schema: "core",
    customTags: (tags) => [numeral, ...tags],
    aliasDuplicateObjects: false,
    lineWidth: 0
  })

const withNumerals = (tags: Tags): Tags => [
  ...tags.filter((tag) => typeof tag === "string" || !numberTags.has(tag.tag)),
  numeral
]

const lineOf =
  (document: Document.Parsed, lines: LineCounter) =>
  (path: Path): number => {
    let node: unknown = document.contents
    let offset = document.contents?.range[0] ?? 0
    for (const step of path) {
      if (isAlias(node)) node = node.resolve(document)
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
        if (pair === undefined) break
        if (isScalar(pair.key)) offset = pair.key.range?.[0] ?? offset
        node = pair.value
      } else if (isSeq(node) && typeof step === "number") {
        const item = node.items[step]
        if ((isMap(item) || isSeq(item) || isScalar(item) || isAlias(item)) && item.range) offset = item.range[0]
        node = item
      } else break
    }
    return lines.linePos(offset).line
  }

export const parse = ({ file, text }: SourceFile): Parsed => {
  const lines = new LineCounter()
  const document = parseDocument(text, {
    schema: "core",
    customTags: withNumerals,
    lineCounter: lines,
    prettyErrors: false
  })
  const problems = [...document.errors, ...document.warnings].map((error) => ({
    file,
    line: lines.linePos(error.pos[0]).line,
    key: "",
    message: error.code === "MULTIPLE_DOCS" ? "must be a single YAML document, without a --- line" : error.message
  }))
  const at = lineOf(document, lines)
  if (problems.length > 0) return { value: undefined, problems, lineOf: at }
  try {
    return { value: document.toJS(), problems, lineOf: at }
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    return { value: undefined, problems: [{ file, line: 1, key: "", message }], lineOf: at }
  }
}

/** Replaces numerals by numbers. Adapters, which check their own options, know no numerals. */
const toPlain = (value: unknown): unknown => {
  if (value instanceof Numeral) return Number(value.text)
  if (Array.isArray(value)) return value.map(toPlain)
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, toPlain(inner)]))
  }
  return value
}

export const routeOptions = (...levels: ReadonlyArray<RouteOptions | undefined>): RouteOptions =>
  Object.fromEntries(
    levels.flatMap((level) => Object.entries(level ?? {}).map(([key, value]) => [key, toPlain(value)]))
  )

/** Returns a path as text, such as `models[3].pricing` for `["models", 3, "pricing"]`. */
export const keyOf = (path: Path): string =>
  path.reduce<string>(
    (key, step) =>
      typeof step === "number" ? `${key}[${step}]` : key === "" ? String(step) : `${key}.${String(step)}`,
    ""
  )
