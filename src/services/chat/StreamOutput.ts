import type { ChatEvent, FinishReason, Unread, Usage } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import { isEmptyRefusal, type Received } from "./ChatUsage.ts"

/** More than any model writes or any hold covers. */
const maxCharacters = 16_000_000

/** For the count if the stream ends early or its provider reports nothing. */
export class StreamOutput {
  started = false
  route: Route | undefined
  isNative = false
  #usage: Usage | undefined
  #isCounted = false
  #finish: FinishReason | undefined
  #isUnbilled = false
  #unread: Array<Unread> | undefined
  #length = 0
  #shown: number | undefined
  readonly #pieces: Array<string> = []

  take(events: ReadonlyArray<ChatEvent>): void {
    this.started = true
    for (const event of events) {
      if (event.type === "content" || event.type === "reasoning") this.#keep(event.text)
      else if (event.type === "tool_call") this.#keep((event.name ?? "") + event.arguments)
      else if (event.type === "usage") {
        this.#usage = event.usage
        // A host that has counted no reasoning yet may count it at the end.
        this.#isCounted = event.isPartial === true && event.usage.reasoning > 0
      } else if (event.type === "native") this.isNative = true
      else if (event.type === "finish") {
        this.#finish = event.reason
        this.#isUnbilled = event.isUnbilled === true
      } else if (event.type === "unread") (this.#unread ??= []).push(event.unread)
    }
  }

  /** False in the middle of an answer whose host counts along, and before its first output. */
  get awaitsUsage(): boolean {
    return this.started && !this.#isCounted
  }

  /** The client gets nothing of what is taken from then on. */
  leave(): void {
    if (this.started) this.#shown = this.#pieces.length
  }

  received(): Received {
    return {
      reported: this.#usage,
      produced: this.#pieces.join(""),
      isNative: this.isNative,
      isEmptyRefusal: isEmptyRefusal(this.#finish, this.#length),
      isUnbilled: this.#isUnbilled,
      unread: this.#unread ?? []
    }
  }

  /** What was received for the client, of a stream that ends without it. */
  receivedForClient(): Received {
    return { ...this.received(), produced: this.#pieces.slice(0, this.#shown).join(""), isCut: true }
  }

  #keep(text: string): void {
    this.#length += text.length
    if (this.#length <= maxCharacters) this.#pieces.push(text)
  }
}
