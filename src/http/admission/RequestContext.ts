import type { IncomingMessage } from "node:http"
import { isIPv4 } from "node:net"
import { Context, Effect } from "effect"
import ipaddr from "ipaddr.js"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { requestIdOf } from "../../services/requests/RequestColumns.ts"
import type { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { monotonicMillisOf } from "../../services/runtime/System.ts"
import { RequestTrace, type TracedEndpoint, Tracing } from "../../services/tracing/Tracing.ts"
import { requestIdHeader } from "../AnswerHeaders.ts"
import { isNonEmptyString, isObject, readModelId, refuse } from "../body/Guards.ts"
import { gatewayTag, idempotencyKey, tagPattern } from "../schema/Headers.ts"

const stripPort = (entry: string): string => {
  const bracketedAddress = /^\[([^\]]+)\](?::\d+)?$/.exec(entry)
  if (bracketedAddress?.[1] !== undefined) return bracketedAddress[1]
  const [host = "", port, ...rest] = entry.split(":")
  return port !== undefined && rest.length === 0 ? host : entry
}

/** Returns an IP address in its canonical form: IPv4 for `::ffff:a.b.c.d`. Undefined for any other text. */
const normalise = (entry: string): string | undefined => {
  // Parsing is not needed for IPv4, which has only one form, and nearly all clients use it.
  if (isIPv4(entry)) return entry
  const text = stripPort(entry.trim())
  return ipaddr.isValid(text) ? ipaddr.process(text).toString() : undefined
}

/**
 * Returns the client's address from `x-forwarded-for`, of which it trusts only the entries of the operator's proxies. For a
 * malformed header it returns the socket's address.
 */
const clientAddress = (
  socketAddress: string | undefined,
  forwardedFor: string | ReadonlyArray<string> | undefined,
  trustedProxies: number
): string => {
  const socketIp = normalise(socketAddress ?? "") ?? "unknown"
  if (trustedProxies === 0 || forwardedFor === undefined) return socketIp
  const entries = (typeof forwardedFor === "string" ? forwardedFor : forwardedFor.join(",")).split(",")
  return normalise(entries[Math.max(0, entries.length - trustedProxies)] ?? "") ?? socketIp
}

export interface Arrival {
  /** A UUID v7. A generating request's hold and its log row have this id. */
  readonly id: string
  /** The client's `x-request-id` if it is well-formed, else a new id. */
  readonly requestId: string
  /** The client's address, as the trusted proxies report it. */
  readonly address: string
  /** Unix milliseconds. */
  readonly at: number
  /** Milliseconds of the monotonic clock. */
  readonly startedAt: number
  readonly trace: RequestTrace | undefined
}

export class RequestContext extends Context.Reference<RequestContext>()("gateway/http/RequestContext", {
  defaultValue: (): Arrival => ({
    id: "none",
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
    return (request: IncomingMessage, endpoint: TracedEndpoint | undefined): Arrival => {
      const { headers, socket } = request
      const clientId = headers[requestIdHeader]
      const id = ids.uuid()
      const requestId = typeof clientId === "string" && isRequestId(clientId) ? clientId : requestIdOf(id)
      return {
        id,
        requestId,
        address: clientAddress(socket.remoteAddress, headers["x-forwarded-for"], options.trustedProxies),
        at: clock.unsafeCurrentTimeMillis(),
        startedAt: monotonicMillisOf(clock),
        trace: source && endpoint && RequestTrace.begin(source, request, endpoint, requestId)
      }
    }
  })

/** Returns the sent idempotency key. Repeated headers are joined. */
export const idempotencyKeyOf = ({ headers }: IncomingMessage): string | undefined => {
  const value = headers[idempotencyKey]
  return Array.isArray(value) ? value.join(", ") : value
}

const maxEndUserLength = 128

/** Shortens an end user's id. It copies the characters, because a slice would keep the whole text in memory. */
const truncate = (text: string): string =>
  text.length <= maxEndUserLength
    ? text
    : Array.from(text.slice(0, 2 * maxEndUserLength))
        .slice(0, maxEndUserLength)
        .join("")

/** Returns undefined if the tag is absent or invalid. */
export const tagOf = ({ headers }: IncomingMessage): string | undefined => {
  const tag = headers[gatewayTag]
  return typeof tag === "string" && tagPattern.test(tag) ? tag : undefined
}

const endUserIn = (body: unknown, isInMetadata: boolean): string | undefined => {
  if (!isObject(body)) return undefined
  const { metadata, safety_identifier, user } = body
  const id = isInMetadata && isObject(metadata) ? metadata.user_id : undefined
  const name = [user, safety_identifier, id].find(isNonEmptyString)
  return name === undefined ? undefined : truncate(name)
}

export const refuseTag = (): InvalidRequest =>
  refuse(null, `\`${gatewayTag}\` must be 1 to 64 of A-Z, a-z, 0-9, dots, underscores and dashes.`)

/**
 * Records the body's model and end user for the request log. Some dialects name the end user in `metadata`. Returns a refusal
 * if the request's tag is invalid.
 */
export const attribute = (
  { record, request }: { readonly record: RequestRecord; readonly request: IncomingMessage },
  body: unknown,
  isInMetadata = false
): InvalidRequest | undefined => {
  record.add({ type: "read", model: readModelId(body), endUser: endUserIn(body, isInMetadata) })
  return record.facts.tag === undefined && request.headers[gatewayTag] !== undefined ? refuseTag() : undefined
}
