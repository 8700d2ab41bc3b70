import type { ChatEvent } from "../../domain/Chat.ts"
import { exactItems, exactMembers, RawJson } from "../../domain/JsonSource.ts"
import { isBlank, JsonScanner } from "../../domain/JsonText.ts"
import { parseJsonExact } from "../client/JsonFields.ts"

const numberParts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,15}))?$/
const zero = 0x30

/** Returns a canonical text of a number: its digits without outer zeros, and a power of ten. */
const normalizeNumber = (text: string): string => {
  const [, sign, integer, fraction = "", exponent = "0"] = numberParts.exec(text) ?? []
  if (integer === undefined) return text
  const digits = integer + fraction
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
  one === other || (other !== undefined && normalizeNumber(one) === normalizeNumber(other))

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

/** Whether two JSON texts have the same value. Numbers of any length are compared digit by digit. */
const isSameValue = (text: string, repeat: string): boolean => {
  const value = parseJsonExact(text)
  return value !== undefined && isSame(value, parseJsonExact(repeat))
}

const backslash = 0x5c
const quote = 0x22

/**
 * Returns the length of the beginning of `repeat` that equals `text`, apart from white space between tokens. Undefined if
 * `repeat` does not begin with `text`.
 */
const findRepeatEnd = (text: string, repeat: string): number | undefined => {
  if (repeat.startsWith(text)) return text.length
  let at = 0
  let isInString = false
  let isEscaped = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (!isInString) {
      if (isBlank(code)) continue
      while (isBlank(repeat.charCodeAt(at))) at++
    }
    if (repeat.charCodeAt(at) !== code) return undefined
    at++
    if (isEscaped) isEscaped = false
    else if (code === backslash) isEscaped = isInString
    else if (code === quote) isInString = !isInString
  }
  return at
}

const isSameJson = (text: string, repeat: string): boolean => {
  const end = findRepeatEnd(text, repeat)
  return (end !== undefined && repeat.slice(end).trim() === "") || isSameValue(text, repeat)
}

/** Some providers send `{}`, `null` or white space instead of missing arguments, or after the arguments. */
const isEmptyArguments = (text: string): boolean => {
  const trimmedText = text.trim()
  const isEmptyObject =
    trimmedText.startsWith("{") && trimmedText.endsWith("}") && trimmedText.slice(1, -1).trim() === ""
  return trimmedText === "" || trimmedText === "null" || isEmptyObject
}

interface PieceMode {
  /** Whether each piece contains all arguments so far. */
  isCumulative: boolean
}

/**
 * Collects the arguments of one call. Providers send them in pieces, repeat all earlier pieces with each piece, or
 * repeat the whole at the end. The client receives JSON once. Other text is passed on unchanged.
 */
export class CallArguments {
  readonly #mode: PieceMode
  #scanner = new JsonScanner()
  #text = ""
  #sentLength = 0
  /** The last piece, if it is still unclear whether it continues the text or repeats it. */
  #ambiguousPiece: string | undefined
  /** Text after the complete value, which may only repeat it. */
  #repeat = ""
  #repeatScanner = new JsonScanner()

  constructor(mode: PieceMode = { isCumulative: false }) {
    this.#mode = mode
  }

  get isBlank(): boolean {
    return this.#text === ""
  }

  /** False for an empty object, which may be a placeholder for later arguments. */
  get isComplete(): boolean {
    return this.#scanner.state === "complete" && !this.#scanner.isEmpty
  }

  /** Whether an object or list is not closed yet. */
  get isOpen(): boolean {
    return this.#scanner.state === "open"
  }

