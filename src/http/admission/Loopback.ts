import { HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect } from "effect"
import { UnknownEndpoint } from "../../domain/Failure.ts"
import { isLoopbackHost } from "../../services/access/AddressRange.ts"

/** Headers by which proxies name the client or themselves. */
const forwardingHeader =
  /^(?:via|cdn-loop|cf-.*|x-envoy-.*|x-original-.*|x-real-.*|x-remote-.*|.*forward.*|.*proxy.*|.*-?(?:client|connecting|user|cluster)-?ip)$/

/** What this machine is called beside its loopback names. */
export interface OwnNames {
  readonly host: string
  readonly publicUrl: string
}

const hostnameOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname.replace(/\.$/, "") : "")

/** A page whose own name leads to this machine, by DNS rebinding, sends that name. */
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

/** Unless it is public, an endpoint does not exist for requests from elsewhere. */
export const requireLoopback = (isPublic: boolean, own: OwnNames) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    isPublic || isLocal(request, own) ? Effect.void : new UnknownEndpoint()
  )
