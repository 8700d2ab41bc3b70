import { Effect, Option } from "effect"
import type { ChatAnswer, ChatEvent, Usage } from "../../domain/Chat.ts"
import type { ChatPull, ProviderFailure } from "../../services/routing/Provider.ts"
import { spending } from "../client/Classification.ts"
import type { UpstreamStream } from "../client/Upstream.ts"
import { reader, type SseEvent } from "./Sse.ts"

/** A wire format's reading of its own stream: synchronous, one for each stream. */
export interface ChatDecoder {
  /** Appends what an event means; `"whole"` when it was the stream's last, a failure when it broke the stream. */
  readonly take: (event: SseEvent, out: Array<ChatEvent>) => ProviderFailure | "whole" | undefined
  /** The bytes are over, by a failure or by themselves: appends what was held back, or says why the stream is not whole. */
  readonly close: (out: Array<ChatEvent>, cause: ProviderFailure | undefined) => ProviderFailure | undefined
  /** The failure for an event too large to be read. */
  readonly overflow: () => ProviderFailure
  /** What the host has counted since usage was last told: the last event of a stream that breaks. */
  readonly used: () => Usage | undefined
}

/** Pulls a decoder's events out of a body: all those of the bytes at hand at once. */
export const chatPull = (stream: UpstreamStream, decoder: ChatDecoder): ChatPull => {
  let out: Array<ChatEvent> = []
  let outcome: Option.Option<ProviderFailure> | undefined
  const end = (failure: ProviderFailure | undefined) => {
    if (outcome !== undefined) return
    const usage = failure && decoder.used()
    if (usage !== undefined) out.push({ type: "usage", usage })
    outcome = Option.fromNullable(failure && spending(failure, usage))
  }
  const sse = reader((event) => {
    if (outcome !== undefined) return
    const step = decoder.take(event, out)
    if (step !== undefined) end(step === "whole" ? undefined : step)
  })

  const feed = (chunks: ReadonlyArray<Uint8Array>) => {
    for (const chunk of chunks) {
      if (!sse.feed(chunk)) end(decoder.overflow())
      if (outcome !== undefined) break
    }
    if (outcome !== undefined && Option.isNone(outcome)) stream.finish()
  }
  const close = (cause: Option.Option<ProviderFailure>) => {
    if (Option.isNone(cause)) sse.end()
    if (outcome === undefined) end(decoder.close(out, Option.getOrUndefined(cause)))
  }
  const ready = (): ChatPull | undefined => {
    if (out.length === 0) return outcome && Effect.fail(outcome)
    const events = out
    out = []
    return Effect.succeed(events)
  }

  // Without a finalizer, which would cost each event more than all else: what comes after an interruption is ignored.
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

/** Pulls events that are all there already. */
export const chatPullOf = (events: ReadonlyArray<ChatEvent>): ChatPull => {
  let left = events
  return Effect.suspend(() => {
    if (left.length === 0) return Effect.fail(Option.none())
    const taken = left
    left = []
    return Effect.succeed(taken)
  })
}

/** The same answer as the events of a stream, for hosts that answer a stream's request in one piece. */
export const eventsOf = (answer: ChatAnswer): ReadonlyArray<ChatEvent> => {
  const events: Array<ChatEvent> = []
  if (answer.reasoning !== undefined) events.push({ type: "reasoning", text: answer.reasoning })
  if (answer.content !== null && answer.content !== "") events.push({ type: "content", text: answer.content })
  answer.toolCalls.forEach(({ function: { arguments: text, name }, id, signature }, index) => {
    events.push({ type: "tool_call", index, id, name, arguments: text, ...(signature && { signature }) })
  })
  events.push({ type: "finish", reason: answer.finish })
  if (answer.usage !== undefined) events.push({ type: "usage", usage: answer.usage })
  return events
}
