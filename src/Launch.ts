import cluster from "node:cluster"
import { FileSystem, HttpMiddleware, HttpServer } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { Console, Data, Effect, Layer, Option, Queue, RuntimeFlags } from "effect"
import { banner, findExamples, firstStart } from "./Banner.ts"
import * as Gateway from "./Gateway.ts"
import { hasPublicUrl, type Settings, warnings } from "./Settings.ts"
import * as StackTraces from "./StackTraces.ts"
import { Catalog, readCatalogFile } from "./services/catalog/Catalog.ts"
import { CatalogInvalid } from "./services/catalog/Problem.ts"
import { ControlFollower } from "./services/control/ControlFollower.ts"
import { Reloads } from "./services/control/Reloads.ts"
import { recordRunning } from "./services/instance/RunningGateway.ts"
import { ownFile } from "./services/runtime/System.ts"
import { readEnvironment, type SettingsInvalid } from "./settings/Environment.ts"

const reachableHost = (host: string) => (host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host)

const listeningUrl = (settings: Settings) =>
  Effect.map(HttpServer.HttpServer, ({ address }) => {
    const host = reachableHost(settings.host)
    const port = address._tag === "TcpAddress" ? address.port : settings.port
    return `http://${host.includes(":") ? `[${host}]` : host}:${port}`
  })

/** Workers share the address of the process that started them. */
const recordAddress = (settings: Settings) =>
  Effect.flatMap(listeningUrl(settings), (url) => {
    const publicUrl = hasPublicUrl(settings) ? settings.publicUrl : url
    return recordRunning(settings.dataDir, { url, publicUrl }, cluster.isWorker ? process.ppid : process.pid)
  })

/** Calls `onListening` with the address, then prints the banner. */
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

/** The gateway makes the spans that it exports; names given to `Effect.fn` still name the frames of stack traces. */
export const withoutOwnSpans = Layer.mergeAll(
  Layer.setTracerEnabled(false),
  // The server would describe each request for a span that is never made.
  Layer.scopedDiscard(Effect.locallyScoped(HttpMiddleware.currentTracerDisabledWhen, () => true)),
  RuntimeFlags.disableRuntimeMetrics
)

/** OpenTelemetry's own switches, which clusters set for all their programs. */
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
    ? `Another program listens on ${host}:${port}; set PORT or HOST to something free.`
    : `The gateway cannot listen on ${host}:${port}: ${reason}.`
  return new CannotListen({ message })
}

const reloadAfter = (signals: Queue.Dequeue<void>) =>
  Effect.flatMap(ControlFollower, ({ reload }) =>
    Queue.take(signals).pipe(Effect.zipRight(reload), Effect.forever, Effect.forkScoped)
  )

/**
 * Gives back some 50 MB of a start, before there are requests to wait for it: V8 keeps its young generation as large as the
 * start made it, and `gc()` leaves it so.
 */
const giveBackStartMemory = Effect.gen(function* () {
  // Not every build of Node has it.
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

/** One gateway, until it is interrupted. */
export const launch = ({ onReady, reloads, settings }: Launch) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const readCatalog = Effect.all({
      source: readCatalogFile(settings.catalogFile ?? ownFile("catalog.yaml")),
      environment: Effect.mapError(readEnvironment(), environmentUnreadable)
    }).pipe(Effect.provideService(FileSystem.FileSystem, files))
    return yield* Layer.launch(
      Layer.scopedDiscard(
        Effect.all([reloadAfter(reloads), giveBackStartMemory, recordAddress(settings), onReady], { discard: true })
      ).pipe(
        Layer.provide(Gateway.layer({ settings, readCatalog })),
        Layer.provide(Gateway.database(settings)),
        Layer.provide(Reloads.layer)
      )
    )
  }).pipe(
    Effect.catchTag("ServeError", ({ cause }) => cannotListen(settings, cause)),
    Effect.provide(Layer.mergeAll(NodeContext.layer, tracing(settings), withoutOwnSpans, StackTraces.layer))
  )
