export type CsvCell = string | number | null

/** Spreadsheets run a text that begins like a formula. */
const formula = /^[=+\-@\t\r]/

const encodeCell = (cell: CsvCell): string => {
  if (cell === null) return ""
  if (typeof cell === "number") return String(cell)
  const text = formula.test(cell) ? `'${cell}` : cell
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** RFC 4180: a line of names, then one for each row. */
export const encodeCsv = (columns: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<CsvCell>>): string =>
  [columns, ...rows].map((row) => `${row.map(encodeCell).join(",")}\r\n`).join("")
