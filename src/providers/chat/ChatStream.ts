import { StringDecoder } from "node:string_decoder"
import { Effect, Option, Predicate, type Scope } from "effect"
import { createParser } from "eventsource-parser"
import { type ChatEvent, isDelta, type Usage } from "../../domain/Chat.ts"
import { type ChatPull, ProviderFailure } from "../../services/routing/Provider.ts"
import { withSpent } from "../client/Classification.ts"
import type { Taken, UpstreamResponse } from "../client/Exchange.ts"
import { type Fields, parseAnswer } from "../client/Json.ts"
import type { UpstreamStream } from "../client/Upstream.ts"

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

/** `"whole"` ends the stream; a failure breaks it, and so does any other text, which says how. */
export type StreamOutcome = ProviderFailure | string | undefined

export interface ChatDecoder {
  /** The client gets the host's events. */
  readonly isNative?: boolean
  /** An event without a `type` gets its SSE name as one. */
  readonly take: (event: Fields, out: Array<ChatEvent>) => StreamOutcome
  /** Whether the host has begun to generate by this event, which may show nothing. */
  readonly begins: (event: Fields) => boolean
  /** Called at `[DONE]` and at the end; undefined where only an event can complete the stream. */
  readonly finish?: ((out: Array<ChatEvent>) => StreamOutcome) | undefined
  /** Counts not yet sent as an event: a broken stream ends with them. */
  readonly usage: () => Usage | undefined
  /** The gateway can count what the host has used so far. */
  readonly isCountable?: (() => boolean) | undefined
}

/** An answer in one piece, in place of a stream, or the other way round: its first byte tells them apart. */
interface WholeAnswer {
  /** The content type says so. */
  readonly isExpected: boolean
  readonly decode: (body: string) => Effect.Effect<ReadonlyArray<ChatEvent>, ProviderFailure>
}

interface StreamFailures {
  readonly decode: (event: Fields) => ProviderFailure | undefined
  readonly protocol: (what: string) => ProviderFailure
  readonly defect: (thrown: unknown) => ProviderFailure
}

const networkFailure = (detail: string) => new ProviderFailure({ class: "network", status: 200, detail })

const wholeLimitBytes = 16 * 1024 * 1024

/** White space, and a byte order mark. */
const blankBytes = new Set(Buffer.from(" \t\r\n\uFEFF"))
const opensJson = new Set(Buffer.from("{["))
/** The start of an event's field, or of a comment. */
const opensEvent = new Set(Buffer.from("deir:"))

const makeWholeReader = (whole: WholeAnswer) => {
  let isWhole: boolean | undefined
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  return {
    /** Whether a chunk is of an answer in one piece; undefined once that is too large. */
    takes: (chunk: Uint8Array): boolean | undefined => {
      if (isWhole === undefined) {
        const first = chunk.find((byte) => !blankBytes.has(byte))
        if (first === undefined) return false
        isWhole = whole.isExpected ? !opensEvent.has(first) : opensJson.has(first)
      }
      if (!isWhole) return false
      bytes += chunk.length
      chunks.push(chunk)
      return bytes <= wholeLimitBytes || undefined
    },
    /** The answer, if it came in one piece. */
    end: () => ((isWhole ?? whole.isExpected) ? whole.decode(Buffer.concat(chunks).toString("utf8")) : undefined)
  }
}

/** With one of these names, an event may have any data. */
const isHeartbeat = (name: string | undefined): boolean =>
  name !== undefined && /^(ping|heartbeat|keep-?alive)$/i.test(name)

