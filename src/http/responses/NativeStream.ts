import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import { stringify } from "../../domain/JsonSource.ts"
import { isObject, type JsonObject } from "../body/Guards.ts"
import type { AnswerName } from "../chat/ChatDialect.ts"
import { nameOf, type StreamEncoder } from "../chat/Sse.ts"
import type { Events } from "./Events.ts"
import { failureOf } from "./Failure.ts"
import { nativeResponse } from "./Response.ts"

/** Passes on what the host sends, under our names and numbers. */
export class NativeEncoder implements StreamEncoder {
  /** Held back until the money is settled. */
  private terminal: JsonObject | undefined
  private readonly events: Events
  private readonly name: AnswerName

  constructor(events: Events, name: AnswerName) {
    this.events = events
    this.name = name
  }

  encode(events: ReadonlyArray<ChatEvent>): string {
    let text = ""
    for (const event of events) if (event.type === "native") text += this.one(event.event)
    return text
  }

  finish(usage: Usage): string {
    return this.terminal === undefined ? "" : this.write(this.terminal, usage)
  }

  error(...failure: Parameters<StreamEncoder["error"]>): string {
    return this.events.failed(failureOf(...failure))
  }

  private one(event: JsonObject): string {
    const type = nameOf(event)
    switch (type) {
      case undefined:
        return ""
      case "response.completed":
      case "response.incomplete":
        this.terminal = event
        return ""
      // The translated error replaces it.
      case "response.failed":
      case "error":
        return ""
      default:
        return this.write(event)
    }
  }

  private write(event: JsonObject, usage?: Usage): string {
    const response = isObject(event.response) ? nativeResponse(event.response, this.name, usage) : event.response
    const members = { ...event, response, type: undefined, sequence_number: undefined }
    return this.events.event(String(event.type), stringify(members).slice(1, -1))
  }
}
