import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"
import type { Received } from "./ChatUsage.ts"

/** More than any model writes or any hold covers. */
const maxCharacters = 16_000_000

/** For the count if the stream ends early or its provider reports nothing. */
export class StreamOutput {
  started = false
  route: Route | undefined
  usage: Usage | undefined
  isNative = false
  #length = 0
  readonly #pieces: Array<string> = []

  take(events: ReadonlyArray<ChatEvent>): void {
    this.started = true
    for (const event of events) {
      if (event.type === "content" || event.type === "reasoning") this.#keep(event.text)
      else if (event.type === "tool_call") this.#keep((event.name ?? "") + event.arguments)
      else if (event.type === "usage") this.usage = event.usage
      else if (event.type === "native") this.isNative = true
    }
  }

  received(reported: Usage | undefined = this.usage): Received {
    return { reported, produced: this.#pieces.join(""), isNative: this.isNative }
  }

  #keep(text: string): void {
    this.#length += text.length
    if (this.#length <= maxCharacters) this.#pieces.push(text)
  }
}
