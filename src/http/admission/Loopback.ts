import { HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect } from "effect"
import { UnknownEndpoint } from "../../domain/Failure.ts"
import { isLoopbackHost } from "../../services/access/BlockList.ts"

/** Headers in which proxies name the client or themselves. A request with one did not come directly from this machine. */
const forwardingHeader =
  /^(?:via|cdn-loop|cf-.*|x-envoy-.*|x-original-.*|x-real-.*|x-remote-.*|.*forward.*|.*proxy.*|.*-?(?:client|connecting|user|cluster)-?ip)$/

/** The settings that name this machine. Loopback names are accepted in addition. */
export interface OwnNames {
  readonly host: string
  readonly publicUrl: string
}

const hostnameOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, "") : "")

/**
 * Returns whether the `host` header names this machine. A request of a DNS rebinding attack has the attacker's name there,
 * although that name resolves to this machine.
 */
const isNamedBy = ({ headers: { host = "" } }: HttpServerRequest.HttpServerRequest, own: OwnNames): boolean => {
  const name = hostnameOf(`http://${host}`)
  return (
    isLoopbackHost(name) ||
    (name !== "" && [hostnameOf(own.publicUrl), hostnameOf(`http://${own.host}`)].includes(name))
  )
}

const isLocal = (request: HttpServerRequest.HttpServerRequest, own: OwnNames): boolean => {
  const { remoteAddress = "" } = NodeHttpServerRequest.toIncomingMessage(request).socket
  return (
    isLoopbackHost(remoteAddress) &&
    isNamedBy(request, own) &&
    !Object.keys(request.headers).some((name) => forwardingHeader.test(name))
  )
}

export const isFromLoopback = (own: OwnNames) =>
  Effect.map(HttpServerRequest.HttpServerRequest, (request) => isLocal(request, own))

/** Fails with UnknownEndpoint for other machines, unless the endpoint is public. */
export const requireLoopback = (isPublic: boolean, own: OwnNames) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    isPublic || isLocal(request, own) ? Effect.void : new UnknownEndpoint()
  )
