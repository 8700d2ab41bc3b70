const backslash = 0x5c

/** Whether a byte or a character is white space of JSON. */
export const isBlank = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

/** The characters of names and numbers, whose form is not checked. */
const isScalar = (char: string): boolean => /[-+.\w]/.test(char)

/** What may come next; `first` stands after an opening bracket, which may close at once. */
type Next = "value" | "first value" | "key" | "first key" | "colon" | "more"

/** Reads the structure of a JSON object or array that comes in pieces. Strings and numbers may have any form. */
export class JsonScanner {
  /** `start`: nothing but white space came. */
  state: "start" | "open" | "complete" | "invalid" = "start"
  /** Whether the outermost object or array has no members so far. */
  isEmpty = true
  readonly #open: Array<"{" | "["> = []
  #next: Next = "value"
  #isInString = false
  #isEscaped = false
  #isInScalar = false

  /** Reads on, and returns where the value ends: the text's length while it is not complete. */
  take(text: string): number {
    let at = 0
    while (at < text.length && (this.state === "start" || this.state === "open")) {
      at = this.#isInString ? this.#skipString(text, at) : this.#step(text.charAt(at), at)
    }
    return this.state === "complete" ? at : text.length
  }

  #skipString(text: string, from: number): number {
    let at = from + Number(this.#isEscaped)
    this.#isEscaped = false
    for (;;) {
      const found = text.indexOf('"', at)
      const end = found < 0 ? text.length : found
      let slashes = 0
      while (end - slashes > at && text.charCodeAt(end - slashes - 1) === backslash) slashes++
      const isEscaped = slashes % 2 === 1
      if (found < 0) {
        this.#isEscaped = isEscaped
        return text.length
      }
      at = found + 1
      if (isEscaped) continue
      this.#isInString = false
      return at
    }
  }

  #step(char: string, at: number): number {
    const isInScalar = this.#isInScalar
    if (isInScalar && isScalar(char)) return at + 1
    this.#isInScalar = false
    if (!isBlank(char.charCodeAt(0)) && !this.#takeToken(char)) this.state = "invalid"
    return at + 1
  }

  #takeToken(char: string): boolean {
    const next = this.#next
    const isValue = next === "value" || next === "first value"
    switch (char) {
      case "{":
      case "[":
        if (!isValue) return false
        if (this.state === "open") this.isEmpty = false
        this.state = "open"
        this.#open.push(char)
        this.#next = char === "{" ? "first key" : "first value"
        return true
      case "}":
        return this.#close("{", "first key")
      case "]":
        return this.#close("[", "first value")
      case ":":
        this.#next = "value"
        return next === "colon"
      case ",":
        this.#next = this.#open.at(-1) === "{" ? "key" : "value"
        return next === "more"
      default:
        return this.#takeScalar(char, isValue)
    }
  }

  #takeScalar(char: string, isValue: boolean): boolean {
    const isKey = this.#next === "key" || this.#next === "first key"
    // Only an object or array shows where it ends.
    if (this.state === "start") return false
    this.#isInString = char === '"'
    this.#isInScalar = !this.#isInString && isValue && isScalar(char)
    this.isEmpty = false
    this.#next = isKey ? "colon" : "more"
    return this.#isInString ? isKey || isValue : this.#isInScalar
  }

  #close(opening: "{" | "[", first: Next): boolean {
    if (this.#next !== first && this.#next !== "more") return false
    if (this.#open.pop() !== opening) return false
    this.#next = "more"
    if (this.#open.length === 0) this.state = "complete"
    return true
  }
}
