/**
 * The part of regular expressions that JSON schemas live on, as a tree to match and to make text from. The native
 * engine is not used on a customer's pattern: it can be made to run for years.
 */
export type Pattern =
  | { readonly type: "one"; readonly accepts: (character: string) => boolean; readonly example?: string }
  | { readonly type: "all"; readonly parts: ReadonlyArray<Pattern> }
  | { readonly type: "either"; readonly options: ReadonlyArray<Pattern> }
  | { readonly type: "repeat"; readonly of: Pattern; readonly min: number; readonly max: number }
  | { readonly type: "start" | "end" }

class Unsupported extends Error {}

const longestPattern = 1_000
const nothing: Pattern = { type: "all", parts: [] }
const controls: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", f: "\f", v: "\v", "0": "\0" }
const sets: Readonly<Record<string, RegExp>> = { d: /\d/, D: /\D/, w: /\w/, W: /\W/, s: /\s/, S: /\S/ }

type One = (character: string) => boolean

class Reader {
  private at = 0
  private readonly source: ReadonlyArray<string>
  constructor(source: string) {
    this.source = Array.from(source)
  }

  private peek(): string | undefined {
    return this.source[this.at]
  }
  private take(wanted: string): boolean {
    const found = this.source.slice(this.at, this.at + wanted.length).join("") === wanted
    if (found) this.at += wanted.length
    return found
  }
  private next(): string {
    const character = this.source[this.at++]
    if (character === undefined) throw new Unsupported()
    return character
  }
  private until(mark: string): string {
    let text = ""
    for (let next = this.next(); next !== mark; next = this.next()) text += next
    return text
  }

  whole(): Pattern {
    const pattern = this.either()
    if (this.peek() !== undefined) throw new Unsupported()
    return pattern
  }

  private either(): Pattern {
    const options = [this.sequence()]
    while (this.take("|")) options.push(this.sequence())
    return options.length === 1 ? (options[0] ?? nothing) : { type: "either", options }
  }

  private sequence(): Pattern {
    const parts: Array<Pattern> = []
    for (let next = this.peek(); next !== undefined && next !== "|" && next !== ")"; next = this.peek()) {
      parts.push(this.repeated(this.atom()))
    }
    return parts.length === 1 ? (parts[0] ?? nothing) : { type: "all", parts }
  }

  private repeated(of: Pattern): Pattern {
    const counts = /^(?:([*+?])|\{(\d{1,9})(?:(,)(\d{0,9}))?\})\??/.exec(
      this.source.slice(this.at, this.at + 24).join("")
    )
    if (counts === null) return of
    const [text, sign, least = "", comma, most = ""] = counts
    this.at += text.length
    if (sign !== undefined) return { type: "repeat", of, min: sign === "+" ? 1 : 0, max: sign === "?" ? 1 : Infinity }
    const open = most === "" ? Infinity : Number(most)
    return { type: "repeat", of, min: Number(least), max: comma === undefined ? Number(least) : open }
  }

  private atom(): Pattern {
    if (this.take("^")) return { type: "start" }
    if (this.take("$")) return { type: "end" }
    if (this.take("\\b") || this.take("\\B")) return nothing
    if (this.take("(")) {
      if (this.take("?<")) {
        if (this.peek() === "=" || this.peek() === "!") throw new Unsupported()
        this.until(">")
      } else if (!this.take("?:") && this.peek() === "?") throw new Unsupported()
      const inside = this.either()
      if (!this.take(")")) throw new Unsupported()
      return inside
    }
    if (this.take("[")) {
      const first = this.source[this.at]
      const accepts = this.set()
      return { type: "one", accepts, ...(first !== undefined && accepts(first) ? { example: first } : {}) }
    }
    if (this.take(".")) return { type: "one", accepts: (character) => !/[\n\r\u2028\u2029]/.test(character) }
    const next = this.next()
    if (/[*+?]/.test(next)) throw new Unsupported()
    if (next === "\\") return { type: "one", accepts: this.escape() }
    return { type: "one", accepts: (character) => character === next, example: next }
  }

  private escape(): One {
    const next = this.next()
    const set = sets[next]
    if (set !== undefined) return (character) => set.test(character)
    if (next === "p" || next === "P") {
      if (!this.take("{")) throw new Unsupported()
      const property = new RegExp(`^\\${next}{${this.until("}")}}$`, "u")
      return (character) => property.test(character)
    }
    const literal = this.literal(next)
    return (character) => character === literal
  }

  private literal(next: string): string {
    if (next === "x" || next === "u") {
      const digits = next === "u" && this.take("{") ? this.until("}") : this.hex(next === "x" ? 2 : 4)
      return String.fromCodePoint(Number.parseInt(digits, 16))
    }
    if (/[1-9ck]/.test(next)) throw new Unsupported()
    return controls[next] ?? next
  }

  private hex(length: number): string {
    return Array.from({ length }, () => this.next()).join("")
  }

  private set(): One {
    const negated = this.take("^")
    const members: Array<One> = []
    while (!this.take("]")) {
      const low = this.next()
      if (low === "\\" && /[dDwWsSpP]/.test(this.peek() ?? "")) {
        members.push(this.escape())
        continue
      }
      const from = low === "\\" ? this.member() : low
      if (this.peek() !== "-" || this.source[this.at + 1] === "]") {
        members.push((character) => character === from)
        continue
      }
      this.at++
      const high = this.next()
      const [least, most] = [from.codePointAt(0) ?? 0, (high === "\\" ? this.member() : high).codePointAt(0) ?? 0]
      members.push((character) => {
        const point = character.codePointAt(0) ?? 0
        return point >= least && point <= most
      })
    }
    return (character) => members.some((member) => member(character)) !== negated
  }

  private member(): string {
    const next = this.next()
    return next === "b" ? "\b" : this.literal(next)
  }
}

/** Undefined for what this part does not cover: assertions, back references, and what is no expression at all. */
export const parse = (source: string): Pattern | undefined => {
  if (source.length > longestPattern) return undefined
  try {
    return new Reader(source).whole()
  } catch {
    return undefined
  }
}
