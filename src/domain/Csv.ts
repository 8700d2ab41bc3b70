import { toUsdText } from "./Money.ts"

/** Bigints are amounts in nano-USD. */
export type CsvCell = string | number | boolean | bigint | Date | null | undefined | ReadonlyArray<string>

/**
 * Matches where a spreadsheet would run a cell as a formula, also with full-width characters. Where the system's list
 * separator is `;`, spreadsheets split lines even at a quoted `;`, so a cell may begin after any `;` of a text.
 */
const formulaStarts = /(^|;)(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])/g

// Control characters could move a terminal's cursor. Tabs and line ends could begin a new cell in a spreadsheet.
export const withoutControls = (text: string) => text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")

/** ISO 8601 without fractions of a second. */
export const timeText = (time: Date): string => time.toISOString().replace(/\.\d+Z$/, "Z")

const textOf = (cell: string) => withoutControls(cell).replace(formulaStarts, "$1'")

const encodeCell = (cell: CsvCell): string => {
  if (cell === null || cell === undefined) return ""
  if (typeof cell === "bigint") return toUsdText(cell)
  if (typeof cell === "number" || typeof cell === "boolean") return String(cell)
  if (cell instanceof Date) return timeText(cell)
  const text = textOf(typeof cell === "string" ? cell : cell.join(","))
  return /[",;]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Returns the line without a line end. */
export const csvLine = (cells: ReadonlyArray<CsvCell>): string => cells.map(encodeCell).join(",")

/** Returns RFC 4180 text: a line of column names, then a line per row. */
export const encodeCsv = (columns: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<CsvCell>>): string =>
  [columns, ...rows].map((row) => `${csvLine(row)}\r\n`).join("")
