import type { ChatEvent } from "../../domain/Chat.ts"
import { isBlank, JsonScanner } from "../../domain/JsonScanner.ts"
import { exactItems, exactMembers, RawJson } from "../../domain/JsonSource.ts"
import { parseJsonExact } from "../client/Json.ts"

const numberParts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,15}))?$/
const zero = 0x30

/** A number as its digits without zeros at either end and a power of ten: one text for each value. */
const normalize = (text: string): string => {
  const [, sign, whole, fraction = "", exponent = "0"] = numberParts.exec(text) ?? []
  if (whole === undefined) return text
  const digits = whole + fraction
  let [start, end] = [0, digits.length]
  while (digits.charCodeAt(start) === zero) start++
  while (end > start && digits.charCodeAt(end - 1) === zero) end--
  if (start === end) return "0"
  const power = Number(exponent) - fraction.length + (digits.length - end)
  return `${sign}${digits.slice(start, end)}e${power}`
}

const numberText = (value: unknown): string | undefined => {
  if (value instanceof RawJson) return value.text
  return typeof value === "number" ? String(value) : undefined
}

const isSameNumber = (one: string, other: string | undefined): boolean =>
  one === other || (other !== undefined && normalize(one) === normalize(other))

const areSameItems = (one: ReadonlyArray<unknown>, other: ReadonlyArray<unknown>): boolean => {
  const [items, others] = [exactItems(one) ?? one, exactItems(other) ?? other]
  return items.length === others.length && items.every((item, at) => isSame(item, others[at]))
}

const areSameMembers = (one: object, other: object): boolean => {
  const members = exactMembers(one) ?? Object.entries(one)
  const others = new Map(exactMembers(other) ?? Object.entries(other))
  return (
    members.length === others.size &&
    members.every(([name, member]) => others.has(name) && isSame(member, others.get(name)))
  )
}

const isSame = (one: unknown, other: unknown): boolean => {
  const number = numberText(one)
  if (number !== undefined) return isSameNumber(number, numberText(other))
  if (typeof one !== "object" || one === null) return one === other
  if (typeof other !== "object" || other === null || other instanceof RawJson) return false
  if (Array.isArray(one)) return Array.isArray(other) && areSameItems(one, other)
  return !Array.isArray(other) && areSameMembers(one, other)
}

/** Whether two texts are JSON of the same value, with numbers of any length compared digit by digit. */
const isSameValue = (text: string, again: string): boolean => {
  const value = parseJsonExact(text)
  return value !== undefined && isSame(value, parseJsonExact(again))
}

const backslash = 0x5c
const quote = 0x22

/** The index at which `again` continues after all of `text`, ignoring white space between tokens; undefined if it begins otherwise. */
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

const isSameJson = (text: string, again: string): boolean => {
  const end = endOfRestated(text, again)
  return (end !== undefined && again.slice(end).trim() === "") || isSameValue(text, again)
}

