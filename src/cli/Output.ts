import { Effect, Predicate } from "effect"
import { timeText, withoutControls } from "../domain/Csv.ts"
import { toUsd, toUsdText } from "../domain/Money.ts"
import { pluralize } from "../domain/Wording.ts"
import { CommandFailed } from "../ExitCode.ts"

// The package string-width would replace these few lines but bring three dependencies.
const ascii = /^[ -~]*$/
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|\ufe0f/u
const invisible = /^\p{M}+$/u

const segmenter = new Intl.Segmenter()

const graphemes = (text: string) => Array.from(segmenter.segment(text), ({ segment }) => segment)

const graphemeWidth = (grapheme: string) => (invisible.test(grapheme) ? 0 : wide.test(grapheme) ? 2 : 1)

/** Returns the number of terminal columns for a text without control characters. */
export const textWidth = (text: string): number =>
  ascii.test(text) ? text.length : graphemes(text).reduce((sum, grapheme) => sum + graphemeWidth(grapheme), 0)

/** Shortens a text to `width` terminal columns. A shortened text ends with an ellipsis. */
export const truncate = (text: string, width: number): string => {
  if (textWidth(text) <= width) return text
  let result = ""
  let remaining = width - 1
  for (const grapheme of graphemes(text)) {
    remaining -= graphemeWidth(grapheme)
    if (remaining < 0) break
    result += grapheme
  }
  return `${result}…`
}

export const padEnd = (text: string, width: number) => text + " ".repeat(Math.max(0, width - textWidth(text)))
export const padStart = (text: string, width: number) => " ".repeat(Math.max(0, width - textWidth(text))) + text

interface Column {
  readonly name: string
  readonly heading: string
  readonly texts: ReadonlyArray<string>
  readonly width: number
  readonly isNumber: boolean
}

// Not from @effect/printer, which has no tables and counts a wide character as one column.
export interface Table {
  readonly heading: string
  readonly lines: ReadonlyArray<string>
  /** A sentence that names the hidden columns. Undefined if none is hidden. */
  readonly remark: string | undefined
}

const gap = "  "

/** Columns whose texts may be shortened. Other columns, such as ids and amounts, are shown in full or hidden. */
const shortenable = new Set(["detail", "failure", "last_error", "name", "note", "state", "url", "user_agent"])
const minShortenedWidth = 12

const minWidth = ({ heading, name, width }: Column) =>
  shortenable.has(name) ? Math.min(width, Math.max(minShortenedWidth, heading.length)) : width

const totalWidth = (columns: ReadonlyArray<Column>, widthOf: (column: Column) => number) =>
  columns.reduce((sum, column) => sum + widthOf(column) + gap.length, -gap.length)

const isEmpty = ({ texts }: Column) => texts.every((text) => text === "-")

/** Hides empty columns first, then the others from the right. Always keeps the first column and ids. */
const hideColumns = (columns: ReadonlyArray<Column>, maxWidth: number): ReadonlyArray<Column> => {
  if (totalWidth(columns, minWidth) <= maxWidth) return columns
  const droppable = columns.filter(({ name }, index) => index > 0 && !/^(request_)?id$/.test(name))
  const next = droppable.findLast(isEmpty) ?? droppable.at(-1)
  return next === undefined
    ? columns
    : hideColumns(
        columns.filter((column) => column !== next),
        maxWidth
      )
}

/** Narrows the widest shortenable column first. */
const shrinkColumns = (columns: ReadonlyArray<Column>, maxWidth: number): ReadonlyArray<Column> => {
  const excess = totalWidth(columns, ({ width }) => width) - maxWidth
  const shrinkable = columns.filter((column) => column.width > minWidth(column)).toSorted((a, b) => b.width - a.width)
  const [widest, next] = shrinkable
  if (excess <= 0 || widest === undefined) return columns
  const width = Math.max(widest.width - excess, minWidth(widest), Math.min(next?.width ?? 0, widest.width - 1))
  return shrinkColumns(
    columns.map((column) => (column === widest ? { ...column, width } : column)),
    maxWidth
  )
}

const isNumeric = (texts: ReadonlyArray<string>) =>
  texts.every((text) => /^(-|-?[\d.]+)$/.test(text)) && texts.some((text) => text !== "-")

const fractionOf = (text: string) => /\..*$/.exec(text)?.[0] ?? ""

