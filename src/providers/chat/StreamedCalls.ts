import type { ChatEvent } from "../../domain/Chat.ts"
import { CallArguments, type Habit, twoValues } from "./CallArguments.ts"

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