  /** Whether the arguments are complete and equal to the JSON text. */
  equals(text: string): boolean {
    return this.isComplete && isSameJson(this.#text, text)
  }

  /** Adds a piece. Returns the text to send to the client. Undefined if a different second value follows. */
  take(piece: string): string | undefined {
    if (this.#ambiguousPiece !== undefined) return this.#takeAmbiguous(piece, this.#ambiguousPiece)
    if (this.#scanner.state === "complete") return this.#takeRepeat(piece)
    if (this.isBlank && piece.trim() === "null") return ""
    const isRepeat = !this.isBlank && piece.length >= this.#text.length && piece.startsWith(this.#text)
    if (isRepeat && this.#mode.isCumulative) return this.#append(piece.slice(this.#text.length))
    return this.#append(this.isBlank ? piece.trimStart() : piece, isRepeat)
  }

  /** Adds the complete arguments. Returns the text to send, or undefined if the client has received different ones. */
  takeAll(complete: string): string | undefined {
    if (this.isBlank) return this.take(complete)
    if (isEmptyArguments(complete)) return ""
    if (this.#scanner.state === "complete") return this.take(complete)
    for (const text of [this.#text, this.#ambiguousPiece]) {
      if (text === undefined) continue
      const end = findRepeatEnd(text, complete)
      if (end !== undefined) return this.#replace(text + complete.slice(end))
    }
    return undefined
  }

  /** Returns the unsent text. Undefined if an incomplete second value differs from the first. */
  end(): string | undefined {
    const piece = this.#ambiguousPiece
    if (piece !== undefined) {
      const scanner = new JsonScanner()
      const end = scanner.take(piece)
      this.#ambiguousPiece = undefined
      if (scanner.state === "complete" && piece.slice(end).trim() === "") this.#reset(piece)
    }
    return this.#repeat === "" || findRepeatEnd(this.#repeat, this.#text) !== undefined ? this.#takeUnsent() : undefined
  }

  /** `last` is the end of the text. Returning it, if nothing else is unsent, avoids a copy of the text per piece. */
  #takeUnsent(last = ""): string {
    const { length } = this.#text
    const text = length - this.#sentLength === last.length ? last : this.#text.slice(this.#sentLength)
    this.#sentLength = length
    return text
  }

  #append(piece: string, isRepeat = false): string | undefined {
    const wasOpen = this.#scanner.state === "open"
    const end = this.#scanner.take(piece)
    const { state } = this.#scanner
    if (state === "open" && isRepeat) {
      this.#ambiguousPiece = piece
      this.#text += piece
      return ""
    }
    // A piece that makes the JSON invalid, or leaves text after it, may repeat all earlier pieces.
    const hasEnded = state === "invalid" || (state === "complete" && piece.slice(end).trim() !== "")
    const repeatEnd = hasEnded && wasOpen ? findRepeatEnd(this.#text, piece) : undefined
    if (repeatEnd === undefined) return this.#consume(piece, end)
    this.#mode.isCumulative = true
    return this.#replace(this.#text + piece.slice(repeatEnd))
  }

  /** Adds a piece that the scanner has read up to `end`. */
  #consume(piece: string, end: number): string | undefined {
    const consumedText = piece.slice(0, end)
    this.#text += consumedText
    const { isEmpty, state } = this.#scanner
    const delta = state === "complete" && isEmpty ? "" : this.#takeUnsent(consumedText)
    if (end === piece.length) return delta
    const repeatDelta = this.#takeRepeat(piece.slice(end))
    return repeatDelta === undefined ? undefined : delta + repeatDelta
  }

  #reset(text: string): number {
    this.#scanner = new JsonScanner()
    const end = this.#scanner.take(text)
    this.#text = text.slice(0, end)
    return end
  }

  /** Replaces the text by one that begins with the text already sent. */
  #replace(text: string): string | undefined {
    this.#ambiguousPiece = undefined
    this.#scanner = new JsonScanner()
    this.#text = ""
    return this.#consume(text, this.#scanner.take(text))
  }

  #takeAmbiguous(piece: string, previous: string): string | undefined {
    const end = this.#scanner.take(piece)
    const isRepeat = piece.length >= previous.length && piece.startsWith(previous)
    const { state } = this.#scanner
    if (state === "open" && (isRepeat || piece.trim() === "")) {
      if (isRepeat) this.#ambiguousPiece = piece
      this.#text += piece
      return ""
    }
    this.#ambiguousPiece = undefined
    const hasEnded = state === "invalid" || (isRepeat && piece.slice(end).trim() !== "")
    if (!hasEnded) return this.#consume(piece, end)
    if (!isRepeat) return this.#consume(piece, piece.length)
    this.#mode.isCumulative = true
    return this.#replace(piece)
  }

  #takeRepeat(piece: string): string | undefined {
    let rest = piece
    for (;;) {
      const text = this.#repeat === "" ? rest.trimStart() : rest
      if (text === "") return ""
      if (this.#repeat === "") {
        if (!text.startsWith("{") && !text.startsWith("[")) return this.#appendInvalid(text)
        if (this.#scanner.isEmpty) return text.startsWith("{") ? this.#replaceEmpty(text) : undefined
        this.#repeatScanner = new JsonScanner()
      }
      const end = this.#repeatScanner.take(text)
      this.#repeat += text.slice(0, end)
      if (this.#repeatScanner.state === "open") return ""
      if (this.#repeatScanner.state === "invalid" || !this.#isRepeatOfText(this.#repeat)) return undefined
      this.#repeat = ""
      rest = text.slice(end)
    }
  }

  #isRepeatOfText(text: string): boolean {
    return isEmptyArguments(text) || isSameJson(this.#text, text)
  }

  /** Text that is no JSON comes from the model and is passed on. */
  #appendInvalid(more: string): string {
    this.#scanner.state = "invalid"
    this.#text += more
    return this.#takeUnsent(more)
  }

  /** Replaces an empty object, of which the client has received nothing or only the opening bracket. */
  #replaceEmpty(text: string): string | undefined {
    const sentText = this.#text.slice(0, this.#sentLength)
    this.#scanner = new JsonScanner()
    this.#scanner.take(sentText)
    this.#text = sentText
    return this.take(sentText === "" ? text : text.slice(1))
  }
}

export const conflictingArguments = "a tool call with two different arguments"

/** Returns the arguments without repetitions. Undefined if they contain two different values. */
export const toSingleValue = (text: string): string | undefined => {
  if (text.trim() === "null") return ""
  if (!/\}\s*\{/.test(text)) return text
  const callArguments = new CallArguments()
  const start = callArguments.take(text)
  const rest = start === undefined ? undefined : callArguments.end()
  return rest === undefined ? undefined : start + rest
}

/** Whether the arguments end inside an object or list. */
export const isTruncated = (text: string): boolean => {
  const scanner = new JsonScanner()
  scanner.take(text)
  return scanner.state === "open"
}

/** A streamed call. Its name comes first, then its arguments. */
export class StreamedCall {
  readonly index: number
  isOpen = false
  readonly #arguments: CallArguments | undefined
  #isBlank = true
  #isEnded = false

