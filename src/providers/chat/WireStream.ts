import { StringDecoder } from "node:string_decoder"
import { Effect, Option, Predicate, type Scope } from "effect"
import { createParser } from "eventsource-parser"
import { type ChatEvent, isDelta, type Usage } from "../../domain/Chat.ts"
import { type ChatPull, ProviderFailure } from "../../services/routing/Provider.ts"
import { withSpent } from "../client/Classification.ts"
import type { BodyRead, UpstreamResponse } from "../client/Exchange.ts"
import { type Fields, parseAnswer } from "../client/JsonFields.ts"
import type { UpstreamStream } from "../client/Upstream.ts"

const maxEventCharacters = 10 * 1024 * 1024

export interface SseEvent {
  readonly event: string | undefined
  readonly data: string
}

interface SseReader {
  /** Returns false once an event exceeds 10 MiB. No later event can be read then. */
  readonly feed: (bytes: Uint8Array) => boolean
  readonly end: () => void
}

export const makeSseReader = (onEvent: (event: SseEvent) => void): SseReader => {
  const decoder = new StringDecoder("utf8")
  let hasStarted = false
  let isReadable = true
  const parser = createParser({
    maxBufferSize: maxEventCharacters,
    onEvent: (message) => onEvent({ event: message.event, data: message.data }),
    onError: (error) => {
      if (error.type === "max-buffer-size-exceeded") isReadable = false
    }
  })
  const feed = (text: string) => {
    if (text === "" || !isReadable) return isReadable
    parser.feed(!hasStarted && text.charCodeAt(0) === 0xfe_ff ? text.slice(1) : text)
    hasStarted = true
    return isReadable
  }
  return {
    feed: (bytes) => feed(decoder.write(bytes)),
    end: () => {
      feed(`${decoder.end()}\n\n`)
    }
  }
}

/** Undefined: the stream continues. `"complete"`: it has ended. Any other text describes a protocol error. */
export type StreamOutcome = ProviderFailure | string | undefined

export interface ChatDecoder {
  /** Whether the client receives the provider's own events. */
  readonly isNative?: boolean
  /** Reads one event. An event without a `type` has its SSE name as `type`. */
  readonly take: (event: Fields, out: Array<ChatEvent>) => StreamOutcome
  /** Whether the event shows that the model has started, even if the event contains no output. */
  readonly startsGeneration: (event: Fields) => boolean
  /** Called at `[DONE]` and when the connection closes. Returns undefined if the stream is not complete then. */
  readonly finish?: ((out: Array<ChatEvent>) => StreamOutcome) | undefined
  /** Returns usage that was not yet sent as an event. If the stream breaks, it is sent last. */
  readonly usage: () => Usage | undefined
  /** Whether the gateway can count the usage itself, so the provider's counts are not needed. */
  readonly isCountable?: (() => boolean) | undefined
}

/** A provider may send a stream's answer in one piece. The first byte shows which it is. */
interface WholeAnswer {
  /** Whether the content type announces an answer in one piece. */
  readonly isExpected: boolean
  readonly decode: (body: string) => Effect.Effect<ReadonlyArray<ChatEvent>, ProviderFailure>
}

interface StreamFailures {
  readonly decode: (event: Fields) => ProviderFailure | undefined
  readonly protocol: (detail: string) => ProviderFailure
  readonly defect: (thrown: unknown) => ProviderFailure
}

const networkFailure = (detail: string) => new ProviderFailure({ class: "network", status: 200, detail })

const maxWholeAnswerBytes = 16 * 1024 * 1024

const blankBytes = new Set(Buffer.from(" \t\r\n\uFEFF"))
const jsonStartBytes = new Set(Buffer.from("{["))
/** First bytes of an SSE field or comment. */
const eventStartBytes = new Set(Buffer.from("deir:"))

const makeWholeReader = (wholeAnswer: WholeAnswer) => {
  let isWhole: boolean | undefined
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  return {
    /** Returns whether the chunk belongs to an answer in one piece. Undefined if that answer exceeds 16 MiB. */
    addChunk: (chunk: Uint8Array): boolean | undefined => {
      if (isWhole === undefined) {
        const first = chunk.find((byte) => !blankBytes.has(byte))
        if (first === undefined) return false
        isWhole = wholeAnswer.isExpected ? !eventStartBytes.has(first) : jsonStartBytes.has(first)
      }
      if (!isWhole) return false
      bytes += chunk.length
      chunks.push(chunk)
      return bytes <= maxWholeAnswerBytes || undefined
    },
    end: () =>
      (isWhole ?? wholeAnswer.isExpected) ? wholeAnswer.decode(Buffer.concat(chunks).toString("utf8")) : undefined
  }
}

/** Events with one of these names may have any data. */
const isHeartbeat = (name: string | undefined): boolean =>
  name !== undefined && /^(ping|heartbeat|keep-?alive)$/i.test(name)

