import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { Route } from "../../domain/Model.ts"

/** More than any model writes or any hold covers. */
const mostCharacters = 16_000_000

/** For the count if the stream ends early or its provider reports nothing. */
export class StreamOutput {
  started = false
  route: Route | undefined
  usage: Usage | undefined
  #length = 0
  readonly #pieces: Array<string> = []

  take(events: ReadonlyArray<ChatEvent>): void {
    this.started = true
    for (const event of events) {
      if (event.type === "content" || event.type === "reasoning") this.#keep(event.text)
      else if (event.type === "tool_call") this.#keep((event.name ?? "") + event.arguments)
      else if (event.type === "usage") this.usage = event.usage
    }
  }

  text(): string {
    return this.#pieces.join("")
  }

  #keep(text: string): void {
    this.#length += text.length
    if (this.#length <= mostCharacters) this.#pieces.push(text)
  }
}
