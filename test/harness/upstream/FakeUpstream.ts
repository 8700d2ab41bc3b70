/** `make`: an HTTP server that does what a test scripts and shows what reached it; and the replies to script. */

import { createServer, type IncomingHttpHeaders, request, type ServerResponse } from "node:http"
import { Deferred, Effect, FiberId, Queue } from "effect"
import { jsonChunks } from "../../../src/services/media/Chunks.ts"
import { listen } from "../Listening.ts"

/** A request that reached the fake. */
export interface Received {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The body as JSON; undefined where it is none. */
  readonly body: unknown
  readonly bytes: Buffer
  /** Tells connections apart: the same number came over the same socket. */
  readonly socket: number
  /** Ends when the socket is gone. */
  readonly closed: Effect.Effect<void>
}

/** How the fake meets one request; it may wait for whatever it likes. */
export type Reply = (response: ServerResponse, received: Received) => void | Promise<void>

/** A call that is held open. */
export interface HeldCall {
  readonly release: Effect.Effect<void>
  /** Ends when the caller has let go of the connection. */
  readonly gone: Effect.Effect<void>
}

export interface FakeUpstream {
  /** Without a trailing slash. */
  readonly url: string
  /** Replies for the next requests, in order; an unscripted request is answered 599. */
  readonly script: (...replies: ReadonlyArray<Reply>) => Effect.Effect<void>
  /** The next request not yet looked at; waits for it. */
  readonly received: Effect.Effect<Received>
  /** Closes every connection that carries no request. */
  readonly closeIdle: Effect.Effect<void>
}

/** Stands in a body for an object of 20,000 levels, which `JSON.stringify` cannot write. */
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

/** Takes the request and says nothing, ever. */
export const silent: Reply = () => undefined

/** Breaks the connection where it stands. */
export const cut = Symbol("cut")

/** What to write, what to wait for, or the end of the connection. */
export type Step = string | Uint8Array | Effect.Effect<unknown> | typeof cut

/** Sends its head at once, then one step after the other, and ends the body by itself unless it was cut. */
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

/** Scripts a call that is held where the reply waits for its gate. */
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

/** The same for a body of JSON, of which nothing comes before it is released. */
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

/** Turns of the event loop, many even when each comes late: what was on its way over loopback has then arrived. */
export const settled = Effect.repeatN(Effect.sleep("3 millis"), 10)

/** An HTTP server on a port of its own that does what a script says, and the same thing where it says nothing. */
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

/** The same, of which nothing unscripted is expected. */
export const make = serving(json(599, { error: { message: "unscripted" } }))

/** Passes a request on to another server and its answer back, broken off where it breaks off. */
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

/** A body as its host reads it, for one that may have bytes to be encoded in it. */
export const asSent = (body: unknown): unknown =>
  JSON.parse(Buffer.concat([...jsonChunks(body, "a mark that nobody can guess")]).toString("utf8"))
