/** `make` starts an HTTP server with scripted replies that records the requests it receives. Also contains replies. */

import { createServer, type IncomingHttpHeaders, request, type ServerResponse } from "node:http"
import { Deferred, Effect, FiberId, Queue } from "effect"
import { jsonChunks } from "../../../src/services/media/Base64.ts"
import { listen } from "../Listening.ts"

/** A request that the server received. */
export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The body as JSON. Undefined if it is not JSON. */
  readonly body: unknown
  readonly bytes: Buffer
  /** The number of the connection. Requests on the same connection have the same number. */
  readonly socket: number
  /** Completes when the connection is closed. */
  readonly closed: Effect.Effect<void>
}

/** The reply to one request. It may wait for anything. */
export type Reply = (response: ServerResponse, received: Received) => void | Promise<void>

/** A call whose response is delayed until the test releases it. */
export interface HeldCall {
  readonly release: Effect.Effect<void>
  /** Completes when the caller has closed the connection. */
  readonly gone: Effect.Effect<void>
}

export interface FakeUpstream {
  /** Without a trailing slash. */
  readonly url: string
  /** Sets the replies to the next requests, in order. A request without a reply gets status 599. */
  readonly script: (...replies: ReadonlyArray<Reply>) => Effect.Effect<void>
  /** Waits for the next request that was not returned yet, and returns it. */
  readonly received: Effect.Effect<Received>
  /** Closes all connections without a running request. */
  readonly closeIdle: Effect.Effect<void>
}

/** A body's placeholder for an object of 20,000 levels, which `JSON.stringify` cannot write. */
export const deep = "an object of 20,000 levels"

const levels = `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`

const written = (body: unknown): string | undefined => JSON.stringify(body)?.replaceAll(JSON.stringify(deep), levels)

export const json =
  (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Reply =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(written(body))
  }

export const text =
  (status: number, contentType: string, body: string, headers: Readonly<Record<string, string>> = {}): Reply =>
  (response) => {
    response.writeHead(status, { "content-type": contentType, ...headers }).end(body)
  }

/** Never responds. */
export const silent: Reply = () => undefined

/** A step that breaks the connection. */
export const cut = Symbol("cut")

/** A part of a response: bytes to write, an effect to wait for, or the end of the connection. */
export type Step = string | Uint8Array | Effect.Effect<unknown> | typeof cut

/** Sends the response head at once, then the steps in order. Ends the body unless a step cut the connection. */
export const steps =
  (head: { readonly status?: number; readonly type?: string }, ...steps: ReadonlyArray<Step>): Reply =>
  async (response) => {
    response.writeHead(head.status ?? 200, { "content-type": head.type ?? "text/event-stream" })
    response.flushHeaders()
    for (const step of steps) {
      if (step === cut) {
        await new Promise((flushed) => response.write("", flushed))
        response.socket?.destroy()
        return
      }
      if (typeof step === "string" || step instanceof Uint8Array) response.write(step)
      else await Effect.runPromise(step)
    }
    response.end()
  }

/** Scripts a call that waits at the gate in its reply until the test opens it. */
export const hold = Effect.fnUntraced(function* (
  script: (reply: Reply) => Effect.Effect<void>,
  replyBehind: (gate: Effect.Effect<void>) => Reply
) {
  const gate = yield* Deferred.make<void>()
  const gone = yield* Deferred.make<void>()
  yield* script((response, received) => {
    response.on("close", () => Deferred.unsafeDone(gone, received.closed))
    return replyBehind(Deferred.await(gate))(response, received)
  })
  const held: HeldCall = { release: Effect.asVoid(Deferred.succeed(gate, undefined)), gone: Deferred.await(gone) }
  return held
})

/** Like `hold`, for a JSON body that is sent only after the release. */
export const holdJson = (script: (reply: Reply) => Effect.Effect<void>, body: unknown) =>
  hold(script, (gate) => steps({ type: "application/json" }, gate, JSON.stringify(body)))

export const sse = (...all: ReadonlyArray<Step>): Reply => steps({}, ...all)

export const event = (data: unknown): string => `data: ${written(data)}\n\n`
export const done = "data: [DONE]\n\n"

const parsed = (bytes: Buffer): unknown => {
  try {
    return JSON.parse(bytes.toString("utf8"))
  } catch {
    return undefined
  }
}

/** Waits for several turns of the event loop. Data that was sent over loopback has arrived by then. */
export const settled = Effect.repeatN(Effect.sleep("3 millis"), 10)

/** Starts an HTTP server with scripted replies. Without a script, it sends `otherwise`. */
export const serving = Effect.fnUntraced(function* (otherwise: Reply, at: { readonly port?: number } = {}) {
  const replies: Array<Reply> = []
  const inbox = yield* Queue.unbounded<Received>()
  const sockets = new WeakMap<object, { readonly number: number; readonly closed: Deferred.Deferred<void> }>()
  let connections = 0

  const server = createServer((request, response) => {
    const chunks: Array<Buffer> = []
    request.on("data", (chunk: Buffer) => chunks.push(chunk))
    request.on("end", () => {
      const socket = sockets.get(request.socket)
      if (socket === undefined) throw new Error("a request without a connection")
      const bytes = Buffer.concat(chunks)
      const received: Received = {
        method: request.method ?? "",
        path: request.url ?? "",
        headers: request.headers,
        body: parsed(bytes),
        bytes,
        socket: socket.number,
        closed: Deferred.await(socket.closed)
      }
      Queue.unsafeOffer(inbox, received)
      const reply = replies.shift() ?? otherwise
      Promise.resolve(reply(response, received)).catch(() => response.destroy())
    })
  })
  server.on("connection", (socket) => {
    const closed = Deferred.unsafeMake<void>(FiberId.none)
    sockets.set(socket, { number: connections++, closed })
    socket.on("close", () => Deferred.unsafeDone(closed, Effect.void))
  })
  const port = yield* Effect.orDie(listen(server, at))

  const fake: FakeUpstream = {
    url: `http://127.0.0.1:${port}`,
    script: (...next) => Effect.sync(() => replies.push(...next)),
    received: Queue.take(inbox),
    closeIdle: Effect.sync(() => server.closeIdleConnections())
  }
  return fake
})

/** Starts a server for which every request must be scripted. */
export const make = serving(json(599, { error: { message: "unscripted" } }))

/** Forwards a request to another server, and its response back. Breaks the response where the other server breaks it. */
export const relay =
  (target: string): Reply =>
  (response, { bytes, headers, method, path }) => {
    const { connection: _, ...kept } = headers
    const passing = request(new URL(path, target), { method, headers: kept, agent: false }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
      answer.on("close", () => answer.complete || response.destroy())
    })
    passing.on("error", () => response.destroy())
    response.on("close", () => passing.destroy())
    passing.end(bytes)
  }

/** Returns a body as the provider receives it, with its bytes encoded. */
export const asSent = (body: unknown): unknown =>
  JSON.parse(Buffer.concat([...jsonChunks(body, "a mark that nobody can guess")]).toString("utf8"))
