import { HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect } from "effect"
import ipaddr from "ipaddr.js"
import { UnknownEndpoint } from "../../domain/Failure.ts"

/** Headers by which proxies name the client or themselves. */
const forwardingHeader =
  /^(?:via|cdn-loop|cf-.*|x-envoy-.*|x-original-.*|x-real-.*|x-remote-.*|.*forward.*|.*proxy.*|.*-?(?:client|connecting|user|cluster)-?ip)$/

const isLocal = (request: HttpServerRequest.HttpServerRequest): boolean => {
  const { remoteAddress } = NodeHttpServerRequest.toIncomingMessage(request).socket
  return (
    remoteAddress !== undefined &&
    ipaddr.isValid(remoteAddress) &&
    ipaddr.process(remoteAddress).range() === "loopback" &&
    !Object.keys(request.headers).some((name) => forwardingHeader.test(name))
  )
}

/** Unless it is public, an endpoint does not exist for requests from elsewhere. */
export const requireLoopback = (isPublic: boolean) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    isPublic || isLocal(request) ? Effect.void : new UnknownEndpoint()
  )
