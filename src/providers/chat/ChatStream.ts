import { Effect, Option, Predicate } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import { type ChatPull, ProviderFailure } from "../../services/routing/Provider.ts"
import { withSpent } from "../client/Classification.ts"
import { type Fields, parseJson } from "../client/Json.ts"
import type { UpstreamStream } from "../client/Upstream.ts"
import { reader, type SseEvent } from "./Sse.ts"

/** `"whole"` ends the stream; a failure breaks it, and so does any other text, which says how. */
export type StreamOutcome = ProviderFailure | string | undefined

export interface ChatDecoder {
  /** An event without a `type` gets its SSE name as one. */
  readonly take: (event: Fields, out: Array<ChatEvent>) => StreamOutcome
  /** Called at `[DONE]` and at the end; undefined where only an event can complete the stream. */
  readonly finish?: ((out: Array<ChatEvent>) => StreamOutcome) | undefined
  /** Counts not yet sent as an event: a broken stream ends with them. */
  readonly usage: () => Usage | undefined
  /** The gateway can count what the host has used so far. */
  readonly isCountable?: (() => boolean) | undefined
}

export interface StreamFailures {
  readonly decode: (event: Fields) => ProviderFailure | undefined
  readonly protocol: (what: string) => ProviderFailure
}

export const chatPull = (stream: UpstreamStream, decoder: ChatDecoder, failures: StreamFailures): ChatPull => {
  let out: Array<ChatEvent> = []
  let outcome: Option.Option<ProviderFailure> | undefined
  let hasBegun = false

  const end = (reached: ProviderFailure | string) => {
    if (outcome !== undefined) return
    const failure = reached === "whole" ? undefined : typeof reached === "string" ? failures.protocol(reached) : reached
    const usage = failure && decoder.usage()
    if (usage !== undefined) out.push({ type: "usage", usage })
    outcome = Option.fromNullable(failure && withSpent(failure, usage))
  }
  const take = ({ data, event: name }: SseEvent): StreamOutcome => {
    if (data.trim() === "[DONE]") return decoder.finish?.(out) ?? "[DONE] without a finish reason"
    const event = parseJson(data)
    if (!Predicate.isRecord(event)) return "an event that is no object"
    const typed = event.type === undefined && name !== undefined ? { ...event, type: name } : event
    const reached = failures.decode(typed) ?? decoder.take(typed, out)
    // From the first event on the host's work is paid for, so even one without output is passed on.
    if (!hasBegun && reached === undefined && out.length === 0) out.push({ type: "content", text: "" })
    hasBegun = true
    return reached
  }
  const sse = reader((event) => {
    const reached = outcome === undefined ? take(event) : undefined
    if (reached !== undefined) end(reached)
  })

  const feed = (chunks: ReadonlyArray<Uint8Array>) => {
    for (const chunk of chunks) {
      if (!sse.feed(chunk)) end("an event is too large")
      if (outcome !== undefined) break
    }
    if (outcome !== undefined && Option.isNone(outcome)) stream.finish()
  }
  const close = (cause: Option.Option<ProviderFailure>) => {
    if (Option.isNone(cause)) sse.end()
    if (outcome !== undefined) return
    const early = () => new ProviderFailure({ class: "network", status: 200, detail: "stream ended early" })
    end(decoder.finish?.(out) ?? Option.getOrElse(cause, early))
  }
  const ready = (): ChatPull | undefined => {
    if (out.length === 0) return outcome && Effect.fail(outcome)
    const events = out
    out = []
    return Effect.succeed(events)
  }

  // A finalizer would cost each event more than all else.
  return Effect.async((resume) => {
    const look = (): void => {
      const found = ready()
      if (found !== undefined) return resume(found)
      stream.next((taken) => {
        if (taken._tag === "Chunks") feed(taken.chunks)
        else close(taken.outcome)
        look()
      })
    }
    look()
  })
}

export const chatPullOf = (events: ReadonlyArray<ChatEvent>): ChatPull => {
  let left = events
  return Effect.suspend(() => {
    if (left.length === 0) return Effect.fail(Option.none())
    const taken = left
    left = []
    return Effect.succeed(taken)
  })
}
