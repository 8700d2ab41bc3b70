import type { ServerResponse } from "node:http"
import { Effect } from "effect"
import type { ChatEvent, Usage } from "../../domain/Chat.ts"
import type { ReasonCode } from "../../domain/Failure.ts"
import type { NanoUsd } from "../../domain/Money.ts"
import type { ChatSink } from "../../services/chat/ChatStream.ts"
import type { ClientDeparture } from "../../services/runtime/Deadlines.ts"
import { isString, type JsonObject } from "../body/Guards.ts"
import { probe } from "../connections/ConnectionLimits.ts"
import * as Wire from "../errors/ErrorMessages.ts"

const keepAliveMillis = 15_000
/** A client that reads nothing for this long counts as disconnected. */
const maxStallMillis = 180_000
/** A stream may spend at most this share of its duration waiting for its client. */
const maxWaitShare = 0.25
/** Network delays alone can make a stream wait this long, even if the client reads immediately. */
const networkDelayMillis = 1_000

const sseHeaders = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no"
}

const awaitDrain = (response: ServerResponse): Effect.Effect<void> =>
  Effect.async((resume) => {
    const timer = setTimeout(() => response.destroy(), maxStallMillis)
    const finish = () => {
      clearTimeout(timer)
      response.off("drain", finish).off("close", finish).off("finish", finish)
      resume(Effect.void)
    }
    response.once("drain", finish).once("close", finish).once("finish", finish)
    return Effect.sync(finish)
  })

export const encodeFrame = (name: string, json: string): string => `event: ${name}\ndata: ${json}\n\n`

/** Returns the name of a provider's event, or undefined if it has none or has one with a line break. */
export const readEventName = ({ type }: JsonObject): string | undefined =>
  isString(type) && /^[^\r\n]+$/.test(type) ? type : undefined

export interface StreamEncoder {
  /** Returns an empty text if the dialect has no frame for any of the events. */
  readonly encode: (events: ReadonlyArray<ChatEvent>) => string
  readonly finish: (usage: Usage, charge: NanoUsd) => string
  /** `reason` is the provider's own message. */
  readonly error: (body: Wire.Envelope, reason?: string, reasonCode?: ReasonCode) => string
}

/** Returns a sink that waits while the client does not read, which also pauses reading from the provider. */
export const makeSink = (options: {
  readonly response: ServerResponse
  readonly headers: () => Readonly<Record<string, string>>
  readonly encoder: StreamEncoder
  readonly departure: ClientDeparture
  /** Called with each error that is sent to the client. */
  readonly onError?: (error: Pick<Wire.WireError, "body" | "reason">) => void
}): ChatSink => {
  const { departure, encoder, onError, response } = options
  let hasSentDelta = false
  let keepAlive: NodeJS.Timeout | undefined
  const startedAt = performance.now()
  let waitedMillis = 0
  let waitingSince: number | undefined
  let hasStalled = false
  const waitForClient = Effect.suspend(() => {
    const start = (waitingSince = performance.now())
    return Effect.ensuring(
      awaitDrain(response),
      Effect.sync(() => {
        waitedMillis += performance.now() - start
        waitingSince = undefined
      })
    )
  })
  const isClosed = () => response.destroyed || response.closed || response.writableEnded
  // Without a listener, an error of the connection would end the process.
  response.on("error", () => {})

  const send = (text: string): Effect.Effect<void> => {
    if (text === "" || isClosed()) return Effect.void
    keepAlive?.refresh()
    return response.write(text) ? Effect.void : waitForClient
  }

  const end = (text: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      clearTimeout(keepAlive)
      if (isClosed()) return Effect.void
      response.end(text)
      return response.writableFinished ? Effect.void : awaitDrain(response)
    })

  const open = Effect.sync(() => {
    if (response.headersSent || isClosed()) return
    response.writeHead(200, { ...sseHeaders, ...options.headers() })
    response.flushHeaders()
    response.socket?.setNoDelay(true)
    const sendKeepAlive = () => {
      if (isClosed()) return
      if (!response.writableNeedDrain) response.write(": keep-alive\n\n")
      keepAlive?.refresh()
    }
    keepAlive = setTimeout(sendKeepAlive, keepAliveMillis)
    response.on(probe, sendKeepAlive)
    response.once("close", () => clearTimeout(keepAlive))
  })

  const disconnectStalled = (): boolean => {
    const now = performance.now()
    const waitMillis = waitingSince === undefined ? 0 : now - waitingSince
    // All waits are added up, because many short waits also delay the stream.
    const maxMillis = Math.max(networkDelayMillis, (now - startedAt) * maxWaitShare)
    hasStalled ||= waitMillis > networkDelayMillis || waitedMillis + waitMillis > maxMillis
    if (hasStalled) response.destroy()
    return hasStalled
  }

  return {
    departure,
    disconnectStalled,
    open,
    isOpen: Effect.sync(() => response.headersSent),
    write: (events) => {
      hasSentDelta = true
      return send(encoder.encode(events))
    },
    finish: (usage, charge) => Effect.suspend(() => end(encoder.finish(usage, charge))),
    fail: (failure) =>
      Effect.suspend(() => {
        const error: Omit<Wire.WireError, "status"> = hasSentDelta
          ? { body: Wire.encodeBrokenStream(failure) }
          : Wire.toWire(failure)
        const { body, reason, reasonCode } = error
        onError?.(error)
        return end(encoder.error(body, reason, reasonCode))
      })
  }
}
