import cluster from "node:cluster"
import { isatty } from "node:tty"
import { FileSystem, HttpMiddleware, HttpServer } from "@effect/platform"
import { NodeContext } from "@effect/platform-node"
import { Console, Data, Effect, Layer, Option, Queue, Redacted, RuntimeFlags } from "effect"
import { banner } from "./Banner.ts"
import { firstStart } from "./FirstStart.ts"
import * as Gateway from "./Gateway.ts"
import * as Logging from "./Logging.ts"
import { type Environment, rereadEnvironment, type Settings, type SettingsInvalid, warnings } from "./Settings.ts"
import * as StackTraces from "./StackTraces.ts"
import { Catalog, readCatalogFile } from "./services/catalog/Catalog.ts"
import { CatalogInvalid } from "./services/catalog/Problem.ts"
import { ControlFollower } from "./services/control/ControlFollower.ts"
import { ownFile } from "./services/runtime/OwnFiles.ts"
import { giveBackStartMemory } from "./services/runtime/StartMemory.ts"
import * as Worker from "./workers/Worker.ts"
import * as Workers from "./workers/Workers.ts"

const reachableHost = (host: string) => (host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host)

const announce = (settings: Settings) =>
  Effect.gen(function* () {
    const { models, sandbox } = (yield* Catalog).current
    const { address } = yield* HttpServer.HttpServer
    const host = reachableHost(settings.host)
    const port = address._tag === "TcpAddress" ? address.port : settings.port
    const url = `http://${host.includes(":") ? `[${host}]` : host}:${port}`
    const first = settings.databaseUrl === undefined ? yield* firstStart : Option.none()
    for (const warning of warnings(settings)) yield* Effect.logWarning(warning)
    yield* Console.log(banner({ settings, url, models, sandbox, first }))
    return url
  })

/** The second signal ends everything at once, but not the first one's echo: a terminal and npm both pass it on. */
const exitOnSecondSignal = (endAtOnce: () => void) =>
  Layer.effectDiscard(
    Effect.sync(() => {
      let first: number | undefined
      const onSignal = (signal: NodeJS.Signals) => {
        const now = performance.now()
        first ??= now
        if (now - first < 1000) return
        process.stderr.write(`${signal} again: stopping at once\n`)
        endAtOnce()
        process.exit(1)
      }
      process.on("SIGINT", onSignal).on("SIGTERM", onSignal)
    })
  )

/** The gateway makes the spans that it exports; names given to `Effect.fn` still name the frames of stack traces. */
export const withoutOwnSpans = Layer.mergeAll(
  Layer.setTracerEnabled(false),
  // The server would describe each request for a span that is never made.
  Layer.scopedDiscard(Effect.locallyScoped(HttpMiddleware.currentTracerDisabledWhen, () => true)),
  RuntimeFlags.disableRuntimeMetrics
)

const tracing = (settings: Settings) => {
  const { otelResourceAttributes, otelServiceName, otlpEndpoint, otlpHeaders, otlpTracesEndpoint } = settings
  const url = otlpTracesEndpoint ?? (otlpEndpoint && `${otlpEndpoint}/v1/traces`)
  if (url === undefined) return Layer.empty
  return Layer.unwrapEffect(
    Effect.map(
      Effect.promise(() => import("./tracing/Otlp.ts")),
      (otlp) =>
        otlp.layer({
          url,
          headers: otlpHeaders === undefined ? {} : Redacted.value(otlpHeaders),
          protocol: settings.otlpProtocol,
          resource: {
            "service.name": "generation-gateway",
            ...otelResourceAttributes,
            ...(otelServiceName !== undefined && { "service.name": otelServiceName })
          },
          sampler: settings.tracesSampler,
          ratio: settings.tracesSamplerArg
        })
    )
  )
}

class CannotListen extends Data.TaggedError("CannotListen")<{ readonly message: string }> {}

