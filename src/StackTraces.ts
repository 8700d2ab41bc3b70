import { readFileSync } from "node:fs"
import { SourceMap, type SourceMapPayload } from "node:module"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { Console, Effect, Layer, Predicate } from "effect"
import { ownFile } from "./services/runtime/System.ts"

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

/** Line and column count from 1. */
const sourceOf = (map: SourceMap | undefined, line: number, column: number): string | undefined => {
  const entry = map?.findEntry(line - 1, column - 1)
  // Where a line has nothing before the column, the entry is of a line above.
  return entry !== undefined && "originalSource" in entry && entry.generatedLine === line - 1
    ? `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
    : undefined
}

const generated = /(file:\/\/[^\s()"]+\.js):(\d+):(\d+)/g

const known = new Map<string, string>()
const maxKnown = 10_000

/** Replaces positions in bundled files by those in their sources, such as `src/main.ts:12:3`. */
const nameSources = (text: string): string => {
  if (known.size > maxKnown) known.clear()
  const maps = new Map<string, SourceMap | undefined>()
  return text.replaceAll(generated, (position, url: string, line: string, column: string) => {
    const source = known.get(position)
    if (source !== undefined) return source
    if (!maps.has(url)) maps.set(url, readMap(url))
    const found = sourceOf(maps.get(url), Number(line), Number(column)) ?? position
    known.set(position, found)
    return found
  })
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
