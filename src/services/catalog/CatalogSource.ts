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
import type { Problem } from "./Problem.ts"

/** Prices are read from the source text, never through floating point. */
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
  /** Numbers as `Numeral`; undefined where the text is no YAML. */
  readonly value: unknown
  readonly problems: ReadonlyArray<Problem>
  /** From 1; of the key, or of the nearest parent that exists. */
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
    message: error.code === "MULTIPLE_DOCS" ? "must be one document, without a line ---" : error.message
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

/** For adapter options, which only the adapter understands. */
const plain = (value: unknown): unknown => {
  if (value instanceof Numeral) return Number(value.text)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]))
  }
  return value
}

export const routeOptions = (...levels: ReadonlyArray<RouteOptions | undefined>): RouteOptions =>
  Object.fromEntries(levels.flatMap((level) => Object.entries(level ?? {}).map(([key, value]) => [key, plain(value)])))

/** `["models", 3, "pricing"]` as `models[3].pricing`. */
export const keyOf = (path: Path): string =>
  path.reduce<string>(
    (key, step) =>
      typeof step === "number" ? `${key}[${step}]` : key === "" ? String(step) : `${key}.${String(step)}`,
    ""
  )
