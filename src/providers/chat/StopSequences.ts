import { Effect, Option } from "effect"
import type { ChatAnswer, ChatEvent, Citation } from "../../domain/Chat.ts"
import type { ChatPull } from "../../services/routing/Provider.ts"

class Stop {
  readonly text: string
  /** How many of its first characters the text ends with. */
  matched = 0
  /** Knuth-Morris-Pratt's failure function, filled lazily. */
  readonly #borders: Array<number> = []

  constructor(text: string) {
    this.text = text
  }

  take(code: number): void {
    this.matched = this.#next(this.matched, code)
    if (this.matched > this.#borders.length) {
      const last = this.#borders.length
      this.#borders.push(last === 0 ? 0 : this.#next(this.#borders[last - 1] ?? 0, code))
    }
  }

  #next(from: number, code: number): number {
    let length = from
    while (length > 0 && this.text.charCodeAt(length) !== code) length = this.#borders[length - 1] ?? 0
    return this.text.charCodeAt(length) === code ? length + 1 : 0
  }
}

/** Finds the first stop sequence of a text in pieces. Holds back only text that may begin one. */
export class Cut {
  readonly #stops: ReadonlyArray<Stop>
  #held = ""
  /** The stop sequence that was met. */
  met: string | undefined

  constructor(stops: ReadonlyArray<string>) {
    this.#stops = stops.filter((stop) => stop !== "").map((stop) => new Stop(stop))
  }

  get isCut(): boolean {
    return this.met !== undefined
  }

  /** Whether a text is held back that may be shown later. */
  get isHolding(): boolean {
    return this.#held !== ""
  }

  take(piece: string): string {
    if (this.isCut) return ""
    const text = this.#held + piece
    for (let at = this.#held.length; at < text.length; at++) {
      let met = ""
      for (const stop of this.#stops) {
        stop.take(text.charCodeAt(at))
        if (stop.matched === stop.text.length && stop.matched > met.length) met = stop.text
      }
      if (met === "") continue
      this.met = met
      this.#held = ""
      return text.slice(0, at + 1 - met.length)
    }
    const shown = text.length - Math.max(0, ...this.#stops.map(({ matched }) => matched))
    this.#held = text.slice(shown)
    return text.slice(0, shown)
  }

  release(): string {
    const text = this.isCut ? "" : this.#held
    this.#held = ""
    for (const stop of this.#stops) stop.matched = 0
    return text
  }
}

/** The sources of the part of a content that is shown. */
const cutCitations = (citations: ReadonlyArray<Citation>, length: number): ReadonlyArray<Citation> =>
  citations.flatMap((citation) => {
    const { end, start } = citation
    if (start === undefined || end === undefined || end <= length) return [citation]
    return start < length ? [{ ...citation, end: length }] : []
  })

/** Cuts an answer at the first stop sequence. The usage stays what the host counted. */
export const cutAnswer = (answer: ChatAnswer, stops: ReadonlyArray<string>): ChatAnswer => {
  if (stops.length === 0) return answer
  const cut = new Cut(stops)
  const content = cut.take(answer.content ?? "")
  if (cut.met === undefined) return answer
  const citations = answer.citations && cutCitations(answer.citations, content.length)
  return { ...answer, content, toolCalls: [], finish: "stop", stopSequence: cut.met, ...(citations && { citations }) }
}

/** Cuts a stream. It ends at the cut if the gateway can count the usage; otherwise the rest is read for the usage and the sources. */
export const cutPull = (pull: ChatPull, stops: ReadonlyArray<string>, countable: () => boolean): ChatPull => {
  if (stops.length === 0) return pull
  const cut = new Cut(stops)
  let length = 0
  /** Calls that begin before the cut are completed. */
  let hasCalls = false
  /** The sources of text that is held back. */
  let citations: Array<Citation> = []
  const push = (text: string, out: Array<ChatEvent>) => {
    length += text.length
    if (text !== "") out.push({ type: "content", text })
    if (cut.isHolding || citations.length === 0) return
    for (const citation of cutCitations(citations, length)) out.push({ type: "citation", citation })
    citations = []
  }

  const takeAfterwards = (event: ChatEvent, out: Array<ChatEvent>) => {
    if (event.type === "usage" || event.type === "unread") out.push(event)
    else if (event.type === "citation") {
      for (const citation of cutCitations([event.citation], length)) out.push({ type: "citation", citation })
    } else if (hasCalls && (event.type === "tool_call" || event.type === "finish")) out.push(event)
  }

  const take = (event: ChatEvent, out: Array<ChatEvent>) => {
    if (cut.isCut) takeAfterwards(event, out)
    else if (event.type === "content" && event.text !== "") {
      push(cut.take(event.text), out)
      if (cut.isCut && !hasCalls) out.push({ type: "finish", reason: "stop", stopSequence: cut.met })
    } else if (event.type === "citation" && cut.isHolding) citations.push(event.citation)
    else {
      hasCalls ||= event.type === "tool_call"
      if (event.type === "tool_call" || event.type === "finish") push(cut.release(), out)
      out.push(event)
    }
  }
  const step = (events: ReadonlyArray<ChatEvent>): ChatPull => {
    const out: Array<ChatEvent> = []
    for (const event of events) take(event, out)
    return out.length > 0 ? Effect.succeed(out) : next
  }

  /** The client has its answer, so a later failure does not matter. */
  const afterwards: ChatPull = Effect.matchEffect(pull, {
    onFailure: () => Effect.fail(Option.none()),
    onSuccess: step
  })
  const next: ChatPull = Effect.suspend(() => {
    if (!cut.isCut || hasCalls) return Effect.flatMap(pull, step)
    return countable() ? Effect.fail(Option.none()) : afterwards
  })
  return next
}
