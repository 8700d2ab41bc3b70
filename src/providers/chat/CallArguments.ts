import { isDeepStrictEqual } from "node:util"
import { parseJson } from "../client/Json.ts"
import { isBlank, JsonScanner } from "./JsonScanner.ts"

const backslash = 0x5c
const quote = 0x22

/** Where `again` goes on after all of `text`, white space between tokens aside; undefined where it begins otherwise. */
const endOfRestated = (text: string, again: string): number | undefined => {
  if (again.startsWith(text)) return text.length
  let at = 0
  let isInString = false
  let isEscaped = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (!isInString) {
      if (isBlank(code)) continue
      while (isBlank(again.charCodeAt(at))) at++
    }
    if (again.charCodeAt(at) !== code) return undefined
    at++
    if (isEscaped) isEscaped = false
    else if (code === backslash) isEscaped = isInString
    else if (code === quote) isInString = !isInString
  }
  return at
}

/** Parsed numbers of more digits may be equal where their texts are not. */
const hasLongNumber = (text: string): boolean => /\d{16}/.test(text)

const isSameJson = (text: string, again: string): boolean => {
  const end = endOfRestated(text, again)
  if (end !== undefined && again.slice(end).trim() === "") return true
  if (hasLongNumber(text) || hasLongNumber(again)) return false
  const value = parseJson(text)
  return value !== undefined && isDeepStrictEqual(value, parseJson(again))
}

/** Whether a host sends all of the arguments so far with every piece. */
export interface Habit {
  restates: boolean
}

/**
 * The arguments of one call, which hosts send in pieces, restated with every piece, or again as a whole. Of JSON one
 * value results; a text that is no JSON is passed on as it is.
 */
export class CallArguments {
  readonly #habit: Habit
  #scanner = new JsonScanner()
  #text = ""
  /** How much of the text the client has. */
  #shown = 0
  /** The last piece, where it may go on with the text or restate it. */
  #restated: string | undefined
  /** A value after the complete one. */
  #again = ""
  #scannerAgain = new JsonScanner()

  constructor(habit: Habit = { restates: false }) {
    this.#habit = habit
  }

  get isBlank(): boolean {
    return this.#text === ""
  }

  /** Whether an object or array has begun and not ended. */
  get isOpen(): boolean {
    return this.#scanner.state === "open"
  }

  /** False for an empty object, which may stand for arguments that come later. */
  get isComplete(): boolean {
    return this.#scanner.state === "complete" && !this.#scanner.isEmpty
  }

