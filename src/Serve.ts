import cluster from "node:cluster"
import { isatty } from "node:tty"
import { Effect, Layer, Logger, LogLevel, Queue } from "effect"
import type { Settings } from "./Settings.ts"
import { jsonLogger, textLogger } from "./services/telemetry/LogFormat.ts"
import { RequestLines, timeOfDay } from "./services/telemetry/RequestLines.ts"
import * as Workers from "./workers/Workers.ts"

const colours: Readonly<Record<string, number>> = { DEBUG: 34, INFO: 32, WARN: 33, ERROR: 31, FATAL: 31 }

const paint = (text: string, colour: number | undefined) =>
  colour !== undefined && process.stderr.isTTY && process.stderr.hasColors()
    ? `\u001b[${colour}m${text}\u001b[0m`
    : text

const prettyLogger = textLogger(
  ({ logLevel, timestamp }) => `[${timeOfDay(new Date(timestamp))}] ${paint(logLevel, colours[logLevel])}: `
)

const loggers = { json: Logger.withConsoleError(jsonLogger), pretty: Logger.withConsoleError(prettyLogger) }

/** Logs go to stderr, because stdout is for the output of commands. */
export const logging = ({
  logFormat,
  logLevel,
  worker
}: Pick<Settings, "logFormat" | "logLevel"> & { readonly worker: number | undefined }) =>
  Layer.mergeAll(
    Logger.replace(Logger.defaultLogger, loggers[logFormat]),
    Logger.minimumLogLevel(logLevel),
    LogLevel.lessThanEqual(logLevel, LogLevel.Info) ? RequestLines.layer({ format: logFormat, worker }) : Layer.empty
  )

/** Loads the gateway's code only in a process that serves requests. With several workers, the main process serves none. */
const loadGateway = Effect.promise(() => import("./Launch.ts"))

/**
 * Exits immediately at a second signal. Ignores one within a second of the first, because both a terminal and npm send the
 * first.
 */
const exitOnSecondSignal = (beforeExit: () => void) =>
  Layer.effectDiscard(
    Effect.sync(() => {
      let first: number | undefined
      const onSignal = (signal: NodeJS.Signals) => {
        const now = performance.now()
        first ??= now
        if (now - first < 1000) return
        process.stderr.write(`Received ${signal} again: exiting now\n`)
        beforeExit()
        process.exit(1)
      }
      process.on("SIGINT", onSignal).on("SIGTERM", onSignal)
    })
  )

/** Returns a queue with a reload request for each SIGHUP. If the terminal was closed, SIGHUP stops the gateway instead. */
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

const serveInProcess = (settings: Settings) =>
  Effect.gen(function* () {
    const reloads = yield* hangups
    const { announce, launch } = yield* loadGateway
    const onReady = announce(settings, (url) => Effect.logInfo(`Listening on ${url}`))
    return yield* launch({ settings, onReady, reloads })
  }).pipe(Effect.scoped, Effect.provide(exitOnSecondSignal(() => {})))

const serveAsWorker = (settings: Settings) =>
  Effect.gen(function* () {
    const { layer, ready, reloads } = yield* Workers.connectToMain
    const { announce, launch } = yield* loadGateway
    const announceWorkers = announce(settings, (url) =>
      Effect.logInfo(`Listening on ${url} with ${settings.workers} workers`)
    )
    const onReady = cluster.worker?.id === 1 ? Effect.zipRight(announceWorkers, ready) : ready
    return yield* Effect.provide(launch({ settings, onReady, reloads }), layer)
  }).pipe(Effect.scoped)

const killWorkers = () => {
  for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill("SIGKILL")
}

const serveWithWorkers = ({ workers }: Settings) =>
  Effect.flatMap(hangups, (signals) => Workers.run(workers, signals)).pipe(
    Effect.scoped,
    Effect.provide(exitOnSecondSignal(killWorkers))
  )

export const serve = (settings: Settings) => {
  const { isWorker, worker } = cluster
  const program = Effect.suspend(() => {
    if (isWorker) return serveAsWorker(settings)
    return settings.workers === 1 ? serveInProcess(settings) : serveWithWorkers(settings)
  })
  return program.pipe(
    Effect.onInterrupt(() => Effect.logInfo("Stopped")),
    Effect.annotateLogs(worker === undefined ? {} : { worker: worker.id }),
    Effect.provide(logging({ ...settings, worker: worker?.id }))
  )
}
