import { StringDecoder } from "node:string_decoder"
import { createParser } from "eventsource-parser"

const eventLimitCharacters = 10 * 1024 * 1024

export interface SseEvent {
  readonly event: string | undefined
  readonly data: string
}

interface SseReader {
  /** False once an event has passed 10 MiB: nothing more can be read. */
  readonly feed: (bytes: Uint8Array) => boolean
  readonly end: () => void
}

export const reader = (onEvent: (event: SseEvent) => void): SseReader => {
  const decoder = new StringDecoder("utf8")
  let started = false
  let readable = true
  const parser = createParser({
    maxBufferSize: eventLimitCharacters,
    onEvent: (message) => onEvent({ event: message.event, data: message.data }),
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") readable = false
    }
  })
  const feed = (text: string) => {
    if (text === "" || !readable) return readable
    parser.feed(!started && text.charCodeAt(0) === 0xfe_ff ? text.slice(1) : text)
    started = true
    return readable
  }
  return {
    feed: (bytes) => feed(decoder.write(bytes)),
    end: () => {
      feed(`${decoder.end()}\n\n`)
    }
  }
}
