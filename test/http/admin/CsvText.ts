/** The cells of an RFC 4180 document. */
const cellsOf = (text: string): ReadonlyArray<ReadonlyArray<string>> => {
  const rows: Array<Array<string>> = []
  let row: Array<string> = []
  for (const [, quoted, plain = "", end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/g)) {
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'))
    if (end === ",") continue
    rows.push(row)
    row = []
  }
  return rows
}

/** Each row by its columns' names. */
export const parseCsv = (text: string): ReadonlyArray<Readonly<Record<string, string>>> => {
  const [names = [], ...rows] = cellsOf(text)
  return rows.map((cells) => Object.fromEntries(names.map((name, index) => [name, cells[index] ?? ""])))
}

/** An amount in USD as nano-USD: a cell exactly, a JSON number to its last digit that can be told. */
export const nanoOf = (usd: string | number): bigint => BigInt(Math.round(Number(usd) * 1e9))
