import type { ServerResponse } from "node:http"
import { Effect } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { ReasonCode } from "../../domain/Failure.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { ChatSink } from "../../services/chat/ChatStream.ts"
import type { ClientDeparture } from "../../services/runtime/ClientDeparture.ts"
import { isString, type JsonObject } from "../body/Guards.ts"
import { probe } from "../connections/HalfClosed.ts"
import * as Wire from "../errors/ErrorMessages.ts"

const keepAliveMillis = 15_000
/** A client that takes nothing for this long is gone, whatever its socket says. */
const stalledMillis = 180_000
/** The share of a stream's time that a client may keep it waiting. */
const patience = 0.25
/** Any network keeps a stream waiting for so long, however well its client reads. */
const unremarkableMillis = 1_000

const sseHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no"
}

const awaitDrain = (response: ServerResponse): Effect.Effect<void> =>
  Effect.async((resume) => {
    const stalled = setTimeout(() => response.destroy(), stalledMillis)
    const done = () => {
      clearTimeout(stalled)
      response.off("drain", done).off("close", done).off("finish", done)
      resume(Effect.void)
    }
    response.once("drain", done).once("close", done).once("finish", done)
    return Effect.sync(done)
  })

export const frame = (name: string, json: string): string => `event: ${name}\ndata: ${json}\n\n`

/** The name that a host gave its event; undefined where it has none, or one that a line cannot hold. */
export const nameOf = ({ type }: JsonObject): string | undefined =>
  isString(type) && /^[^\r\n]+$/.test(type) ? type : undefined

/** The frames of a stream, in the client's dialect. */
export interface StreamEncoder {
  /** Empty where the events show nothing. */
  readonly encode: (events: ReadonlyArray<ChatEvent>) => string
  readonly finish: (usage: Usage, charge: NanoUsd) => string
  /** `reason`: the vendor's own words. */
  readonly error: (body: Wire.Envelope, reason?: string, reasonCode?: ReasonCode) => string
}

/** Waits while the client does not read, so that the provider is not read either. */
export const makeSink = (options: {
  readonly response: ServerResponse
  readonly headers: () => Readonly<Record<string, string>>
  readonly encoder: StreamEncoder
  readonly departure: ClientDeparture
  /** Called with each error that is sent. */
  readonly onError?: (error: Pick<Wire.WireError, "body" | "reason">) => void
}): ChatSink => {
  const { departure, encoder, onError, response } = options
  let firstDeltaSent = false
  let keepAlive: NodeJS.Timeout | undefined
  const since = performance.now()
  let waitedMillis = 0
  let waitingSince: number | undefined
  let isStalled = false
  const waitForClient = Effect.suspend(() => {
    const from = (waitingSince = performance.now())
    return Effect.ensuring(
      awaitDrain(response),
      Effect.sync(() => {
        waitedMillis += performance.now() - from
        waitingSince = undefined
      })
    )
  })
  const isGone = () => response.destroyed || response.closed || response.writableEnded
  // Without a listener the error would end the process.
  response.on("error", () => {})

  const send = (text: string): Effect.Effect<void> => {
    if (text === "" || isGone()) return Effect.void
    keepAlive?.refresh()
    return response.write(text) ? Effect.void : waitForClient
  }

  const end = (text: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      clearTimeout(keepAlive)
      if (isGone()) return Effect.void
      response.end(text)
      return response.writableFinished ? Effect.void : awaitDrain(response)
    })

  const open = Effect.sync(() => {
    if (response.headersSent || isGone()) return
    response.writeHead(200, { ...sseHeaders, ...options.headers() })
    response.flushHeaders()
    response.socket?.setNoDelay(true)
    const beat = () => {
      if (isGone()) return
      if (!response.writableNeedDrain) response.write(": keep-alive\n\n")
      keepAlive?.refresh()
    }
    keepAlive = setTimeout(beat, keepAliveMillis)
    response.on(probe, beat)
    response.once("close", () => clearTimeout(keepAlive))
  })

  const disconnectStalled = (): boolean => {
    const now = performance.now()
    const waiting = waitingSince === undefined ? 0 : now - waitingSince
    // Reading at the last moment makes up for nothing.
    const tolerated = Math.max(unremarkableMillis, (now - since) * patience)
    isStalled ||= waiting > unremarkableMillis || waitedMillis + waiting > tolerated
    if (isStalled) response.destroy()
    return isStalled
  }

  return {
    departure,
    disconnectStalled,
    open,
    isOpen: Effect.sync(() => response.headersSent),
    write: (events) => {
      firstDeltaSent = true
      return send(encoder.encode(events))
    },
    finish: (usage, charge) => Effect.suspend(() => end(encoder.finish(usage, charge))),
    fail: (failure) =>
      Effect.suspend(() => {
        const error: Omit<Wire.WireError, "status"> = firstDeltaSent
          ? { body: Wire.brokenStream(failure) }
          : Wire.toWire(failure)
        const { body, reason, reasonCode } = error
        onError?.(error)
        return end(encoder.error(body, reason, reasonCode))
      })
  }
}
