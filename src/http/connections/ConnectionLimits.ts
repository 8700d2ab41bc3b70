import { readFileSync } from "node:fs"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Context, Effect } from "effect"
import { makeHeadStart, sentBytes } from "../../node/Outgoing.ts"
import * as Metrics from "../../services/metrics/Metrics.ts"

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

const isFinished = ({ response }: Exchange): boolean => response.writableFinished || response.destroyed

/** A new connection is not closed to make room for this long, because its first request may be on its way. */
const firstBytesMillis = 1000

/**
 * In bytes per second. A client that reads its response slower than this for `maxSecondsBehind` is disconnected. The
 * operating system takes up to 2 MB at once, so even a faster client seems to read nothing until it takes more. The docs
 * therefore require 16 kB a second.
 */
const minimumPace = 1000
const maxSecondsBehind = 180
/** In bytes per second. A slower reader may be disconnected to make room. Because of the 2 MB steps, the docs require 500 kB. */
const fairPace = 64 * 1024
const evictableSecondsBehind = 5

/** Requests whose body is being received before authentication. */
const unauthenticatedRequests = new WeakSet<IncomingMessage>()

/** Runs `receiving`. Meanwhile, the request's connection may be closed to make room, like an idle one. */
export const whileUnauthenticated = <A, E, R>(
  request: IncomingMessage,
  receiving: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => unauthenticatedRequests.add(request)),
    () => receiving,
    () => Effect.sync(() => unauthenticatedRequests.delete(request))
  )

/** A client connection. `latest` is its latest exchange, and `previous` the one before if it was pipelined. */
export class Connection {
  readonly socket: Socket
  readonly address: string
  latest: Exchange | undefined
  previous: Exchange | undefined
  /** Whether the client sent invalid HTTP, after which nothing more is read. */
  isRefused = false
  readonly #openedAt = performance.now()
  lastUse = 0
  #bytesSent = 0
  /** The seconds by which the client is behind `minimumPace`. `#secondsBehindFair` is the same for `fairPace`. */
  #secondsBehindMinimum = 0
  #secondsBehindFair = 0

  constructor(socket: Socket, address: string) {
    this.socket = socket
    this.address = address
  }

  get isIdle(): boolean {
    return this.latest === undefined || isFinished(this.latest)
  }

  /** Whether the connection may be closed to make room. A new one may not, because its request may be on its way. */
  get isEvictable(): boolean {
    const isNew = this.socket.bytesRead === 0 && performance.now() - this.#openedAt < firstBytesMillis
    return (this.isIdle || this.#isUnauthenticated) && !isNew
  }

  get #isUnauthenticated(): boolean {
    const isFirst = this.previous === undefined || isFinished(this.previous)
    return isFirst && this.latest !== undefined && unauthenticatedRequests.has(this.latest.request)
  }

  /** Whether more than one request awaits its response. */
  get isPipelined(): boolean {
    return this.previous !== undefined && !isFinished(this.previous)
  }

  /** The seconds by which a slow reader is behind `fairPace`, or 0 if its connection must not be closed for that. */
  get secondsBehind(): number {
    return this.#secondsBehindFair >= evictableSecondsBehind ? this.#secondsBehindFair : 0
  }

  get isStalled(): boolean {
    return this.#secondsBehindMinimum >= maxSecondsBehind
  }

  begin(exchange: Exchange): void {
    this.previous = this.isIdle ? undefined : this.latest
    this.latest = exchange
  }

  /** Measures the client's pace. Must run every second. */
  inspect(): void {
    if (this.socket.writableLength === 0) {
      this.#secondsBehindMinimum = 0
      this.#secondsBehindFair = 0
      return
    }
    const bytesSent = sentBytes(this.socket)
    const acceptedBytes = bytesSent - this.#bytesSent
    this.#bytesSent = bytesSent
    this.#secondsBehindMinimum = Math.max(0, this.#secondsBehindMinimum + 1 - acceptedBytes / minimumPace)
    this.#secondsBehindFair = Math.max(0, this.#secondsBehindFair + 1 - acceptedBytes / fairPace)
  }
}

/** Returns the process's limit of open files from `/proc`, or a common limit on systems without `/proc`. */
const readDescriptorLimit = (): number => {
  try {
    const softLimit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1]
    return softLimit === undefined ? 1024 : Number(softLimit)
  } catch {
    return 1024
  }
}

const reservedDescriptors = 128
const maxConnections = 10_000

/** Returns the limits of connections. A request may need a second file descriptor, for its connection to a provider. */
export const connectionLimits = (options: { readonly trustedProxies: number; readonly descriptors?: number }) => {
  const { descriptors = readDescriptorLimit(), trustedProxies } = options
  const total = Math.min(maxConnections, Math.max(2, Math.floor((descriptors - reservedDescriptors) / 2)))
  return { total, perAddress: trustedProxies > 0 ? total : Math.ceil(total / 2) }
}

