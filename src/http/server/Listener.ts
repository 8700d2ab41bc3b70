import { createServer, type IncomingMessage, type Server, STATUS_CODES } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Duration, Effect, Schedule, type Scope } from "effect"
import { type Failure, GatewayBusy, InvalidRequest, UnknownEndpoint } from "../../domain/Failure.ts"
import { allowHalfOpen, replaceDestroySoon } from "../../node/HttpSockets.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { RequestReporter } from "../../services/telemetry/RequestReporter.ts"
import { smallBody } from "../body/BodyReceiver.ts"
import { type Connection, ConnectionLimits, Connections, type Exchange } from "../connections/Connections.ts"
import { watchHalfClosed } from "../connections/HalfClosed.ts"
import { toWire, type WireError } from "../errors/ErrorMessages.ts"

const rawAnswer = ({ body, headers, status }: WireError, requestId: string): string => {
  const text = JSON.stringify(body)
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(text)}`,
    `x-request-id: ${requestId}`,
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
  /** Call when the text is sent. */
  readonly report: () => void
}

const refuse = (socket: Duplex, { report, text }: RawRefusal): void => {
  // Node hands over the socket of a CONNECT without a listener, and a reset would end the process.
  socket.on("error", () => {})
  if (!socket.writable) return void socket.destroy()
  report()
  socket.end(text, () => socket.destroy())
}

const maxLingering = 32
const lingerMillis = 1000

const makeTurnAway = () => {
  let lingering = 0
  return (socket: Socket, { report, text }: RawRefusal): void => {
    socket.on("error", () => {})
    if (lingering >= maxLingering) return void socket.destroy()
    lingering += 1
    // A close with unread data would reset the connection before the client reads the response.
    const timer = setTimeout(() => socket.destroy(), lingerMillis).unref()
    socket.once("close", () => {
      clearTimeout(timer)
      lingering -= 1
    })
    socket.once("end", () => socket.destroySoon()).resume()
    report()
    socket.end(text)
  }
}

const drainMillis = 5000
const maxDrained = 64 * 1024 * 1024
const drainCheckMillis = 50

/** Closed with some of a body unread, a connection would be reset before its client has read the answer. */
const limitDrain = (socket: Socket, request: IncomingMessage): void => {
  const until = performance.now() + drainMillis
  const upTo = socket.bytesRead + maxDrained
  const check = setInterval(() => {
    if (request.complete || socket.destroyed) clearInterval(check)
    else if (performance.now() > until || socket.bytesRead > upTo) socket.destroy()
  }, drainCheckMillis).unref()
}

const isSmall = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) <= smallBody

/** Bounds what a kept connection still receives of an unread body. */
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

/** After the responses to earlier requests of the connection. */
const refuseUnparsed = ({ latest, previous, socket }: Connection, refusal: RawRefusal): void => {
  const isWithinLatest = latest !== undefined && !latest.request.complete
  if (isWithinLatest && latest.response.headersSent) {
    if (latest.response.writableFinished) return void socket.destroy()
    return void latest.response.once("finish", () => socket.destroySoon())
  }
  const before = (isWithinLatest ? previous : latest)?.response
  // The handler of the latest request reports it.
  const answer = isWithinLatest ? { ...refusal, report: () => {} } : refusal
  if (before === undefined || before.writableFinished || before.destroyed) return refuse(socket, answer)
  // Node would close the connection at once if the client has shut down its sending side.
  before.prependOnceListener("finish", () => refuse(socket, answer))
}

/** Its own refusals have the envelope too. */
export const listener: Effect.Effect<Server, never, RequestReporter | Scope.Scope> = Effect.gen(function* () {
  const ids = yield* Ids
  const connections = new Connections(yield* ConnectionLimits)
  const inspect = Effect.sync(() => connections.inspect())
  // If the server is acquired without interruption, the fiber would inherit that and never end.
  yield* Effect.repeat(inspect, Schedule.spaced("1 second")).pipe(Effect.interruptible, Effect.forkScoped)
  const { report } = yield* RequestReporter
  const raw = (failure: Failure, method = ""): RawRefusal => {
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
    // Room for a slow 48 MiB upload.
    requestTimeout: Duration.toMillis("5 minutes"),
    headersTimeout: Duration.toMillis("1 minute"),
    keepAliveTimeout: Duration.toMillis("75 seconds"),
    connectionsCheckingInterval: Duration.toMillis("5 seconds"),
    maxHeaderSize: 32 * 1024,
    // Node's own answer to a missing Host, or below to an unknown Expect, has no envelope.
    requireHostHeader: false
  })
  allowHalfOpen(server)
  const turnAway = makeTurnAway()
  const accept = server.listeners("connection")
  server.removeAllListeners("connection").on("connection", (socket: Socket) => {
    const connection = connections.add(socket)
    if (connection === undefined) return turnAway(socket, raw(new GatewayBusy()))
    for (const listen of accept) Reflect.apply(listen, server, [socket])
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
    // The parser refuses all that follows too.
    if (connection.isRefused) return
    connection.isRefused = true
    if (code === "HPE_CLOSED_CONNECTION" && !connection.isIdle) return
    const message = explanations[code] ?? "The request is not valid HTTP."
    refuseUnparsed(connection, raw(new InvalidRequest({ message, param: null })))
  })
  server.on("connect", (_request, socket) => refuse(socket, raw(new UnknownEndpoint(), "CONNECT")))
  return server
})
