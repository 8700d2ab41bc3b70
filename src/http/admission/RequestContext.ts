import type { IncomingMessage } from "node:http"
import { isIPv4 } from "node:net"
import { Context, Effect } from "effect"
import ipaddr from "ipaddr.js"
import { Ids } from "../../services/runtime/Ids.ts"
import * as Monotonic from "../../services/runtime/Monotonic.ts"
import { RequestTrace, type TracedEndpoint, Tracing } from "../../services/tracing/Tracing.ts"
import { idempotencyKey } from "../schema/Headers.ts"

const withoutPort = (entry: string): string => {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)
  if (bracketed?.[1] !== undefined) return bracketed[1]
  const [host = "", port, ...rest] = entry.split(":")
  return port !== undefined && rest.length === 0 ? host : entry
}

/** One spelling per address: `::ffff:a.b.c.d` is the IPv4 address. Undefined for anything that is no address. */
const normalise = (entry: string): string | undefined => {
  // What nearly every socket says, and has one spelling anyway.
  if (isIPv4(entry)) return entry
  const text = withoutPort(entry.trim())
  return ipaddr.isValid(text) ? ipaddr.process(text).toString() : undefined
}

/** Only the entries that our own proxies wrote are believed; a broken header means the socket's address. */
const clientAddress = (
  socketAddress: string | undefined,
  forwardedFor: string | ReadonlyArray<string> | undefined,
  trustedProxies: number
): string => {
  const direct = normalise(socketAddress ?? "") ?? "unknown"
  if (trustedProxies === 0 || forwardedFor === undefined) return direct
  const entries = (typeof forwardedFor === "string" ? forwardedFor : forwardedFor.join(",")).split(",")
  return normalise(entries[Math.max(0, entries.length - trustedProxies)] ?? "") ?? direct
}

/** How a request came. */
export interface Arrival {
  /** The client's own x-request-id where it is well-formed, else one made here. */
  readonly requestId: string
  /** The client's address, behind the proxies that are trusted. */
  readonly address: string
  /** Unix milliseconds. */
  readonly at: number
  /** On the monotonic clock. */
  readonly startedAt: number
  readonly trace: RequestTrace | undefined
}

export class RequestContext extends Context.Reference<RequestContext>()("gateway/http/RequestContext", {
  defaultValue: (): Arrival => ({
    requestId: "none",
    address: "unknown",
    at: 0,
    startedAt: 0,
    trace: undefined
  })
}) {}

export const isRequestId = (id: string): boolean => /^[A-Za-z0-9._-]{1,128}$/.test(id)

export const makeContextReader = (options: { readonly trustedProxies: number }) =>
  Effect.gen(function* () {
    const ids = yield* Ids
    const clock = yield* Effect.clock
    const { source } = yield* Tracing
    return (request: IncomingMessage, traced: TracedEndpoint | undefined): Arrival => {
      const { headers, socket } = request
      const sent = headers["x-request-id"]
      const requestId = typeof sent === "string" && isRequestId(sent) ? sent : ids.prefixed("req")
      return {
        requestId,
        address: clientAddress(socket.remoteAddress, headers["x-forwarded-for"], options.trustedProxies),
        at: clock.unsafeCurrentTimeMillis(),
        startedAt: Monotonic.millisOf(clock),
        trace: source && traced && RequestTrace.begin(source, request, traced, requestId)
      }
    }
  })

/** The idempotency key as sent; of a header that came several times, all of it. */
export const idempotencyKeyOf = ({ headers }: IncomingMessage): string | undefined => {
  const sent = headers[idempotencyKey]
  return Array.isArray(sent) ? sent.join(", ") : sent
}