/** Pads numbers so that their decimal points stand below each other. */
const alignPoints = (texts: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (!isNumeric(texts)) return texts
  const width = Math.max(...texts.map((text) => fractionOf(text).length))
  return texts.map((text) => (text === "-" ? text : text + " ".repeat(width - fractionOf(text).length)))
}

const layOutCell = ({ isNumber, width }: Column) =>
  isNumber ? (text: string) => padStart(text, width) : (text: string) => padEnd(truncate(text, width), width)

/** Hides columns and shortens texts to fit `maxWidth`. The terminal wraps a table that is still too wide. */
const makeTable = (
  names: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  maxWidth: number
): Table => {
  const columns = names.map((name, index): Column => {
    const heading = name.toUpperCase()
    const cells = rows.map((row) => row[index] ?? "")
    const texts = alignPoints(cells)
    return {
      name,
      heading,
      texts,
      isNumber: isNumeric(cells),
      width: texts.reduce((max, text) => Math.max(max, textWidth(text)), heading.length)
    }
  })
  const shown = shrinkColumns(hideColumns(columns, maxWidth), maxWidth)
  const layouts = shown.map((column) => ({ ...column, show: layOutCell(column) }))
  const line = (textOf: (column: Column) => string) =>
    layouts
      .map((column) => column.show(textOf(column)))
      .join(gap)
      .trimEnd()
  const hidden = names.filter((name) => shown.every((column) => column.name !== name))
  return {
    heading: line(({ heading }) => heading),
    lines: rows.map((_, index) => line(({ texts }) => texts[index] ?? "")),
    remark:
      hidden.length === 0
        ? undefined
        : `${pluralize(hidden.length, "column is", "columns are")} hidden to fit: ${hidden.join(", ")}. Use --json for all.`
  }
}

/** A bigint is an amount in nano-USD. */
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

const isList = (value: Value): value is ReadonlyArray<Value> => Array.isArray(value)

const isFields = (value: Value): value is Fields => Predicate.isRecord(value) && !(value instanceof Date)

const toPlain = (value: Value | undefined): unknown => {
  if (typeof value === "bigint") return toUsd(value)
  if (value instanceof Date) return unixSeconds(value)
  if (value === undefined || value === null) return value
  if (isList(value)) return value.map(toPlain)
  if (isFields(value)) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, toPlain(inner)]))
  }
  return value
}

/** In the JSON, amounts are numbers in USD and times are Unix seconds. */
export const toJson = (value: Value, indent = 2): string => JSON.stringify(toPlain(value), null, indent)

/** Has at least two decimals, such as 12.50. */
const amountText = (amount: bigint): string => {
  const text = toUsdText(amount)
  return text + ".00".slice(Math.min(fractionOf(text).length, 3))
}

const isNothing = (value: Value | undefined) =>
  value === undefined || value === null || value === "" || value === 0 || value === 0n || value === false

/** Describes an object by its fields, such as `images 1, seconds 8`. Omits those without a value. */
const fieldsText = (fields: Fields): string => {
  const texts = Object.entries(fields).flatMap(([name, value]) => (isNothing(value) ? [] : [`${name} ${cell(value)}`]))
  return texts.length === 0 ? "-" : texts.join(", ")
}

const cell = (value: Value | undefined): string => {
  if (value === undefined || value === null || value === "") return "-"
  if (typeof value === "bigint") return amountText(value)
  if (value instanceof Date) return timeText(value).replace("T", " ")
  if (isList(value)) return value.length === 0 ? "-" : value.map(cell).join(value.some(isFields) ? "; " : ",")
  return isFields(value) ? fieldsText(value) : withoutControls(String(value))
}

/** Returns undefined if stdout is not a terminal. */
const terminalWidth = () => (process.stdout.isTTY ? process.stdout.columns || undefined : undefined)

export const layOut = (rows: ReadonlyArray<Fields>, columns: ReadonlyArray<string>, width = terminalWidth()) =>
  makeTable(
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
    // Without a listener the error would crash the process.
    if (!process.stdout.listeners("error").includes(ignore)) process.stdout.on("error", ignore)
    process.stdout.write(`${text}\n`, (error) => {
      if (error === null || error === undefined) return resume(Effect.void)
      const isClosed = "code" in error && error.code === "EPIPE"
      return resume(isClosed ? Effect.interrupt : new CommandFailed({ message: `stdout: ${error.message}` }))
    })
  })

/** A command with a `failure` prints the document or the text, then fails with that message. */
export interface Output {
  readonly document: Value
  readonly text: string | undefined
  readonly failure?: string | undefined
  /** Printed to stderr. They report accepted input that may be a mistake. */
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
