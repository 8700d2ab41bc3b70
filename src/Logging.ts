import { Layer, Logger, LogLevel } from "effect"
import type { Settings } from "./Settings.ts"
import { jsonLogger, textLogger } from "./services/telemetry/LogFormat.ts"
import { RequestLines, timeOfDay } from "./services/telemetry/RequestLines.ts"

const colours: Readonly<Record<string, number>> = { DEBUG: 34, INFO: 32, WARN: 33, ERROR: 31, FATAL: 31 }

const paint = (text: string, colour: number | undefined) =>
  colour !== undefined && process.stderr.isTTY && process.stderr.hasColors()
    ? `\u001b[${colour}m${text}\u001b[0m`
    : text

const prettyLogger = textLogger(
  ({ logLevel, timestamp }) => `[${timeOfDay(new Date(timestamp))}] ${paint(logLevel, colours[logLevel])}: `
)

const loggers = { json: Logger.withConsoleError(jsonLogger), pretty: Logger.withConsoleError(prettyLogger) }

/** Stdout is for what a command prints. */
export const layer = ({
  logFormat,
  logLevel,
  worker
}: Pick<Settings, "logFormat" | "logLevel"> & { readonly worker: number | undefined }) =>
  Layer.mergeAll(
    Logger.replace(Logger.defaultLogger, loggers[logFormat]),
    Logger.minimumLogLevel(logLevel),
    LogLevel.lessThanEqual(logLevel, LogLevel.Info) ? RequestLines.layer({ format: logFormat, worker }) : Layer.empty
  )