export class ConnectionLimits extends Context.Reference<ConnectionLimits>()("gateway/http/ConnectionLimits", {
  defaultValue: () => connectionLimits({ trustedProxies: 0 })
}) {}

type Reason = "idle" | "unread" | "pipelined" | "stalled"

interface Eviction {
  readonly connection: Connection
  readonly reason: Reason
}

/**
 * Returns the connection to close: the least recently used idle one, else the slowest reader, else the least recently used one
 * with pipelined requests, because hardly any client pipelines.
 */
const findEviction = (connections: Iterable<Connection>): Eviction | undefined => {
  let idleCandidate: Connection | undefined
  let slowCandidate: Connection | undefined
  let pipelinedCandidate: Connection | undefined
  for (const connection of connections) {
    if (connection.isEvictable && connection.lastUse < (idleCandidate?.lastUse ?? Infinity)) idleCandidate = connection
    if (connection.secondsBehind > (slowCandidate?.secondsBehind ?? 0)) slowCandidate = connection
    if (connection.isPipelined && connection.lastUse < (pipelinedCandidate?.lastUse ?? Infinity))
      pipelinedCandidate = connection
  }
  if (idleCandidate !== undefined) return { connection: idleCandidate, reason: "idle" }
  if (slowCandidate !== undefined) return { connection: slowCandidate, reason: "unread" }
  return pipelinedCandidate && { connection: pipelinedCandidate, reason: "pipelined" }
}

/** Closes connections to make room for new ones: first idle ones, then those of slow readers, then pipelined ones. */
export class Connections {
  readonly #limits: typeof ConnectionLimits.Service
  readonly #open = new Map<Duplex, Connection>()
  readonly #byAddress = new Map<string, Set<Connection>>()
  #uses = 0

  constructor(limits: typeof ConnectionLimits.Service) {
    this.#limits = limits
  }

  add(socket: Socket): Connection | undefined {
    const address = socket.remoteAddress ?? "unknown"
    const neighbours = this.#byAddress.get(address) ?? new Set()
    if (neighbours.size >= this.#limits.perAddress && !this.#evict(neighbours)) return undefined
    if (this.#open.size >= this.#limits.total && !this.#evict(this.#open.values())) return undefined
    const connection = new Connection(socket, address)
    this.#use(connection)
    this.#open.set(socket, connection)
    Metrics.connections.unsafeUpdate(this.#open.size, [])
    this.#byAddress.set(address, neighbours.add(connection))
    socket.once("close", () => this.#remove(connection))
    return connection
  }

  begin(socket: Duplex, exchange: Exchange): void {
    const connection = this.#open.get(socket)
    if (connection === undefined) return
    this.#use(connection)
    connection.begin(exchange)
  }

  get(socket: Duplex): Connection | undefined {
    return this.#open.get(socket)
  }

  #use(connection: Connection): void {
    this.#uses += 1
    connection.lastUse = this.#uses
  }

  /** Closes stalled connections. Must run every second. */
  inspect(): void {
    for (const connection of this.#open.values()) {
      connection.inspect()
      if (connection.isStalled) this.#close({ connection, reason: "stalled" })
    }
  }

  #evict(candidates: Iterable<Connection>): boolean {
    const eviction = findEviction(candidates)
    if (eviction === undefined) return false
    this.#close(eviction)
    return true
  }

  #close({ connection, reason }: Eviction): void {
    Metrics.unsafeCount(Metrics.connectionsClosed, { reason })
    connection.socket.destroy()
    this.#remove(connection)
  }

  #remove(connection: Connection): void {
    if (!this.#open.delete(connection.socket)) return
    Metrics.connections.unsafeUpdate(this.#open.size, [])
    const neighbours = this.#byAddress.get(connection.address)
    neighbours?.delete(connection)
    if (neighbours?.size === 0) this.#byAddress.delete(connection.address)
  }
}

export const probe = Symbol("gateway/http/probe")

const startOfHead = Buffer.from("HTTP/1.1 ")
const probeMillis = [1, 4, 16, 64, 256, 1024, 4096, 16_384]

/**
 * Detects whether a client that has shut down its sending side has closed its whole connection. Only writing shows that,
 * because a closed client answers with a reset. The probe therefore sends the start of the status line early.
 */
export const watchHalfClosed = (connection: Connection): void => {
  const { socket } = connection
  const delays = probeMillis.values()
  const sendEarly = makeHeadStart(socket, startOfHead)
  const check = () => {
    const response = connection.latest?.response
    if (response === undefined || response.writableFinished || !socket.writable) return
    if (response.headersSent) response.emit(probe)
    else if (response.socket !== null) sendEarly()
    const { value } = delays.next()
    if (value !== undefined) setTimeout(check, value).unref()
  }
  check()
}
