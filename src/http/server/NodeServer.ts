import { createServer, type IncomingMessage, type Server, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Duration, Effect, Schedule, type Scope } from "effect"
import { type Failure, GatewayBusy, InvalidRequest, UnknownEndpoint } from "../../domain/Failure.ts"
import { allowHalfOpen, replaceDestroySoon } from "../../node/Outgoing.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { RequestReporter } from "../../services/telemetry/RequestLines.ts"
import { requestIdHeader } from "../AnswerHeaders.ts"
import { smallBodyBytes } from "../body/BodyReceiver.ts"
import {
  type Connection,
  ConnectionLimits,
  Connections,
  type Exchange,
  watchHalfClosed
} from "../connections/ConnectionLimits.ts"
import { toWire, type WireError } from "../errors/ErrorMessages.ts"

const rawAnswer = ({ body, headers, status }: WireError, requestId: string): string => {
  const text = JSON.stringify(body)
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(text)}`,
    `${requestIdHeader}: ${requestId}`,
    ...Object.entries(headers ?? {}).map(([name, value]) => `${name}: ${value}`),
    "connection: close",
    "",
    text
  ].join("\r\n")
}

const explanations: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "The request headers are too large.",
  ERR_HTTP_REQUEST_TIMEOUT: "The request was not received in time."
}

interface RawRefusal {
  readonly text: string
  /** Reports the refusal. Called when the text is sent. */
  readonly report: () => void
}

const refuse = (socket: Duplex, { report, text }: RawRefusal): void => {
  // The socket of a CONNECT request has no error listener, so a reset would end the process.
  socket.on("error", () => {})
  if (!socket.writable) return void socket.destroy()
  report()
  socket.end(text, () => socket.destroy())
}

const maxLingering = 32
const lingerMillis = 1000

const makeRejector = () => {
  let lingeringCount = 0
  return (socket: Socket, { report, text }: RawRefusal): void => {
    socket.on("error", () => {})
    if (lingeringCount >= maxLingering) return void socket.destroy()
    lingeringCount += 1
    // Closing a socket with unread data resets the connection, so the client could not read the response.
    const timer = setTimeout(() => socket.destroy(), lingerMillis).unref()
    socket.once("close", () => {
      clearTimeout(timer)
      lingeringCount -= 1
    })
    socket.once("end", () => socket.destroySoon()).resume()
    report()
    socket.end(text)
  }
}

const drainMillis = 5000
const maxDrainedBytes = 64 * 1024 * 1024
const drainCheckMillis = 50

/**
 * Destroys the connection if the rest of the body takes too long or is too large. Until then the rest is read, because closing
 * a connection with unread data resets it, so the client could not read the response.
 */
const limitDrain = (socket: Socket, request: IncomingMessage): void => {
  const deadline = performance.now() + drainMillis
  const maxBytesRead = socket.bytesRead + maxDrainedBytes
  const check = setInterval(() => {
    if (request.complete || socket.destroyed) clearInterval(check)
    else if (performance.now() > deadline || socket.bytesRead > maxBytesRead) socket.destroy()
  }, drainCheckMillis).unref()
}

const isSmall = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) <= smallBodyBytes

/** After the response, limits how much of the rest of the body the connection receives. */
const drainUnread = ({ request, response }: Exchange): void => {
  if (isSmall(request)) return
  response.once("finish", () => {
    if (!request.complete) limitDrain(request.socket, request)
  })
}

const lingerOverBody = (connection: Connection): void => {
  const { socket } = connection
  replaceDestroySoon(socket, (destroySoon) => {
    const request = connection.latest?.request
    if (request === undefined || request.complete || socket.destroyed) return destroySoon()
    limitDrain(socket, request)
    request.once("end", destroySoon).once("close", destroySoon)
    socket.end()
  })
}

/** Sends the refusal after the responses to earlier requests of the connection. */
const refuseUnparsed = ({ latest, previous, socket }: Connection, refusal: RawRefusal): void => {
  const isWithinLatest = latest !== undefined && !latest.request.complete
  if (isWithinLatest && latest.response.headersSent) {
    if (latest.response.writableFinished) return void socket.destroy()
    return void latest.response.once("finish", () => socket.destroySoon())
  }
  const previousResponse = (isWithinLatest ? previous : latest)?.response
  // An error within the body of the latest request is reported by that request's handler.
  const answer = isWithinLatest ? { ...refusal, report: () => {} } : refusal
  if (previousResponse === undefined || previousResponse.writableFinished || previousResponse.destroyed)
    return refuse(socket, answer)
  // Runs before Node's own listener, which would close the connection of a client that has shut down its sending side.
  previousResponse.prependOnceListener("finish", () => refuse(socket, answer))
}

/** Makes the HTTP server. Requests that Node cannot parse also get an error in the gateway's envelope. */
export const makeNodeServer: Effect.Effect<Server, never, RequestReporter | Scope.Scope> = Effect.gen(function* () {
  const ids = yield* Ids
  const connections = new Connections(yield* ConnectionLimits)
  const inspect = Effect.sync(() => connections.inspect())
  // The layer may be built uninterruptibly. The fiber would inherit that and could not be stopped.
  yield* Effect.repeat(inspect, Schedule.spaced("1 second")).pipe(Effect.interruptible, Effect.forkScoped)
  const { report } = yield* RequestReporter
  const makeRefusal = (failure: Failure, method = ""): RawRefusal => {
    const wire = toWire(failure)
    const { code } = wire.body.error
    const requestId = ids.prefixed("req")
    return {
      text: rawAnswer(wire, requestId),
      report: () =>
        report({
          requestId,
          surface: "none",
          method,
          path: undefined,
          status: wire.status,
          code,
          startedAt: undefined
        })
    }
  }
  const server = createServer({
    // Long enough for a slow upload of 48 MiB.
    requestTimeout: Duration.toMillis("5 minutes"),
    headersTimeout: Duration.toMillis("1 minute"),
    keepAliveTimeout: Duration.toMillis("75 seconds"),
    connectionsCheckingInterval: Duration.toMillis("5 seconds"),
    maxHeaderSize: 32 * 1024,
    // Node's own responses to a missing Host and, below, to an unknown Expect lack the gateway's envelope.
    requireHostHeader: false
  })
  allowHalfOpen(server)
  const reject = makeRejector()
  const acceptListeners = server.listeners("connection")
  server.removeAllListeners("connection").on("connection", (socket: Socket) => {
    const connection = connections.add(socket)
    if (connection === undefined) return reject(socket, makeRefusal(new GatewayBusy()))
    for (const listen of acceptListeners) Reflect.apply(listen, server, [socket])
    socket.once("end", () => watchHalfClosed(connection))
    lingerOverBody(connection)
  })
  server.on("checkExpectation", (request, response) => server.emit("request", request, response))
  server.on("request", (request, response) => {
    connections.begin(request.socket, { request, response })
    drainUnread({ request, response })
  })
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const connection = connections.get(socket)
    const { code = "" } = error
    const isUnparsed = code.startsWith("HPE_") || code === "ERR_HTTP_REQUEST_TIMEOUT"
    if (connection === undefined || !isUnparsed) return void socket.destroy()
    // The parser emits the error again for all further data.
    if (connection.isRefused) return
    connection.isRefused = true
    if (code === "HPE_CLOSED_CONNECTION" && !connection.isIdle) return
    const message = explanations[code] ?? "The request is not valid HTTP."
    refuseUnparsed(connection, makeRefusal(new InvalidRequest({ message, param: null })))
  })
  server.on("connect", (_request, socket) => refuse(socket, makeRefusal(new UnknownEndpoint(), "CONNECT")))
  return server
})
