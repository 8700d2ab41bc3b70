import { readFileSync } from "node:fs"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Context, Effect } from "effect"
import { sentBytes } from "../../node/HttpSockets.ts"
import * as Metrics from "../../services/metrics/Metrics.ts"

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

const isOver = ({ response }: Exchange): boolean => response.writableFinished || response.destroyed

/** A connection's first bytes should have come by then. */
const arrivalMillis = 1000

/**
 * In bytes per second. A client that falls too far behind this pace is disconnected. The system accepts bytes in steps of up to
 * 2 MB, and a client is behind until the next step, so the docs ask for 16 kB a second.
 */
const minimumPace = 1000
const maxSecondsBehind = 180
/** In bytes per second. A slower reader may be disconnected to make room. Because of the steps, the docs ask for 500 kB. */
const fairPace = 64 * 1024
const spareSecondsBehind = 5

/** Requests that are not authenticated until their body has arrived. */
const unidentified = new WeakSet<IncomingMessage>()

/** Until `receiving` ends, the connection may be closed to make room, like an idle one. */
export const whileUnidentified = <A, E, R>(
  request: IncomingMessage,
  receiving: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => unidentified.add(request)),
    () => receiving,
    () => Effect.sync(() => unidentified.delete(request))
  )

/** Pipelined requests are answered in order. */
export class Connection {
  readonly socket: Socket
  readonly address: string
  latest: Exchange | undefined
  previous: Exchange | undefined
  /** Its client sent no HTTP: nothing more is read. */
  isRefused = false
  readonly #openedAt = performance.now()
  lastUse = 0
  #sent = 0
  /** Seconds that its client is behind `minimumPace`. */
  #behindMinimum = 0
  #behindFair = 0

  constructor(socket: Socket, address: string) {
    this.socket = socket
    this.address = address
  }

  get isIdle(): boolean {
    return this.latest === undefined || isOver(this.latest)
  }

  /** May be closed to make room; a new one may have sent its request already. */
  get isSpare(): boolean {
    const isNew = this.socket.bytesRead === 0 && performance.now() - this.#openedAt < arrivalMillis
    return (this.isIdle || this.#isUnidentified) && !isNew
  }

  get #isUnidentified(): boolean {
    const isFirst = this.previous === undefined || isOver(this.previous)
    return isFirst && this.latest !== undefined && unidentified.has(this.latest.request)
  }

  /** More than one of its requests is unanswered. */
  get isPipelined(): boolean {
    return this.previous !== undefined && !isOver(this.previous)
  }

  /** 0 if its client reads fast enough to keep the connection, or there is nothing to read. */
  get secondsBehind(): number {
    return this.#behindFair >= spareSecondsBehind ? this.#behindFair : 0
  }

  get isStalled(): boolean {
    return this.#behindMinimum >= maxSecondsBehind
  }

  begin(exchange: Exchange): void {
    this.previous = this.isIdle ? undefined : this.latest
    this.latest = exchange
  }

  /** Call it every second. The system accepts bytes in steps, which are larger for clients that were fast. */
  inspect(): void {
    if (this.socket.writableLength === 0) {
      this.#behindMinimum = 0
      this.#behindFair = 0
      return
    }
    const sent = sentBytes(this.socket)
    const taken = sent - this.#sent
    this.#sent = sent
    this.#behindMinimum = Math.max(0, this.#behindMinimum + 1 - taken / minimumPace)
    this.#behindFair = Math.max(0, this.#behindFair + 1 - taken / fairPace)
  }
}

/** From `/proc`; a usual limit where there is none. */
const descriptorLimit = (): number => {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1]
    return soft === undefined ? 1024 : Number(soft)
  } catch {
    return 1024
  }
}

const reservedDescriptors = 128
const maxConnections = 10_000

/** A request may need a second descriptor for its provider. */
export const connectionLimits = (options: { readonly trustedProxies: number; readonly descriptors?: number }) => {
  const { descriptors = descriptorLimit(), trustedProxies } = options
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
 * Returns the longest unused connection without work, else the slowest reader, else the longest unused one with pipelined
 * requests, which hardly any client sends.
 */
const leastUseful = (connections: Iterable<Connection>): Eviction | undefined => {
  let spare: Connection | undefined
  let unread: Connection | undefined
  let pipelined: Connection | undefined
  for (const connection of connections) {
    if (connection.isSpare && connection.lastUse < (spare?.lastUse ?? Infinity)) spare = connection
    if (connection.secondsBehind > (unread?.secondsBehind ?? 0)) unread = connection
    if (connection.isPipelined && connection.lastUse < (pipelined?.lastUse ?? Infinity)) pipelined = connection
  }
  if (spare !== undefined) return { connection: spare, reason: "idle" }
  if (unread !== undefined) return { connection: unread, reason: "unread" }
  return pipelined && { connection: pipelined, reason: "pipelined" }
}

/** Closes idle connections to make room for new ones, then those of slow readers and those with pipelined requests. */
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

  /** Call it every second. */
  inspect(): void {
    for (const connection of this.#open.values()) {
      connection.inspect()
      if (connection.isStalled) this.#close({ connection, reason: "stalled" })
    }
  }

  #evict(candidates: Iterable<Connection>): boolean {
    const eviction = leastUseful(candidates)
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
