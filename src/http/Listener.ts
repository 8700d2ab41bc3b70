import { createServer, type Server, type ServerResponse, STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import { Duration, Effect } from "effect"
import { InvalidRequest, UnknownEndpoint } from "../domain/Failure.ts"
import { Ids } from "../services/Ids.ts"
import { toWire, type WireError } from "./Wire.ts"

const rawAnswer = ({ body, status }: WireError, requestId: string): string => {
  const text = JSON.stringify(body)
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(text)}`,
    `x-request-id: ${requestId}`,
    "connection: close",
    "",
    text
  ].join("\r\n")
}

/** What Node's own parser refuses never becomes a request; the client still gets the envelope. */
const explanation = (code: string | undefined): string => {
  if (code === "HPE_HEADER_OVERFLOW") return "The request headers are too large."
  if (code === "ERR_HTTP_REQUEST_TIMEOUT") return "The request was not received in time."
  return "The request is not valid HTTP."
}

const refuse = (socket: Duplex, answer: string): void => {
  if (!socket.writable) return void socket.destroy()
  socket.end(answer, () => socket.destroy())
}

/** A Node server with limits on everything, whose own refusals are in the envelope too. */
export const listener: Effect.Effect<Server> = Effect.gen(function* () {
  const ids = yield* Ids
  const server = createServer({
    // Room for a slow 48 MiB upload; headers alone have a minute.
    requestTimeout: Duration.toMillis("5 minutes"),
    headersTimeout: Duration.toMillis("1 minute"),
    keepAliveTimeout: Duration.toMillis("75 seconds"),
    connectionsCheckingInterval: Duration.toMillis("5 seconds"),
    maxHeaderSize: 32 * 1024,
    // Node's own answer to a missing Host, and below to a strange Expect, has no envelope.
    requireHostHeader: false
  })
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  const latest = new WeakMap<Duplex, ServerResponse>()
  server.on("request", ({ socket }, response) => latest.set(socket, response))
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const response = latest.get(socket)
    const inTheMiddle = response !== undefined && response.headersSent && !response.writableFinished
    if (error.code === "ECONNRESET" || inTheMiddle) return void socket.destroy()
    const failure = new InvalidRequest({ message: explanation(error.code), param: null })
    refuse(socket, rawAnswer(toWire(failure), ids.prefixed("req")))
  })
  server.on("connect", (_request, socket) =>
    refuse(socket, rawAnswer(toWire(new UnknownEndpoint()), ids.prefixed("req")))
  )
  return server
})
