import { toUsdText } from "./Money.ts"

/** Bigints are amounts in nano-USD. */
export type CsvCell = string | number | boolean | bigint | Date | null | undefined | ReadonlyArray<string>

/**
 * Spreadsheets run a cell that begins like a formula, some also in full width. If the system's list separator is `;`, they
 * split our lines at each `;`, even inside quotes, so any `;` in a text may begin a cell.
 */
const formulaStarts = /(^|;)(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])/g

// Control characters could move the cursor of a terminal. Tabs and line ends could begin cells, and become spaces.
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

/** Without the line's end. */
export const csvLine = (cells: ReadonlyArray<CsvCell>): string => cells.map(encodeCell).join(",")

/** RFC 4180: a line of names, then one for each row. */
export const encodeCsv = (columns: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<CsvCell>>): string =>
  [columns, ...rows].map((row) => `${csvLine(row)}\r\n`).join("")
