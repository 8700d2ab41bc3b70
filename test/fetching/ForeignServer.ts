import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { readFileSync } from "node:fs"
import {
  createServer as createHttp,
  type IncomingHttpHeaders,
  type RequestListener,
  type Server,
  type ServerResponse
} from "node:http"
import { createServer as createHttps } from "node:https"
import { createServer as createTcp, type Socket } from "node:net"
import path from "node:path"
import { Context, Deferred, Effect, FiberId, Layer, Option } from "effect"
import * as SafeFetcher from "../../src/fetching/SafeFetcher.ts"
import { type AddressRange, parseRange } from "../../src/services/access/BlockList.ts"
import { Fetcher, type FetchRequest } from "../../src/services/media/Fetcher.ts"
import { listen } from "../harness/Listening.ts"

const fixture = (name: string) => readFileSync(path.join(import.meta.dirname, "fixtures", name), "utf8")

/** Good for `pictures.example` and 127.0.0.1, and its own authority. */
export const certificate = fixture("cert.pem")

export const ranges = (...texts: ReadonlyArray<string>): ReadonlyArray<AddressRange> =>
  texts.flatMap((text) => parseRange(text) ?? [])

/** The gateway's own fetcher, which may fetch from these ranges besides the internet. */
export const fetcherFor = (
  allowed: ReadonlyArray<string>,
  given: Partial<SafeFetcher.SafeFetcherOptions> = {}
): Layer.Layer<Fetcher> =>
  SafeFetcher.layer({ fetchAllow: ranges(...allowed), resultFetchAllow: [], connectTimeoutSeconds: 2, ...given })

/** The same for one test. */
export const fetcherOver = (...given: Parameters<typeof fetcherFor>) =>
  Effect.map(Layer.build(fetcherFor(...given)), Context.get(Fetcher))

export const ask = (url: string, more: Partial<FetchRequest> = {}): FetchRequest => ({
  url,
  from: "customer",
  limitBytes: 1024 * 1024,
  withinSeconds: 20,
  ...more
})

export interface Seen {
  readonly path: string
  readonly host: string
  readonly headers: IncomingHttpHeaders
}

export interface ForeignServer {
  readonly port: number
  /** Without a trailing slash. */
  readonly url: string
  /** How many connections were made to it. */
  readonly connections: () => number
  readonly seen: ReadonlyArray<Seen>
  /** Waits for the first connection, and until there is none. */
  readonly called: Effect.Effect<void>
  readonly left: Effect.Effect<void>
}

export interface Place {
  readonly address?: string
  readonly port?: number
  readonly secure?: boolean
}

/** A server outside the gateway, at 127.0.0.1 unless said otherwise. */
export const make = Effect.fnUntraced(function* (reply: RequestListener, place: Place = {}) {
  const { address = "127.0.0.1", port = 0, secure = false } = place
  const seen: Array<Seen> = []
  const called = Deferred.unsafeMake<void>(FiberId.none)
  const left = Deferred.unsafeMake<void>(FiberId.none)
  let connections = 0
  let open = 0
  const listener: RequestListener = (request, response) => {
    seen.push({ path: request.url ?? "", host: request.headers.host ?? "", headers: request.headers })
    reply(request, response)
  }
  const server: Server = secure
    ? createHttps({ cert: certificate, key: fixture("key.pem") }, listener)
    : createHttp(listener)
  server.on("connection", (socket: Socket) => {
    connections += 1
    open += 1
    Deferred.unsafeDone(called, Effect.void)
    socket.on("close", () => {
      open -= 1
      if (open === 0) Deferred.unsafeDone(left, Effect.void)
    })
  })
  const bound = yield* listen(server, { address, port })
  const host = address.includes(":") ? `[${address}]` : address
  const foreign: ForeignServer = {
    port: bound,
    url: `${secure ? "https" : "http"}://${host}:${bound}`,
    connections: () => connections,
    seen,
    called: Deferred.await(called),
    left: Deferred.await(left)
  }
  return foreign
})

/** A server at the default port of an address, where this machine lets us listen there. */
export const atDefaultPort = (address: string) =>
  Effect.option(make((_, response) => response.end("secret"), { address, port: 80 }))

export const haveNoConnections = (servers: ReadonlyArray<Option.Option<ForeignServer>>): boolean =>
  servers.every(Option.match({ onNone: () => true, onSome: ({ connections }) => connections() === 0 }))

/** Every address that this process opens a socket for while the scope lasts, in order. */
export const sockets = Effect.gen(function* () {
  let opened = 0
  const count = () => {
    opened += 1
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => subscribe("net.client.socket", count)),
    () => Effect.sync(() => unsubscribe("net.client.socket", count))
  )
  return () => opened
})

/** Writes for as long as there is somebody to write to. */
export const endless = (response: ServerResponse, piece = Buffer.alloc(65_536)) => {
  const write = () => {
    while (!response.destroyed && response.write(piece));
  }
  response.on("drain", write)
  write()
}

/** A server below HTTP, and when its last connection was gone. */
export const below = Effect.fnUntraced(function* (talk: (socket: Socket) => void) {
  const gone = yield* Deferred.make<void>()
  const server = createTcp((socket) => {
    socket.on("close", () => Deferred.unsafeDone(gone, Effect.void))
    socket.resume()
    talk(socket)
  })
  return { port: yield* Effect.orDie(listen(server)), gone: Deferred.await(gone) }
})
