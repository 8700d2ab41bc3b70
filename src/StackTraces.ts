import { readFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { Console, Effect, Layer, Predicate } from "effect"
import { ownFile } from "./services/runtime/OwnFiles.ts"

export interface SourceMap {
  readonly sources: ReadonlyArray<string>
  readonly mappings: string
}

/** Both count from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
const digitOf = new Map(Array.from(digits, (digit, value) => [digit.charCodeAt(0), value]))
const [comma, semicolon] = [",".charCodeAt(0), ";".charCodeAt(0)]

/** Decodes the mappings in one pass and keeps none: the whole program's would take some 200 MB. */
export const sourcesOf = (
  { mappings, sources }: SourceMap,
  positions: ReadonlyArray<Position>
): ReadonlyArray<string | undefined> => {
  const found = positions.map((): string | undefined => undefined)
  const onLine = (line: number) => [...positions.entries()].filter(([, position]) => position.line === line)
  let at = 0
  /** A base64 VLQ number. */
  const next = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 5) {
      const digit = digitOf.get(mappings.charCodeAt(at++)) ?? 0
      value |= (digit & 31) << shift
      if (digit < 32) return value & 1 ? -(value >> 1) : value >> 1
    }
  }
  const isInSegment = () => {
    const code = mappings.charCodeAt(at)
    return at < mappings.length && code !== comma && code !== semicolon
  }
  let [line, column, source, sourceLine, sourceColumn] = [1, 0, 0, 0, 0]
  let wanted = onLine(line)
  while (at < mappings.length) {
    const code = mappings.charCodeAt(at)
    if (code === semicolon) {
      line++
      column = 0
      wanted = onLine(line)
    }
    if (code === semicolon || code === comma) {
      at++
      continue
    }
    column += next()
    if (!isInSegment()) continue
    source += next()
    sourceLine += next()
    sourceColumn += next()
    if (isInSegment()) next()
    for (const [index, position] of wanted) {
      if (column < position.column) found[index] = `${sources[source]}:${sourceLine + 1}:${sourceColumn + 1}`
    }
  }
  return found
}

const isSourceMap = (value: unknown): value is SourceMap =>
  Predicate.hasProperty(value, "mappings") &&
  Predicate.isString(value.mappings) &&
  Predicate.hasProperty(value, "sources") &&
  Array.isArray(value.sources)

const root = ownFile(".")

const readMap = (url: string): SourceMap | undefined => {
  try {
    const file = fileURLToPath(url)
    if (!file.startsWith(root)) return undefined
    const map: unknown = JSON.parse(readFileSync(`${file}.map`, "utf8"))
    if (!isSourceMap(map)) return undefined
    const directory = path.dirname(file)
    return { ...map, sources: map.sources.map((source) => path.relative(root, path.resolve(directory, source))) }
  } catch {
    return undefined
  }
}

const generated = /(file:\/\/[^\s()"]+\.js):(\d+):(\d+)/g

const known = new Map<string, string>()
const maxKnown = 10_000

const remember = (url: string, positions: ReadonlyMap<string, Position>) => {
  const map = readMap(url)
  const found = map === undefined ? [] : sourcesOf(map, [...positions.values()])
  for (const [index, text] of [...positions.keys()].entries()) known.set(text, found[index] ?? text)
}

/** Replaces positions in bundled files by those in their sources, such as `src/main.ts:12:3`. */
export const nameSources = (text: string): string => {
  if (!text.includes("file://")) return text
  const unknown = new Map<string, Map<string, Position>>()
  for (const [position, url = "", line, column] of text.matchAll(generated)) {
    if (known.has(position)) continue
    const ofFile = unknown.get(url) ?? new Map<string, Position>()
    unknown.set(url, ofFile.set(position, { line: Number(line), column: Number(column) }))
  }
  if (known.size > maxKnown) known.clear()
  for (const [url, positions] of unknown) remember(url, positions)
  return text.replaceAll(generated, (position) => known.get(position) ?? position)
}

const nameIfText = (value: unknown) => (typeof value === "string" ? nameSources(value) : value)

export const layer = Layer.unwrapScoped(
  Effect.gen(function* () {
    const own = yield* Console.consoleWith(Effect.succeed)
    const onFatal = (error: unknown) => {
      if (error instanceof Error && error.stack !== undefined) error.stack = nameSources(error.stack)
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("uncaughtExceptionMonitor", onFatal)),
      () => Effect.sync(() => process.off("uncaughtExceptionMonitor", onFatal))
    )
    const error = (...values: ReadonlyArray<unknown>) => own.unsafe.error(...values.map(nameIfText))
    return Console.setConsole({ ...own, unsafe: { ...own.unsafe, error } })
  })
)