/** Pulls a decoder's events out of a body: all those of the bytes at hand at once. */
export const chatPull = (
  stream: UpstreamStream,
  decoder: ChatDecoder,
  failures: StreamFailures,
  whole: WholeAnswer
): Effect.Effect<ChatPull, never, Scope.Scope> => {
  const wholeReader = makeWholeReader(whole)
  let answer: ChatPull | undefined
  let out: Array<ChatEvent> = []
  let outcome: Option.Option<ProviderFailure> | undefined
  let isFirst = true
  let hasBegun = false

  const end = (reached: ProviderFailure | string) => {
    if (outcome !== undefined) return
    const failure = reached === "whole" ? undefined : typeof reached === "string" ? failures.protocol(reached) : reached
    outcome = Option.fromNullable(failure)
    if (failure === undefined) return
    const counted = decoder.usage()
    const said = Predicate.isObject(failure.spent) ? failure.spent : undefined
    const usage = said !== undefined && said.prompt >= (counted?.prompt ?? 0) ? said : counted
    if (usage !== undefined) out.push({ type: "usage", usage })
    outcome = Option.some(withSpent(failure, usage))
  }
  const take = ({ data, event: name }: SseEvent): StreamOutcome => {
    const text = data.trim()
    if (text === "[DONE]") return decoder.finish?.(out) ?? "[DONE] without a finish reason"
    if (text === "" && name !== "error") return undefined
    // Some hosts send it as a heartbeat.
    if (text === "null") return undefined
    const event = parseAnswer(data, decoder.isNative === true)
    if (!Predicate.isRecord(event)) return isHeartbeat(name) ? undefined : "an event that is no object"
    const typed = event.type === undefined && name !== undefined ? { ...event, type: name } : event
    const reached = failures.decode(typed) ?? decoder.take(typed, out)
    // From the first event on the host's work is paid for, so even one without output is passed on.
    if (isFirst && reached === undefined && out.length === 0) out.push({ type: "content", text: "" })
    isFirst = false
    if (!hasBegun && reached === undefined && decoder.begins(typed)) {
      hasBegun = true
      if (!out.some(isDelta)) out.push({ type: "begin" })
    }
    return reached
  }
  const sse = reader((event) => {
    const reached = outcome === undefined ? take(event) : undefined
    if (reached !== undefined) end(reached)
  })

  const feed = (chunks: ReadonlyArray<Uint8Array>) => {
    for (const chunk of chunks) {
      const isWhole = wholeReader.takes(chunk)
      if (isWhole === undefined) end("an answer is too large")
      else if (!isWhole && !sse.feed(chunk)) end("an event is too large")
      if (outcome !== undefined) break
    }
    if (outcome !== undefined && Option.isNone(outcome)) stream.finish()
  }
  const close = (cause: Option.Option<ProviderFailure>) => {
    if (Option.isNone(cause)) sse.end()
    if (outcome !== undefined) return
    const decoded = Option.isNone(cause) ? wholeReader.end() : undefined
    if (decoded !== undefined) {
      answer = Effect.mapError(decoded, Option.some)
      outcome = Option.none()
      return
    }
    end(decoder.finish?.(out) ?? Option.getOrElse(cause, () => networkFailure("stream ended early")))
  }
  const ready = (): ChatPull | undefined => {
    if (answer !== undefined) {
      const found = answer
      answer = undefined
      return found
    }
    if (out.length === 0) return outcome && Effect.fail(outcome)
    const events = out
    out = []
    return Effect.succeed(events)
  }

  const read = (taken: Taken) => {
    try {
      if (taken._tag === "Chunks") feed(taken.chunks)
      else close(taken.outcome)
    } catch (thrown) {
      end(failures.defect(thrown))
    }
  }

  let waiting: ((found: ChatPull) => void) | undefined
  const deliver = (): void => {
    const found = ready()
    if (found === undefined) {
      stream.next((taken) => {
        read(taken)
        deliver()
      })
    } else {
      waiting?.(found)
      waiting = undefined
    }
  }
  const interrupt = () => {
    if (waiting === undefined) return
    read({ _tag: "Over", outcome: Option.some(networkFailure("stream cut off")) })
    deliver()
  }

  // A pull has no finalizer, which would cost each event more than all else: what comes after an interruption is ignored.
  const pull: ChatPull = Effect.async((resume) => {
    waiting = resume
    deliver()
  })
  return Effect.as(
    Effect.addFinalizer(() => Effect.sync(interrupt)),
    pull
  )
}

/** All events of a stream that ends well. */
export const drain = (
  opened: Effect.Effect<ChatPull, never, Scope.Scope>
): Effect.Effect<ReadonlyArray<ChatEvent>, ProviderFailure> => {
  const events: Array<ChatEvent> = []
  const take = (pull: ChatPull) => Effect.forever(Effect.map(pull, (batch) => events.push(...batch)))
  return Effect.catchAll(
    Effect.scoped(Effect.flatMap(opened, take)),
    Option.match({ onNone: () => Effect.succeed(events), onSome: Effect.fail })
  )
}

/** A complete body as a stream. */
export const streamOf = ({ body, ...head }: UpstreamResponse): UpstreamStream => {
  let taken: Taken = { _tag: "Chunks", chunks: [Buffer.from(body)] }
  return {
    ...head,
    next: (done) => {
      const next = taken
      taken = { _tag: "Over", outcome: Option.none() }
      done(next)
      return () => {}
    },
    finish: () => {}
  }
}

/** Whether a body is a stream of events, whatever its content type says. */
export const holdsEvents = (body: string): boolean =>
  !body.startsWith("{") && /^[\s\uFEFF]*(:|(data|event|id|retry):)/.test(body)

export const chatPullOf = (events: ReadonlyArray<ChatEvent>): ChatPull => {
  let left = events
  return Effect.suspend(() => {
    if (left.length === 0) return Effect.fail(Option.none())
    const taken = left
    left = []
    return Effect.succeed(taken)
  })
}
