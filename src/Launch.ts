import cluster from "node:cluster"
import { readFileSync } from "node:fs"
import { SourceMap, type SourceMapPayload } from "node:module"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { FileSystem, HttpMiddleware, HttpServer } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { Console, Data, Effect, Layer, Option, Predicate, Queue, RuntimeFlags } from "effect"
import { banner, findExamples, firstStart } from "./Banner.ts"
import * as Gateway from "./Gateway.ts"
import { hasPublicUrl, type Settings, warnings } from "./Settings.ts"
import { Catalog, readCatalogFile } from "./services/catalog/Catalog.ts"
import { CatalogInvalid } from "./services/catalog/CatalogSource.ts"
import { ControlFollower, Reloads } from "./services/control/ControlFollower.ts"
import { recordRunning } from "./services/instance/RunningGateway.ts"
import { ownFile } from "./services/runtime/System.ts"
import { readEnvironment, type SettingsInvalid } from "./settings/Environment.ts"

const isPayload = (value: unknown): value is SourceMapPayload =>
  Predicate.hasProperty(value, "mappings") &&
  Predicate.isString(value.mappings) &&
  Predicate.hasProperty(value, "sources") &&
  Array.isArray(value.sources)

const root = ownFile(".")

/** Not cached: each stack trace reads the map again, because the decoded map of one chunk takes some 30 MB. */
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

/** Returns the position in the source file. Lines and columns count from 1. */
const sourceOf = (map: SourceMap | undefined, line: number, column: number): string | undefined => {
  const entry = map?.findEntry(line - 1, column - 1)
  // If the line has no mapping before the column, `findEntry` returns one of an earlier line.
  return entry !== undefined && "originalSource" in entry && entry.generatedLine === line - 1
    ? `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
    : undefined
}

const generated = /(file:\/\/[^\s()"]+\.js):(\d+):(\d+)/g

const sourcePositions = new Map<string, string>()
const maxSourcePositions = 10_000

/** In a stack trace, replaces positions in bundled files by those in the sources, such as `src/main.ts:12:3`. */
const mapToSources = (text: string): string => {
  if (sourcePositions.size > maxSourcePositions) sourcePositions.clear()
  const maps = new Map<string, SourceMap | undefined>()
  return text.replaceAll(generated, (position, url: string, line: string, column: string) => {
    const source = sourcePositions.get(position)
    if (source !== undefined) return source
    if (!maps.has(url)) maps.set(url, readMap(url))
    const found = sourceOf(maps.get(url), Number(line), Number(column)) ?? position
    sourcePositions.set(position, found)
    return found
  })
}

const mapIfText = (value: unknown) => (typeof value === "string" ? mapToSources(value) : value)

const stackTraceLayer = Layer.unwrapScoped(
  Effect.gen(function* () {
    const own = yield* Console.consoleWith(Effect.succeed)
    const onFatal = (error: unknown) => {
      if (error instanceof Error && error.stack !== undefined) error.stack = mapToSources(error.stack)
    }
    yield* Effect.acquireRelease(
      Effect.sync(() => process.on("uncaughtExceptionMonitor", onFatal)),
      () => Effect.sync(() => process.off("uncaughtExceptionMonitor", onFatal))
    )
    const error = (...values: ReadonlyArray<unknown>) => own.unsafe.error(...values.map(mapIfText))
    return Console.setConsole({ ...own, unsafe: { ...own.unsafe, error } })
  })
)

const reachableHost = (host: string) => (host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host)

const listeningUrl = (settings: Settings) =>
  Effect.map(HttpServer.HttpServer, ({ address }) => {
    const host = reachableHost(settings.host)
    const port = address._tag === "TcpAddress" ? address.port : settings.port
    return `http://${host.includes(":") ? `[${host}]` : host}:${port}`
  })

/** Records where the gateway listens, for commands on this machine. Workers share the address of their main process. */
const recordAddress = (settings: Settings) =>
  Effect.flatMap(listeningUrl(settings), (url) => {
    const publicUrl = hasPublicUrl(settings) ? settings.publicUrl : url
    return recordRunning(settings.dataDir, { url, publicUrl }, cluster.isWorker ? process.ppid : process.pid)
  })