  /** Without a mode, the arguments are plain text. */
  constructor(index: number, mode: PieceMode | undefined) {
    this.index = index
    this.#arguments = mode && new CallArguments(mode)
  }

  get isEmpty(): boolean {
    return this.#arguments?.isBlank ?? this.#isBlank
  }

  /** False for an empty object, which may be a placeholder for later arguments. */
  get isComplete(): boolean {
    return this.#arguments?.isComplete === true
  }

  get isTruncated(): boolean {
    return this.#arguments?.isOpen === true
  }

  /** Whether the arguments are complete and equal to the JSON text. */
  hasArguments(text: string): boolean {
    return this.#arguments?.equals(text) === true
  }

  take(text: string): string | undefined {
    this.#isBlank &&= text === ""
    return this.#arguments === undefined ? text : this.#arguments.take(text)
  }

  takeWhole(text: string): string | undefined {
    if (this.#arguments === undefined) return this.#isBlank ? this.take(text) : ""
    return this.#arguments.takeAll(text)
  }

  /** Returns the rest of the arguments, or an empty object if there are none. */
  end(): string | undefined {
    if (this.#isEnded) return ""
    this.#isEnded = true
    return this.isEmpty ? "{}" : this.#arguments === undefined ? "" : this.#arguments.end()
  }
}

/** The calls of one stream. Methods return a text if the provider breaks the protocol. */
export class StreamedCalls {
  readonly #calls: Array<StreamedCall> = []
  readonly #pieceMode: PieceMode = { isCumulative: false }

  get count(): number {
    return this.#calls.length
  }

  get hasAny(): boolean {
    return this.count > 0
  }

  get endState() {
    return { hasCalls: this.hasAny, isTruncated: this.#calls.some((call) => call.isTruncated) }
  }

  /** `isText`: the arguments are not JSON. */
  begin(isText = false): StreamedCall {
    const call = new StreamedCall(this.#calls.length, isText ? undefined : this.#pieceMode)
    this.#calls.push(call)
    return call
  }

  /** Opens a call with the first piece of its arguments. */
  open(call: StreamedCall, id: string, name: string, text: string, out: Array<ChatEvent>): string | undefined {
    call.isOpen = true
    const delta = call.take(text)
    if (delta === undefined) return conflictingArguments
    out.push({ type: "tool_call", index: call.index, id, name, arguments: delta })
    return undefined
  }

  append(call: StreamedCall, text: string, out: Array<ChatEvent>): string | undefined {
    return text === "" ? undefined : this.#push(call, call.take(text), out)
  }

  /** Adds the complete arguments. Pieces may have arrived before. */
  completeArguments(call: StreamedCall, text: string, out: Array<ChatEvent>): string | undefined {
    return this.#push(call, call.takeWhole(text), out)
  }

  /** Ends a call. A call without arguments gets an empty object. */
  end(call: StreamedCall, out: Array<ChatEvent>): string | undefined {
    return this.#push(call, call.end(), out)
  }

  close(out: Array<ChatEvent>): string | undefined {
    for (const call of this.#calls) {
      const error = call.isOpen ? this.end(call, out) : "a tool call without a name"
      if (error !== undefined) return error
    }
    return undefined
  }

  #push(call: StreamedCall, text: string | undefined, out: Array<ChatEvent>): string | undefined {
    if (text === undefined) return conflictingArguments
    if (text !== "") out.push({ type: "tool_call", index: call.index, arguments: text })
    return undefined
  }
}
