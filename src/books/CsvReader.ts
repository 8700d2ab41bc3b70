/** In characters: more than a row of any books. */
export const longestRow = 100_000

/** Rows of RFC 4180 from a text that comes in pieces. */
export class CsvReader {
  #cells: Array<string> = []
  #cell = ""
  #isQuoted = false
  #isAfterQuote = false
  #rowLength = 0

  /** The rows that the piece completes. */
  read(text: string): ReadonlyArray<ReadonlyArray<string>> {
    const rows: Array<ReadonlyArray<string>> = []
    for (const character of text) {
      this.#rowLength += 1
      if (this.#isQuoted && !this.#isAfterQuote) {
        if (character === '"') this.#isAfterQuote = true
        else this.#cell += character
      } else if (character === '"' && this.#isAfterQuote) {
        this.#cell += character
        this.#isAfterQuote = false
      } else if (character === '"' && this.#cell === "") this.#isQuoted = true
      else if (character === ",") this.#endCell()
      else if (character === "\n") rows.push(this.#endRow())
      else if (character !== "\r") this.#cell += character
    }
    return rows
  }

  /** Whether the row that is not complete yet is longer than can be read. */
  get isTooLong(): boolean {
    return this.#rowLength > longestRow
  }

  /** What is left at the end; undefined within a quoted cell. */
  end(): ReadonlyArray<ReadonlyArray<string>> | undefined {
    if (this.#isQuoted && !this.#isAfterQuote) return undefined
    return this.#cell === "" && this.#cells.length === 0 ? [] : [this.#endRow()]
  }

  #endCell(): void {
    this.#cells.push(this.#cell)
    this.#cell = ""
    this.#isQuoted = false
    this.#isAfterQuote = false
  }

  #endRow(): ReadonlyArray<string> {
    this.#endCell()
    const cells = this.#cells
    this.#cells = []
    this.#rowLength = 0
    return cells
  }
}
