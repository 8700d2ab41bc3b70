import { inspect } from "node:util"
import { Array as Arr, Inspectable, Layer, Logger, LogLevel, Record } from "effect"
import type { Settings } from "./Settings.ts"
import { RequestLines, timeOfDay } from "./services/telemetry/RequestLines.ts"

/** The fields of a line, without those that are empty and without the fiber, which tells an operator nothing. */
const fields = Logger.map(Logger.structuredLogger, ({ annotations, cause, logLevel, message, spans, timestamp }) => ({
  timestamp,
  logLevel,
  message,
  ...(cause !== undefined && { cause }),
  ...(!Record.isEmptyRecord(annotations) && { annotations }),
  ...(!Record.isEmptyRecord(spans) && { spans })
}))

const colours: Readonly<Record<string, number>> = { DEBUG: 34, INFO: 32, WARN: 33, ERROR: 31, FATAL: 31 }

const paint = (text: string, colour: number | undefined) =>
  colour !== undefined && process.stderr.isTTY && process.stderr.hasColors()
    ? `\u001b[${colour}m${text}\u001b[0m`
    : text

const toText = (value: unknown): string => (typeof value === "string" ? value : inspect(value))

/** The message with its annotations in the first line, as in the lines of requests; then the cause, indented. */
const pretty = Logger.map(fields, ({ annotations = {}, cause, logLevel, message, spans = {}, timestamp }) => {
  const [first = "", ...others] = Arr.ensure(message).map(toText)
  const parts = [
    first,
    ...Object.entries(annotations).map(([name, value]) => `${name} ${toText(value)}`),
    ...Object.entries(spans).map(([name, millis]) => `${name} ${millis} ms`)
  ]
  const head = `[${timeOfDay(new Date(timestamp))}] ${paint(logLevel, colours[logLevel])}: ${parts.join(" · ")}`
  const details = [...others, ...(cause === undefined ? [] : [cause])]
  return [head, ...details.map((detail) => detail.replace(/^/gm, "  "))].join("\n")
})

const loggers = {
  json: Logger.withConsoleError(Logger.map(fields, (line) => Inspectable.stringifyCircular(line))),
  pretty: Logger.withConsoleError(pretty)
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
