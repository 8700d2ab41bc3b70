import { Effect, Option } from "effect"
import type { ChatAnswer, ChatEvent } from "../../domain/Chat.ts"
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

/** Holds back only what may begin a stop sequence. */
export class Cut {
  readonly #stops: ReadonlyArray<Stop>
  #held = ""
  over = false

  constructor(stops: ReadonlyArray<string>) {
    this.#stops = stops.filter((stop) => stop !== "").map((stop) => new Stop(stop))
  }

  take(piece: string): string {
    if (this.over) return ""
    const text = this.#held + piece
    for (let at = this.#held.length; at < text.length; at++) {
      let met = 0
      for (const stop of this.#stops) {
        stop.take(text.charCodeAt(at))
        if (stop.matched === stop.text.length) met = Math.max(met, stop.matched)
      }
      if (met === 0) continue
      this.over = true
      return text.slice(0, at + 1 - met)
    }
    const shown = text.length - Math.max(0, ...this.#stops.map(({ matched }) => matched))
    this.#held = text.slice(shown)
    return text.slice(0, shown)
  }

  rest(): string {
    const text = this.over ? "" : this.#held
    this.#held = ""
    for (const stop of this.#stops) stop.matched = 0
    return text
  }
}

/** Its usage stays what the host counted. */
export const cutAnswer = (answer: ChatAnswer, stops: ReadonlyArray<string>): ChatAnswer => {
  const cut = new Cut(stops)
  const content = cut.take(answer.content ?? "")
  return cut.over ? { ...answer, content, toolCalls: [], finish: "stop" } : answer
}

/** Ends the stream where the gateway can count the usage, else reads on for it. */
export const cutPull = (pull: ChatPull, stops: ReadonlyArray<string>, countable: () => boolean): ChatPull => {
  if (stops.length === 0) return pull
  const cut = new Cut(stops)
  const push = (text: string, out: Array<ChatEvent>) => {
    if (text !== "") out.push({ type: "content", text })
  }

  const take = (event: ChatEvent, out: Array<ChatEvent>) => {
    if (cut.over) {
      if (event.type === "usage" || event.type === "unread") out.push(event)
    } else if (event.type === "content" && event.text !== "") {
      push(cut.take(event.text), out)
      if (cut.over) out.push({ type: "finish", reason: "stop" })
    } else {
      if (event.type === "tool_call" || event.type === "finish") push(cut.rest(), out)
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
    if (!cut.over) return Effect.flatMap(pull, step)
    return countable() ? Effect.fail(Option.none()) : afterwards
  })
  return next
}