/** Records and reports the address, then prints the banner. */
export const announce = (settings: Settings, onListening: (url: string) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const catalog = (yield* Catalog).current
    const url = yield* listeningUrl(settings)
    const first = settings.databaseUrl === undefined ? yield* firstStart : Option.none()
    const examples = yield* findExamples
    for (const warning of warnings(settings)) yield* Effect.logWarning(warning)
    yield* onListening(url)
    yield* Console.log(banner({ settings, url, catalog, first, examples }))
  })

/**
 * Disables Effect's spans, because `Tracing` makes the exported ones. The names of `Effect.fn` still appear in stack traces.
 */
export const withoutOwnSpans = Layer.mergeAll(
  Layer.setTracerEnabled(false),
  // Without this, the HTTP server computes attributes for a disabled span at every request.
  Layer.scopedDiscard(Effect.locallyScoped(HttpMiddleware.currentTracerDisabledWhen, () => true)),
  RuntimeFlags.disableRuntimeMetrics
)

/** Obeys OpenTelemetry's standard settings, because clusters set them for all programs. */
const sendsTraces = ({ otelSdkDisabled, otelTracesExporter }: Settings): boolean =>
  !otelSdkDisabled && otelTracesExporter.split(",").some((exporter) => exporter.trim() === "otlp")

const tracing = (settings: Settings) => {
  const { otlpEndpoint, otlpTracesEndpoint } = settings
  const url = otlpTracesEndpoint ?? (otlpEndpoint && `${otlpEndpoint}/v1/traces`)
  if (url === undefined || !sendsTraces(settings)) return Layer.empty
  const otlp = Effect.promise(() => import("./tracing/Otlp.ts"))
  return Layer.unwrapEffect(Effect.map(otlp, ({ layer }) => layer(url, settings)))
}

class CannotListen extends Data.TaggedError("CannotListen")<{ readonly message: string }> {}

const cannotListen = ({ host, port }: Settings, cause: unknown) => {
  const reason = cause instanceof Error ? cause.message : String(cause)
  const message = reason.includes("EADDRINUSE")
    ? `${host}:${port} is already in use. Set PORT or HOST to a free address.`
    : `The gateway cannot listen on ${host}:${port}: ${reason}.`
  return new CannotListen({ message })
}

const reloadAfter = (signals: Queue.Dequeue<void>) =>
  Effect.flatMap(ControlFollower, ({ reload }) =>
    Queue.take(signals).pipe(Effect.zipRight(reload), Effect.forever, Effect.forkScoped)
  )

/**
 * Releases some 50 MB before the first request, through the inspector. V8 keeps the size that its young generation reached
 * during the start, and `gc()` does not shrink it.
 */
const releaseStartMemory = Effect.gen(function* () {
  // Fails in builds of Node without the inspector.
  const { Session } = yield* Effect.tryPromise(() => import("node:inspector"))
  yield* Effect.acquireUseRelease(
    Effect.try(() => {
      const session = new Session()
      session.connect()
      return session
    }),
    (session) => Effect.async<void>((resume) => session.post("HeapProfiler.collectGarbage", () => resume(Effect.void))),
    (session) => Effect.sync(() => session.disconnect())
  )
}).pipe(Effect.timeout("10 seconds"), Effect.ignore)

interface Launch {
  readonly settings: Settings
  readonly onReady: ReturnType<typeof announce>
  readonly reloads: Queue.Dequeue<void>
}

const environmentUnreadable = ({ message }: SettingsInvalid) =>
  new CatalogInvalid({ problems: [{ file: ".env", line: 1, key: "", message }] })

/** Runs a gateway until the effect is interrupted. */
export const launch = ({ onReady, reloads, settings }: Launch) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const readCatalog = Effect.all({
      source: readCatalogFile(settings.catalogFile ?? ownFile("catalog.yaml")),
      environment: Effect.mapError(readEnvironment(), environmentUnreadable)
    }).pipe(Effect.provideService(FileSystem.FileSystem, files))
    return yield* Layer.launch(
      Layer.scopedDiscard(
        Effect.all([reloadAfter(reloads), releaseStartMemory, recordAddress(settings), onReady], { discard: true })
      ).pipe(
        Layer.provide(Gateway.layer({ settings, readCatalog })),
        Layer.provide(Gateway.database(settings)),
        Layer.provide(Reloads.layer)
      )
    )
  }).pipe(
    Effect.catchTag("ServeError", ({ cause }) => cannotListen(settings, cause)),
    Effect.provide(Layer.mergeAll(NodeContext.layer, tracing(settings), withoutOwnSpans, stackTraceLayer))
  )
