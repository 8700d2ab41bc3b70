import { inspect } from "node:util"
import { Array as Arr, Logger, Record } from "effect"

/** Omits empty fields, and the fiber's id, which does not help operators. */
const fields = Logger.map(Logger.structuredLogger, ({ annotations, cause, logLevel, message, spans, timestamp }) => ({
  timestamp,
  logLevel,
  message,
  ...(cause !== undefined && { cause }),
  ...(!Record.isEmptyRecord(annotations) && { annotations }),
  ...(!Record.isEmptyRecord(spans) && { spans })
}))

/** Writes bigints as strings. Omits repeated objects, because references may be circular. */
const toJson = (entry: object): string => {
  const printed = new Set<unknown>()
  return JSON.stringify(entry, (_key, value: unknown) => {
    if (typeof value === "bigint") return String(value)
    if (typeof value !== "object" || value === null) return value
    if (printed.has(value)) return undefined
    printed.add(value)
    return value
  })
}

export const jsonLogger = Logger.map(fields, toJson)

const shortEscapes: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }

const escapeControls = (text: string): string =>
  text.replace(
    /[\p{Cc}\u2028\u2029]/gu,
    (control) => shortEscapes[control] ?? `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`
  )

const toText = (value: unknown): string =>
  escapeControls(typeof value === "string" ? value : inspect(value, { breakLength: Infinity, compact: true }))

/**
 * Prints the message, the annotations and the spans in one line that begins with `prefixOf`, and escapes control characters.
 * The cause follows in indented lines.
 */
export const textLogger = (prefixOf: (entry: { readonly logLevel: string; readonly timestamp: string }) => string) =>
  Logger.map(fields, ({ annotations = {}, cause, logLevel, message, spans = {}, timestamp }) => {
    const parts = [
      Arr.ensure(message).map(toText).join(" "),
      ...Object.entries(annotations).map(([name, value]) => `${escapeControls(name)} ${toText(value)}`),
      ...Object.entries(spans).map(([name, millis]) => `${escapeControls(name)} ${millis} ms`)
    ]
    const line = `${prefixOf({ logLevel, timestamp })}${parts.join(" · ")}`
    return cause === undefined ? line : `${line}\n${cause.replace(/^/gm, "  ")}`
  })
