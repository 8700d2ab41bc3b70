import type { HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import ipaddr from "ipaddr.js"

/** Headers by which proxies name the client or themselves. */
const forwardingHeader =
  /^(?:via|cdn-loop|cf-.*|x-envoy-.*|x-original-.*|x-real-.*|x-remote-.*|.*forward.*|.*proxy.*|.*-?(?:client|connecting|user|cluster)-?ip)$/

/** Whether a request comes from this machine, and through no proxy. */
export const isLocal = (request: HttpServerRequest.HttpServerRequest): boolean => {
  const { remoteAddress } = NodeHttpServerRequest.toIncomingMessage(request).socket
  return (
    remoteAddress !== undefined &&
    ipaddr.isValid(remoteAddress) &&
    ipaddr.process(remoteAddress).range() === "loopback" &&
    !Object.keys(request.headers).some((name) => forwardingHeader.test(name))
  )
}
