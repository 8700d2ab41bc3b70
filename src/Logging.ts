import { Inspectable, Layer, Logger, LogLevel, Record } from "effect"
import type { Settings } from "./Settings.ts"
import { RequestLines, timeOfDay } from "./services/telemetry/RequestLines.ts"

/** One line each, without what is empty. */
const json = Logger.map(Logger.structuredLogger, ({ annotations, spans, ...line }) =>
  Inspectable.stringifyCircular({
    ...line,
    ...(Record.isEmptyRecord(annotations) ? {} : { annotations }),
    ...(Record.isEmptyRecord(spans) ? {} : { spans })
  })
)

const loggers = {
  json: Logger.withConsoleError(json),
  pretty: Logger.prettyLogger({ stderr: true, formatDate: timeOfDay })
}

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
