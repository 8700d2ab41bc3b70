const untilNul = (bytes: Buffer, from: number) => {
  const end = bytes.indexOf(0, from)
  return { text: bytes.toString("utf8", from, end < 0 ? bytes.length : end), next: end < 0 ? bytes.length : end + 1 }
}

/** Reads what a PostgreSQL client sends over one connection, as far as it takes to know which statements it runs. */
export class FrontendMessages {
  readonly #prepared = new Map<string, string>()
  #pending: Buffer = Buffer.alloc(0)
  #isStarted = false

  /** The texts of the statements that the bytes complete, prepared ones when they are used. */
  read(chunk: Buffer): ReadonlyArray<string> {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    const texts: Array<string> = []
    while (true) {
      // The first message has no type.
      const start = this.#isStarted ? 1 : 0
      if (this.#pending.length < start + 4) return texts
      const length = start + this.#pending.readInt32BE(start)
      if (this.#pending.length < length) return texts
      const message = this.#pending.subarray(0, length)
      this.#pending = this.#pending.subarray(length)
      if (this.#isStarted) texts.push(...this.#statement(message))
      this.#isStarted = true
    }
  }

  #statement(message: Buffer): ReadonlyArray<string> {
    const type = String.fromCharCode(message[0] ?? 0)
    const first = untilNul(message, 5)
    if (type === "Q") return [first.text]
    if (type === "P") this.#prepared.set(first.text, untilNul(message, first.next).text)
    if (type !== "B") return []
    const text = this.#prepared.get(untilNul(message, first.next).text)
    return text === undefined ? [] : [text]
  }
}
