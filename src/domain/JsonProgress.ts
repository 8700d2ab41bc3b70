/** The token that the parser expects next, outside of strings. */
type Expected = "value" | "value or ]" | "key" | "key or }" | "colon" | "comma or end" | "nothing"

const whitespace = /[ \t\n\r]*/y
/** All characters from the space on, except the quote and the backslash. */
const plainCharacters = /[ !#-[\]-\uffff]*/y
const hexDigits = /[0-9a-fA-F]*/y
const scalarCharacters = /[-+.0-9a-zA-Z]*/y
const scalar = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)$/

/** The end of what the sticky pattern matches from `start`. */
const skip = (pattern: RegExp, text: string, start: number): number => {
  pattern.lastIndex = start
  pattern.test(text)
  return pattern.lastIndex
}

/**
 * Follows a JSON text (RFC 8259) that comes in pieces of any length. Strings are skipped by native search, so that the
 * cost of a piece is that of its structure; memory grows with the depth, and with the digits of an unfinished number.
 */
export class JsonProgress {
  readonly #ends: Array<"}" | "]"> = []
  #expected: Expected = "value"
  #isValid = true
  #isInString = false
  #isKey = false
  #isEscaped = false
  #missingHexDigits = 0
  #scalar = ""

  /** `complete`: the pieces are one whole value, and only blanks may follow. `invalid`: no further piece makes them one. */
  get state(): "incomplete" | "complete" | "invalid" {
    if (!this.#isValid) return "invalid"
    const isWhole = this.#expected === "nothing" || (this.#ends.length === 0 && scalar.test(this.#scalar))
    return isWhole ? "complete" : "incomplete"
  }

  push(piece: string): void {
    let at = 0
    while (at < piece.length && this.#isValid) at = this.#isInString ? this.#string(piece, at) : this.#token(piece, at)
  }

  #string(piece: string, at: number): number {
    if (this.#isEscaped) return this.#escape(piece, at)
    if (this.#missingHexDigits > 0) return this.#hex(piece, at)
    const end = skip(plainCharacters, piece, at)
    if (end === piece.length) return end
    const character = piece[end]
    if (character === "\\") this.#isEscaped = true
    else if (character === '"') this.#closeString()
    else this.#isValid = false
    return end + 1
  }

  #closeString(): void {
    this.#isInString = false
    this.#expected = this.#isKey ? "colon" : this.#afterValue()
  }

  #escape(piece: string, at: number): number {
    const character = piece.charAt(at)
    this.#isEscaped = false
    if (character === "u") this.#missingHexDigits = 4
    else this.#isValid = '"\\/bfnrt'.includes(character)
    return at + 1
  }

  #hex(piece: string, at: number): number {
    const end = Math.min(skip(hexDigits, piece, at), at + this.#missingHexDigits)
    this.#isValid = end > at
    this.#missingHexDigits -= end - at
    return end
  }

  #token(piece: string, at: number): number {
    const scalarEnd = skip(scalarCharacters, piece, at)
    if (scalarEnd > at) {
      this.#isValid = this.#expectsValue()
      this.#scalar += piece.slice(at, scalarEnd)
      return scalarEnd
    }
    if (this.#scalar !== "") {
      this.#closeScalar()
      return at
    }
    const blankEnd = skip(whitespace, piece, at)
    if (blankEnd > at) return blankEnd
    this.#punctuation(piece.charAt(at))
    return at + 1
  }

  #closeScalar(): void {
    this.#isValid = scalar.test(this.#scalar)
    this.#scalar = ""
    this.#expected = this.#afterValue()
  }

  #punctuation(character: string): void {
    switch (character) {
      case '"':
        return this.#openString()
      case "{":
        return this.#open("}", "key or }")
      case "[":
        return this.#open("]", "value or ]")
      case "}":
      case "]":
        return this.#close(character)
      case ":":
        return this.#pass("colon", "value")
      case ",":
        return this.#pass("comma or end", this.#ends.at(-1) === "}" ? "key" : "value")
      default:
        this.#isValid = false
    }
  }

  #openString(): void {
    this.#isKey = this.#expected === "key" || this.#expected === "key or }"
    this.#isValid = this.#isKey || this.#expectsValue()
    this.#isInString = true
  }

  #open(end: "}" | "]", expected: Expected): void {
    this.#isValid = this.#expectsValue()
    this.#ends.push(end)
    this.#expected = expected
  }

  #close(end: "}" | "]"): void {
    const isEmpty = this.#expected === (end === "}" ? "key or }" : "value or ]")
    this.#isValid = this.#ends.at(-1) === end && (isEmpty || this.#expected === "comma or end")
    this.#ends.pop()
    this.#expected = this.#afterValue()
  }

  #pass(separator: Expected, expected: Expected): void {
    this.#isValid = this.#expected === separator
    this.#expected = expected
  }

  #expectsValue(): boolean {
    return this.#expected === "value" || this.#expected === "value or ]"
  }

  #afterValue(): Expected {
    return this.#ends.length === 0 ? "nothing" : "comma or end"
  }
}
