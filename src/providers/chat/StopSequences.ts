import { Effect, Option } from "effect"
import type { ChatAnswer, ChatEvent, Citation } from "../../domain/Chat.ts"
import type { ChatPull } from "../../services/routing/Provider.ts"

class Stop {
  readonly text: string
  /** The length of the prefix of `text` that the input currently ends with. */
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

/** Finds the first stop sequence of a text that arrives in pieces. Buffers only text that may begin one. */
export class StopScanner {
  readonly #stops: ReadonlyArray<Stop>
  #buffer = ""
  stopSequence: string | undefined

  constructor(stops: ReadonlyArray<string>) {
    this.#stops = stops.filter((stop) => stop !== "").map((stop) => new Stop(stop))
  }

  get hasStopped(): boolean {
    return this.stopSequence !== undefined
  }

  get isBuffering(): boolean {
    return this.#buffer !== ""
  }

  take(piece: string): string {
    if (this.hasStopped) return ""
    const text = this.#buffer + piece
    for (let at = this.#buffer.length; at < text.length; at++) {
      let longestMatch = ""
      for (const stop of this.#stops) {
        stop.take(text.charCodeAt(at))
        if (stop.matched === stop.text.length && stop.matched > longestMatch.length) longestMatch = stop.text
      }
      if (longestMatch === "") continue
      this.stopSequence = longestMatch
      this.#buffer = ""
      return text.slice(0, at + 1 - longestMatch.length)
    }
    const visibleLength = text.length - Math.max(0, ...this.#stops.map(({ matched }) => matched))
    this.#buffer = text.slice(visibleLength)
    return text.slice(0, visibleLength)
  }

  flush(): string {
    const text = this.hasStopped ? "" : this.#buffer
    this.#buffer = ""
    for (const stop of this.#stops) stop.matched = 0
    return text
  }
}

/** Drops citations beyond `length` of the content, and shortens those that cross it. */
const truncateCitations = (citations: ReadonlyArray<Citation>, length: number): ReadonlyArray<Citation> =>
  citations.flatMap((citation) => {
    const { end, start } = citation
    if (start === undefined || end === undefined || end <= length) return [citation]
    return start < length ? [{ ...citation, end: length }] : []
  })

/** Truncates an answer at the first stop sequence. The usage stays what the provider counted. */
export const truncateAnswer = (answer: ChatAnswer, stops: ReadonlyArray<string>): ChatAnswer => {
  if (stops.length === 0) return answer
  const scanner = new StopScanner(stops)
  const content = scanner.take(answer.content ?? "")
  if (scanner.stopSequence === undefined) return answer
  const citations = answer.citations && truncateCitations(answer.citations, content.length)
  return {
    ...answer,
    content,
    toolCalls: [],
    finish: "stop",
    stopSequence: scanner.stopSequence,
    ...(citations && { citations })
  }
}

/**
 * Truncates a stream at the first stop sequence. The stream ends there if the gateway can count the usage. Otherwise the
 * rest is read for the usage and the citations.
 */
export const truncatePull = (pull: ChatPull, stops: ReadonlyArray<string>, isCountable: () => boolean): ChatPull => {
  if (stops.length === 0) return pull
  const scanner = new StopScanner(stops)
  let length = 0
  /** Whether calls began before the stop sequence. If so, the stream is read further, which completes them. */
  let hasCalls = false
  /** Citations that wait until the buffered text is sent. */
  let citations: Array<Citation> = []
  const push = (text: string, out: Array<ChatEvent>) => {
    length += text.length
    if (text !== "") out.push({ type: "content", text })
    if (scanner.isBuffering || citations.length === 0) return
    for (const citation of truncateCitations(citations, length)) out.push({ type: "citation", citation })
    citations = []
  }

  const takeAfterStop = (event: ChatEvent, out: Array<ChatEvent>) => {
    if (event.type === "usage" || event.type === "unread") out.push(event)
    else if (event.type === "citation") {
      for (const citation of truncateCitations([event.citation], length)) out.push({ type: "citation", citation })
    } else if (hasCalls && (event.type === "tool_call" || event.type === "finish")) out.push(event)
  }

  const take = (event: ChatEvent, out: Array<ChatEvent>) => {
    if (scanner.hasStopped) takeAfterStop(event, out)
    else if (event.type === "content" && event.text !== "") {
      push(scanner.take(event.text), out)
      if (scanner.hasStopped && !hasCalls)
        out.push({ type: "finish", reason: "stop", stopSequence: scanner.stopSequence })
    } else if (event.type === "citation" && scanner.isBuffering) citations.push(event.citation)
    else {
      hasCalls ||= event.type === "tool_call"
      if (event.type === "tool_call" || event.type === "finish") push(scanner.flush(), out)
      out.push(event)
    }
  }
  const step = (events: ReadonlyArray<ChatEvent>): ChatPull => {
    const out: Array<ChatEvent> = []
    for (const event of events) take(event, out)
    return out.length > 0 ? Effect.succeed(out) : next
  }

  /** The client has its answer, so a later failure does not matter. */
  const pullAfterStop: ChatPull = Effect.matchEffect(pull, {
    onFailure: () => Effect.fail(Option.none()),
    onSuccess: step
  })
  const next: ChatPull = Effect.suspend(() => {
    if (!scanner.hasStopped || hasCalls) return Effect.flatMap(pull, step)
    return isCountable() ? Effect.fail(Option.none()) : pullAfterStop
  })
  return next
}