  /** Whether the text is the same JSON as the arguments, which are complete. */
  equals(text: string): boolean {
    return this.isComplete && isSameJson(this.#text, text)
  }

  /** Takes a piece, and returns what the client lacks; undefined for a second value, which breaks the protocol. */
  take(piece: string): string | undefined {
    if (this.#restated !== undefined) return this.#takeAmbiguous(piece, this.#restated)
    if (this.#scanner.state === "complete") return this.#takeAgain(piece)
    const isRestated = !this.isBlank && piece.length >= this.#text.length && piece.startsWith(this.#text)
    if (isRestated && this.#habit.restates) return this.#append(piece.slice(this.#text.length))
    return this.#append(this.isBlank ? piece.trimStart() : piece, isRestated)
  }

  /** Takes the whole arguments, and returns what the client lacks; undefined where it has others. */
  takeWhole(whole: string): string | undefined {
    if (this.isBlank) return this.take(whole)
    if (/^\s*(\{\s*\}\s*)?$/.test(whole)) return ""
    if (this.#scanner.state === "complete") return this.take(whole)
    for (const text of [this.#text, this.#restated]) {
      if (text === undefined) continue
      const end = endOfRestated(text, whole)
      if (end !== undefined) return this.#replace(text + whole.slice(end))
    }
    return undefined
  }

  /** Returns what is left at the end; undefined for a second value that was not complete. */
  end(): string | undefined {
    const restated = this.#restated
    if (restated !== undefined) {
      const scanner = new JsonScanner()
      const end = scanner.take(restated)
      this.#restated = undefined
      if (scanner.state === "complete" && restated.slice(end).trim() === "") this.#restate(restated)
    }
    return this.#again === "" || endOfRestated(this.#again, this.#text) !== undefined ? this.#show() : undefined
  }

  #show(): string {
    const text = this.#text.slice(this.#shown)
    this.#shown = this.#text.length
    return text
  }

  #append(piece: string, isRestated = false): string | undefined {
    const wasOpen = this.#scanner.state === "open"
    const end = this.#scanner.take(piece)
    const { state } = this.#scanner
    if (state === "open" && isRestated) {
      this.#restated = piece
      this.#text += piece
      return ""
    }
    const restatedEnd = state === "invalid" && wasOpen ? endOfRestated(this.#text, piece) : undefined
    if (restatedEnd === undefined) return this.#keep(piece, end)
    this.#habit.restates = true
    return this.#replace(this.#text + piece.slice(restatedEnd))
  }

  /** Takes a piece that the scanner has read up to `end`. */
  #keep(piece: string, end: number): string | undefined {
    this.#text += piece.slice(0, end)
    const { isEmpty, state } = this.#scanner
    const shown = state === "complete" && isEmpty ? "" : this.#show()
    if (end === piece.length) return shown
    const more = this.#takeAgain(piece.slice(end))
    return more === undefined ? undefined : shown + more
  }

  #restate(text: string): number {
    this.#scanner = new JsonScanner()
    const end = this.#scanner.take(text)
    this.#text = text.slice(0, end)
    return end
  }

  /** Puts a text in place of the present one, of which it repeats what was shown. */
  #replace(text: string): string | undefined {
    this.#restated = undefined
    this.#scanner = new JsonScanner()
    this.#text = ""
    return this.#keep(text, this.#scanner.take(text))
  }

  #takeAmbiguous(piece: string, before: string): string | undefined {
    const end = this.#scanner.take(piece)
    const isRestated = piece.length >= before.length && piece.startsWith(before)
    const { state } = this.#scanner
    if (state === "open" && (isRestated || piece.trim() === "")) {
      if (isRestated) this.#restated = piece
      this.#text += piece
      return ""
    }
    this.#restated = undefined
    if (state !== "invalid") return this.#keep(piece, end)
    if (!isRestated) return this.#keep(piece, piece.length)
    this.#habit.restates = true
    return this.#replace(piece)
  }

  #takeAgain(piece: string): string | undefined {
    const more = this.#again === "" ? piece.trimStart() : piece
    if (more === "") return ""
    if (this.#again === "") {
      if (!more.startsWith("{") && !more.startsWith("[")) return this.#break(more)
      if (this.#scanner.isEmpty) return more.startsWith("{") ? this.#replaceEmpty(more) : undefined
      this.#scannerAgain = new JsonScanner()
    }
    const end = this.#scannerAgain.take(more)
    this.#again += more.slice(0, end)
    if (this.#scannerAgain.state === "open") return ""
    if (this.#scannerAgain.state === "invalid" || !isSameJson(this.#text, this.#again)) return undefined
    this.#again = ""
    return this.#takeAgain(more.slice(end))
  }

  /** Text that is no JSON: the model's own. */
  #break(more: string): string {
    this.#scanner.state = "invalid"
    this.#text += more
    return this.#show()
  }

  /** The client has nothing of the empty object, or its opening bracket. */
  #replaceEmpty(text: string): string | undefined {
    const shown = this.#text.slice(0, this.#shown)
    this.#scanner = new JsonScanner()
    this.#scanner.take(shown)
    this.#text = shown
    return this.take(shown === "" ? text : text.slice(1))
  }
}

export const twoValues = "a tool call with two different arguments"

/** Whether whole arguments end in the middle of an object or array. */
export const isCut = (text: string): boolean => {
  const scanner = new JsonScanner()
  scanner.take(text)
  return scanner.state === "open"
}

/** Whole arguments as one value, however often they are restated; undefined for two different ones. */
export const singleValue = (text: string): string | undefined => {
  if (!/\}\s*\{/.test(text)) return text
  const given = new CallArguments()
  const shown = given.take(text)
  const rest = shown === undefined ? undefined : given.end()
  return rest === undefined ? undefined : shown + rest
}