/** Returns a pull of decoded events. Each pull yields all events of the bytes received so far. */
export const chatPull = (
  stream: UpstreamStream,
  decoder: ChatDecoder,
  failures: StreamFailures,
  wholeAnswer: WholeAnswer
): Effect.Effect<ChatPull, never, Scope.Scope> => {
  const wholeReader = makeWholeReader(wholeAnswer)
  let answer: ChatPull | undefined
  let out: Array<ChatEvent> = []
  let outcome: Option.Option<ProviderFailure> | undefined
  let isFirst = true
  let hasStartedGeneration = false

  const end = (result: ProviderFailure | string) => {
    if (outcome !== undefined) return
    const failure = result === "complete" ? undefined : typeof result === "string" ? failures.protocol(result) : result
    outcome = Option.fromNullable(failure)
    if (failure === undefined) return
    const decodedUsage = decoder.usage()
    const reportedUsage = Predicate.isObject(failure.spent) ? failure.spent : undefined
    const usage =
      reportedUsage !== undefined && reportedUsage.prompt >= (decodedUsage?.prompt ?? 0) ? reportedUsage : decodedUsage
    if (usage !== undefined) out.push({ type: "usage", usage })
    outcome = Option.some(withSpent(failure, usage))
  }
  const take = ({ data, event: name }: SseEvent): StreamOutcome => {
    const text = data.trim()
    if (text === "[DONE]") return decoder.finish?.(out) ?? "[DONE] without a finish reason"
    if (text === "" && name !== "error") return undefined
    // Some providers send `null` as a heartbeat.
    if (text === "null") return undefined
    const event = parseAnswer(data, decoder.isNative === true)
    if (!Predicate.isRecord(event)) return isHeartbeat(name) ? undefined : "an event that is not an object"
    const typedEvent = event.type === undefined && name !== undefined ? { ...event, type: name } : event
    const result = failures.decode(typedEvent) ?? decoder.take(typedEvent, out)
    // The provider bills from its first event on, so an event without output is reported too.
    if (isFirst && result === undefined && out.length === 0) out.push({ type: "content", text: "" })
    isFirst = false
    if (!hasStartedGeneration && result === undefined && decoder.startsGeneration(typedEvent)) {
      hasStartedGeneration = true
      if (!out.some(isDelta)) out.push({ type: "begin" })
    }
    return result
  }
  const sse = makeSseReader((event) => {
    const result = outcome === undefined ? take(event) : undefined
    if (result !== undefined) end(result)
  })

  const feed = (chunks: ReadonlyArray<Uint8Array>) => {
    for (const chunk of chunks) {
      const isWhole = wholeReader.addChunk(chunk)
      if (isWhole === undefined) end("the response is too large")
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
    end(decoder.finish?.(out) ?? Option.getOrElse(cause, () => networkFailure("the stream ended early")))
  }
  const takeReady = (): ChatPull | undefined => {
    if (answer !== undefined) {
      const nextPull = answer
      answer = undefined
      return nextPull
    }
    if (out.length === 0) return outcome && Effect.fail(outcome)
    const events = out
    out = []
    return Effect.succeed(events)
  }

  const read = (bodyRead: BodyRead) => {
    try {
      if (bodyRead._tag === "Chunks") feed(bodyRead.chunks)
      else close(bodyRead.outcome)
    } catch (thrown) {
      end(failures.defect(thrown))
    }
  }

  let resumePull: ((nextPull: ChatPull) => void) | undefined
  const deliver = (): void => {
    const nextPull = takeReady()
    if (nextPull === undefined) {
      stream.next((bodyRead) => {
        read(bodyRead)
        deliver()
      })
    } else {
      resumePull?.(nextPull)
      resumePull = undefined
    }
  }
  const interrupt = () => {
    if (resumePull === undefined) return
    read({ _tag: "End", outcome: Option.some(networkFailure("the stream was interrupted")) })
    deliver()
  }

  // A finalizer per pull would cost more than all other work per event. Instead, input after an interruption is ignored.
  const pull: ChatPull = Effect.async((resume) => {
    resumePull = resume
    deliver()
  })
  return Effect.as(
    Effect.addFinalizer(() => Effect.sync(interrupt)),
    pull
  )
}

/** Returns all events of a stream. Fails if the stream breaks. */
export const drain = (
  openPull: Effect.Effect<ChatPull, never, Scope.Scope>
): Effect.Effect<ReadonlyArray<ChatEvent>, ProviderFailure> => {
  const events: Array<ChatEvent> = []
  const take = (pull: ChatPull) => Effect.forever(Effect.map(pull, (batch) => events.push(...batch)))
  return Effect.catchAll(
    Effect.scoped(Effect.flatMap(openPull, take)),
    Option.match({ onNone: () => Effect.succeed(events), onSome: Effect.fail })
  )
}

export const streamOf = ({ body, ...head }: UpstreamResponse): UpstreamStream => {
  let nextRead: BodyRead = { _tag: "Chunks", chunks: [Buffer.from(body)] }
  return {
    ...head,
    next: (done) => {
      const currentRead = nextRead
      nextRead = { _tag: "End", outcome: Option.none() }
      done(currentRead)
      return () => {}
    },
    finish: () => {}
  }
}

/** Whether a body contains SSE events, whatever its content type. */
export const isEventStream = (body: string): boolean =>
  !body.startsWith("{") && /^[\s\uFEFF]*(:|(data|event|id|retry):)/.test(body)

export const chatPullOf = (events: ReadonlyArray<ChatEvent>): ChatPull => {
  let pendingEvents = events
  return Effect.suspend(() => {
    if (pendingEvents.length === 0) return Effect.fail(Option.none())
    const batch = pendingEvents
    pendingEvents = []
    return Effect.succeed(batch)
  })
}
