import { Effect, Predicate } from "effect"
import { timeText, withoutControls } from "../domain/Csv.ts"
import { toUsd, toUsdText } from "../domain/Money.ts"
import { CommandFailed } from "./CommandFailed.ts"
import * as Table from "./Table.ts"

/** Bigints are amounts in nano-USD. */
type Value =
  | string
  | number
  | boolean
  | null
  | bigint
  | Date
  | ReadonlyArray<Value>
  | { readonly [key: string]: Value | undefined }
export type Fields = { readonly [key: string]: Value | undefined }

const unixSeconds = (date: Date) => Math.floor(date.getTime() / 1000)

const isFields = (value: Value): value is Fields => Predicate.isRecord(value) && !(value instanceof Date)

const toPlain = (value: Value | undefined): unknown => {
  if (typeof value === "bigint") return toUsd(value)
  if (value instanceof Date) return unixSeconds(value)
  if (Array.isArray(value)) return value.map(toPlain)
  if (value !== undefined && value !== null && isFields(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, toPlain(inner)]))
  }
  return value
}

/** Amounts as USD numbers, times as Unix seconds. */
export const toJson = (value: Value, indent = 2): string => JSON.stringify(toPlain(value), null, indent)

const cell = (value: Value | undefined): string => {
  if (value === undefined || value === null || value === "") return "-"
  if (typeof value === "bigint") return toUsdText(value)
  if (value instanceof Date) return timeText(value)
  if (Array.isArray(value)) return value.length === 0 ? "-" : value.map(cell).join(",")
  return withoutControls(typeof value === "object" ? toJson(value, 0) : String(value))
}

/** Undefined where stdout is no terminal. */
const terminalWidth = () => (process.stdout.isTTY ? process.stdout.columns || undefined : undefined)

export const layOut = (rows: ReadonlyArray<Fields>, columns: ReadonlyArray<string>, width = terminalWidth()) =>
  Table.make(
    columns,
    rows.map((row) => columns.map((column) => cell(row[column]))),
    width ?? Infinity
  )

export const table = (
  rows: ReadonlyArray<Fields>,
  columns: ReadonlyArray<string>,
  none: string,
  width?: number
): string => {
  if (rows.length === 0) return none
  const { heading, lines, remark } = layOut(rows, columns, width)
  return [heading, ...lines, ...(remark === undefined ? [] : [remark])].join("\n")
}

export const sheet = (fields: Fields): string => {
  const width = Math.max(...Object.keys(fields).map((key) => key.length))
  return Object.entries(fields)
    .map(([key, value]) => `${key.padEnd(width)}  ${cell(value)}`)
    .join("\n")
}

const ignore = () => {}

/** A closed pipe (`| head`) ends the command without an error. */
export const print = (text: string): Effect.Effect<void, CommandFailed> =>
  Effect.async<void, CommandFailed>((resume) => {
    // Without a listener the error would end the process.
    if (!process.stdout.listeners("error").includes(ignore)) process.stdout.on("error", ignore)
    process.stdout.write(`${text}\n`, (error) => {
      if (error === null || error === undefined) return resume(Effect.void)
      const gone = "code" in error && error.code === "EPIPE"
      return resume(gone ? Effect.interrupt : new CommandFailed({ message: `stdout: ${error.message}` }))
    })
  })

/** A `failure` still prints the document, and the text where there is one. */
export interface Output {
  readonly document: Value
  readonly text: string | undefined
  readonly failure?: string | undefined
  /** What was accepted and may be a mistake; on stderr. */
  readonly warnings?: ReadonlyArray<string> | undefined
}

export const warn = (warning: string): Effect.Effect<void> =>
  Effect.sync(() => process.stderr.write(`gateway: warning: ${warning}\n`))

export const record = (fields: Fields, remark = ""): Output => ({
  document: fields,
  text: remark === "" ? sheet(fields) : `${sheet(fields)}\n\n${remark}`
})

export const list = (
  rows: ReadonlyArray<Fields>,
  { columns, none }: { readonly columns: ReadonlyArray<string>; readonly none: string }
): Output => ({ document: { data: rows }, text: table(rows, columns, none) })