const cannotListen = ({ host, port }: Settings, cause: unknown) => {
  const reason = cause instanceof Error ? cause.message : String(cause)
  const message = reason.includes("EADDRINUSE")
    ? `Another program listens on ${host}:${port}; set PORT or HOST to something free.`
    : `The gateway cannot listen on ${host}:${port}: ${reason}.`
  return new CannotListen({ message })
}

/** Signals to read the catalog again; a terminal that closes stops the gateway as ever. */
const hangups = Effect.gen(function* () {
  const signals = yield* Queue.sliding<void>(1)
  const terminals = [0, 1, 2].filter((stream) => isatty(stream))
  const onHangup = () => {
    if (terminals.some((stream) => !isatty(stream))) process.kill(process.pid, "SIGTERM")
    else Queue.unsafeOffer(signals, undefined)
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => process.on("SIGHUP", onHangup)),
    () => Effect.sync(() => process.off("SIGHUP", onHangup))
  )
  return signals
})

const reloadAfter = (signals: Queue.Dequeue<void>) =>
  Effect.flatMap(ControlFollower, ({ reload }) =>
    Queue.take(signals).pipe(Effect.zipRight(reload), Effect.forever, Effect.forkScoped)
  )

interface Launch {
  readonly settings: Settings
  readonly onReady: ReturnType<typeof announce>
  readonly reloads: Queue.Dequeue<void>
}

const environmentUnreadable = ({ message }: SettingsInvalid) =>
  new CatalogInvalid({ problems: [{ file: ".env", line: 1, key: "", message }] })

const launch = ({ onReady, reloads, settings }: Launch) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const readCatalog = Effect.all({
      source: readCatalogFile(settings.catalogFile ?? ownFile("catalog.yaml")),
      environment: Effect.mapError(rereadEnvironment, environmentUnreadable)
    }).pipe(Effect.provideService(FileSystem.FileSystem, files))
    return yield* Layer.launch(
      Layer.scopedDiscard(
        Effect.all([reloadAfter(reloads), Effect.forkScoped(giveBackStartMemory), onReady], { discard: true })
      ).pipe(Layer.provide(Gateway.layer({ settings, readCatalog })), Layer.provide(Gateway.database(settings)))
    )
  }).pipe(
    Effect.catchTag("ServeError", ({ cause }) => cannotListen(settings, cause)),
    Effect.provide(Layer.mergeAll(NodeContext.layer, tracing(settings), withoutOwnSpans, StackTraces.layer))
  )

const serveAlone = (settings: Settings) =>
  Effect.gen(function* () {
    const onReady = Effect.tap(announce(settings), (url) => Effect.logInfo(`Listening on ${url}`))
    return yield* launch({ settings, onReady, reloads: yield* hangups })
  }).pipe(Effect.scoped, Effect.provide(exitOnSecondSignal(() => {})))

const serveAsWorker = (settings: Settings) =>
  Effect.gen(function* () {
    const { announced, awaitAnnouncing, layer, reloads } = yield* Worker.connect
    const onReady = Effect.zipRight(awaitAnnouncing, Effect.tap(announce(settings), announced))
    return yield* Effect.provide(launch({ settings, onReady, reloads }), layer)
  }).pipe(Effect.scoped)

const serveByWorkers = ({ workers }: Settings, environment: Environment) =>
  Effect.flatMap(hangups, (signals) => Workers.run({ count: workers, environment, hangups: signals })).pipe(
    Effect.scoped,
    Effect.provide(exitOnSecondSignal(Workers.killAll))
  )

export const serve = (settings: Settings, environment: Environment) => {
  const { isWorker, worker } = cluster
  const program = Effect.suspend(() => {
    if (isWorker) return serveAsWorker(settings)
    return settings.workers === 1 ? serveAlone(settings) : serveByWorkers(settings, environment)
  })
  return program.pipe(
    Effect.onInterrupt(() => Effect.logInfo("Stopped")),
    Effect.annotateLogs(worker === undefined ? {} : { worker: worker.id }),
    Effect.provide(Logging.layer({ ...settings, worker: worker?.id }))
  )
}