/** Whether hosts send such a text instead of arguments, or after them. */
const isNothing = (text: string): boolean => {
  const given = text.trim()
  const isEmptyObject = given.startsWith("{") && given.endsWith("}") && given.slice(1, -1).trim() === ""
  return given === "" || given === "null" || isEmptyObject
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
  /** The last piece, if it may continue the text or restate it. */
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

  /** False for an empty object, which may stand for arguments that come later. */
  get isComplete(): boolean {
    return this.#scanner.state === "complete" && !this.#scanner.isEmpty
  }

  /** Whether the object or list that began has not ended. */
  get isOpen(): boolean {
    return this.#scanner.state === "open"
  }

  /** Whether the text is the same JSON as the arguments, which are complete. */
  equals(text: string): boolean {
    return this.isComplete && isSameJson(this.#text, text)
  }

  /** Takes a piece, and returns what the client lacks; undefined for a second value, which breaks the protocol. */
  take(piece: string): string | undefined {
    if (this.#restated !== undefined) return this.#takeAmbiguous(piece, this.#restated)
    if (this.#scanner.state === "complete") return this.#takeAgain(piece)
    if (this.isBlank && piece.trim() === "null") return ""
    const isRestated = !this.isBlank && piece.length >= this.#text.length && piece.startsWith(this.#text)
    if (isRestated && this.#habit.restates) return this.#append(piece.slice(this.#text.length))
    return this.#append(this.isBlank ? piece.trimStart() : piece, isRestated)
  }

  /** Takes the whole arguments, and returns what the client lacks; undefined if it has different ones. */
  takeWhole(whole: string): string | undefined {
    if (this.isBlank) return this.take(whole)
    if (isNothing(whole)) return ""
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

  /** `last` ends the text, and is mostly all that the client lacks: a slice would copy the whole text for each piece. */
  #show(last = ""): string {
    const { length } = this.#text
    const text = length - this.#shown === last.length ? last : this.#text.slice(this.#shown)
    this.#shown = length
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
    // An object that ends before its piece does may have ended in a string of the restated one.
    const isOver = state === "invalid" || (state === "complete" && piece.slice(end).trim() !== "")
    const restatedEnd = isOver && wasOpen ? endOfRestated(this.#text, piece) : undefined
    if (restatedEnd === undefined) return this.#keep(piece, end)
    this.#habit.restates = true
    return this.#replace(this.#text + piece.slice(restatedEnd))
  }

  /** Takes a piece that the scanner has read up to `end`. */
  #keep(piece: string, end: number): string | undefined {
    const taken = piece.slice(0, end)
    this.#text += taken
    const { isEmpty, state } = this.#scanner
    const shown = state === "complete" && isEmpty ? "" : this.#show(taken)
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

  /** Replaces the text by one that begins with what the client has. */
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
    const isOver = state === "invalid" || (isRestated && piece.slice(end).trim() !== "")
    if (!isOver) return this.#keep(piece, end)
    if (!isRestated) return this.#keep(piece, piece.length)
    this.#habit.restates = true
    return this.#replace(piece)
  }

  #takeAgain(piece: string): string | undefined {
    let left = piece
    for (;;) {
      const more = this.#again === "" ? left.trimStart() : left
      if (more === "") return ""
      if (this.#again === "") {
        if (!more.startsWith("{") && !more.startsWith("[")) return this.#break(more)
        if (this.#scanner.isEmpty) return more.startsWith("{") ? this.#replaceEmpty(more) : undefined
        this.#scannerAgain = new JsonScanner()
      }
      const end = this.#scannerAgain.take(more)
      this.#again += more.slice(0, end)
      if (this.#scannerAgain.state === "open") return ""
      if (this.#scannerAgain.state === "invalid" || !this.#isNothingNew(this.#again)) return undefined
      this.#again = ""
      left = more.slice(end)
    }
  }

  #isNothingNew(text: string): boolean {
    return isNothing(text) || isSameJson(this.#text, text)
  }

  /** Text that is no JSON: the model's own. */
  #break(more: string): string {
    this.#scanner.state = "invalid"
    this.#text += more
    return this.#show(more)
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

/** Whole arguments as one value, however often they are restated; undefined for two different ones. */
export const singleValue = (text: string): string | undefined => {
  if (text.trim() === "null") return ""
  if (!/\}\s*\{/.test(text)) return text
  const given = new CallArguments()
  const shown = given.take(text)
  const rest = shown === undefined ? undefined : given.end()
  return rest === undefined ? undefined : shown + rest
}

/** Whether whole arguments end within their object or list. */
export const isCutShort = (text: string): boolean => {
  const scanner = new JsonScanner()
  scanner.take(text)
  return scanner.state === "open"
}

/** A call of a stream: its name comes first, then its arguments. */
export class StreamedCall {
  readonly index: number
  isOpen = false
  readonly #given: CallArguments | undefined
  #isBlank = true
  #isEnded = false

  /** Without a habit the arguments are any text. */
  constructor(index: number, habit: Habit | undefined) {
    this.index = index
    this.#given = habit && new CallArguments(habit)
  }

  get isEmpty(): boolean {
    return this.#given?.isBlank ?? this.#isBlank
  }

  /** Whether its arguments are complete JSON, which an empty object may not be. */
  get isComplete(): boolean {
    return this.#given?.isComplete === true
  }

  /** Whether its arguments began and are not complete. */
  get isCutShort(): boolean {
    return this.#given?.isOpen === true
  }

  /** Whether a text is the same JSON as its complete arguments. */
  repeats(text: string): boolean {
    return this.#given?.equals(text) === true
  }

  take(text: string): string | undefined {
    this.#isBlank &&= text === ""
    return this.#given === undefined ? text : this.#given.take(text)
  }

  takeWhole(text: string): string | undefined {
    if (this.#given === undefined) return this.#isBlank ? this.take(text) : ""
    return this.#given.takeWhole(text)
  }

  /** The rest of the arguments: an empty object if there are none. */
  end(): string | undefined {
    if (this.#isEnded) return ""
    this.#isEnded = true
    return this.isEmpty ? "{}" : this.#given === undefined ? "" : this.#given.end()
  }
}

/** The calls of one stream. A returned text says how the host broke the protocol. */
export class StreamedCalls {
  readonly #calls: Array<StreamedCall> = []
  readonly #habit: Habit = { restates: false }

  get count(): number {
    return this.#calls.length
  }

  get hasAny(): boolean {
    return this.count > 0
  }

  /** Facts about the calls that decide how the answer ended. */
  get ended() {
    return { hasCalls: this.hasAny, isCutShort: this.#calls.some((call) => call.isCutShort) }
  }

  /** `isText`: its arguments are no JSON. */
  begin(isText = false): StreamedCall {
    const call = new StreamedCall(this.#calls.length, isText ? undefined : this.#habit)
    this.#calls.push(call)
    return call
  }

  /** Opens a call with the first piece of its arguments. */
  open(call: StreamedCall, id: string, name: string, text: string, out: Array<ChatEvent>): string | undefined {
    call.isOpen = true
    const shown = call.take(text)
    if (shown === undefined) return twoValues
    out.push({ type: "tool_call", index: call.index, id, name, arguments: shown })
    return undefined
  }

  /** Takes a piece of the arguments. */
  append(call: StreamedCall, text: string, out: Array<ChatEvent>): string | undefined {
    return text === "" ? undefined : this.#push(call, call.take(text), out)
  }

  /** Takes the arguments as a whole, of which pieces may have come. */
  restate(call: StreamedCall, text: string, out: Array<ChatEvent>): string | undefined {
    return this.#push(call, call.takeWhole(text), out)
  }

  /** Without arguments a call gets an empty object. */
  end(call: StreamedCall, out: Array<ChatEvent>): string | undefined {
    return this.#push(call, call.end(), out)
  }

  close(out: Array<ChatEvent>): string | undefined {
    for (const call of this.#calls) {
      const broken = call.isOpen ? this.end(call, out) : "a tool call without a name"
      if (broken !== undefined) return broken
    }
    return undefined
  }

  #push(call: StreamedCall, text: string | undefined, out: Array<ChatEvent>): string | undefined {
    if (text === undefined) return twoValues
    if (text !== "") out.push({ type: "tool_call", index: call.index, arguments: text })
    return undefined
  }
}
