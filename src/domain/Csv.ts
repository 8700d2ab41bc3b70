import { toUsdText } from "./Money.ts"

/** Bigints are amounts in nano-USD. */
export type CsvCell = string | number | boolean | bigint | Date | null | undefined | ReadonlyArray<string>

/**
 * Spreadsheets run a cell that begins like a formula, some also in full width. Where the system's separator of lists is `;`,
 * they split our lines there, inside quotes too, so that each `;` of a text may begin a cell.
 */
const formulaStarts = /(^|;)(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])/g

// A name or a provider's error must move no cursor where the document is read in a terminal. Tabs and line ends, which begin
// cells too, become spaces.
const withoutControls = (text: string) => text.replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")

const textOf = (cell: string) => withoutControls(cell).replace(formulaStarts, "$1'")

const encodeCell = (cell: CsvCell): string => {
  if (cell === null || cell === undefined) return ""
  if (typeof cell === "bigint") return toUsdText(cell)
  if (typeof cell === "number" || typeof cell === "boolean") return String(cell)
  if (cell instanceof Date) return cell.toISOString().replace(/\.\d+Z$/, "Z")
  const text = textOf(typeof cell === "string" ? cell : cell.join(","))
  return /[",;]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Without the line's end. */
export const csvLine = (cells: ReadonlyArray<CsvCell>): string => cells.map(encodeCell).join(",")

/** RFC 4180: a line of names, then one for each row. */
export const encodeCsv = (columns: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<CsvCell>>): string =>
  [columns, ...rows].map((row) => `${csvLine(row)}\r\n`).join("")
