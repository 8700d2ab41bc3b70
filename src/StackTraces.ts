import { readFileSync } from "node:fs"
import { SourceMap, type SourceMapPayload } from "node:module"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { Console, Effect, Layer, Predicate } from "effect"
import { ownFile } from "./services/runtime/System.ts"

/** Both count from 1. */
interface Position {
  readonly line: number
  readonly column: number
}

const isPayload = (value: unknown): value is SourceMapPayload =>
  Predicate.hasProperty(value, "mappings") &&
  Predicate.isString(value.mappings) &&
  Predicate.hasProperty(value, "sources") &&
  Array.isArray(value.sources)

const root = ownFile(".")

/** Read where a trace needs it and not kept: the decoded map of one chunk takes some 30 MB. */
const readMap = (url: string): SourceMap | undefined => {
  try {
    const file = fileURLToPath(url)
    if (!file.startsWith(root)) return undefined
    const payload: unknown = JSON.parse(readFileSync(`${file}.map`, "utf8"))
    if (!isPayload(payload)) return undefined
    const directory = path.dirname(file)
    const sources = payload.sources.map((source) => path.relative(root, path.resolve(directory, source)))
    return new SourceMap({ ...payload, sources })
  } catch {
    return undefined
  }
}

const sourceOf = (map: SourceMap | undefined, { column, line }: Position): string | undefined => {
  const entry = map?.findEntry(line - 1, column - 1)
  // Where a line has nothing before the column, the entry is of a line above.
  return entry !== undefined && "originalSource" in entry && entry.generatedLine === line - 1
    ? `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
    : undefined
}

const generated = /(file:\/\/[^\s()"]+\.js):(\d+):(\d+)/g

const known = new Map<string, string>()
const maxKnown = 10_000

const remember = (url: string, positions: ReadonlyMap<string, Position>) => {
  const map = readMap(url)
  for (const [text, position] of positions) known.set(text, sourceOf(map, position) ?? text)
}

/** Replaces positions in bundled files by those in their sources, such as `src/main.ts:12:3`. */
const nameSources = (text: string): string => {
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
