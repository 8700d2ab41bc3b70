import { readFileSync } from "node:fs"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Context } from "effect"
import * as Metrics from "../../services/metrics/Metrics.ts"

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

const isOver = ({ response }: Exchange): boolean => response.writableFinished || response.destroyed

/** A connection's first bytes should have come by then. */
const arrivalMillis = 1000

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
    return this.isIdle && !isNew
  }

  begin(exchange: Exchange): void {
    this.previous = this.isIdle ? undefined : this.latest
    this.latest = exchange
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

const longestIdle = (connections: Iterable<Connection>): Connection | undefined => {
  let longest: Connection | undefined
  for (const connection of connections) {
    if (connection.isSpare && connection.lastUse < (longest?.lastUse ?? Infinity)) longest = connection
  }
  return longest
}

/** Idle connections make room for new ones. */
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

  #evict(candidates: Iterable<Connection>): boolean {
    const connection = longestIdle(candidates)
    if (connection === undefined) return false
    connection.socket.destroy()
    this.#remove(connection)
    return true
  }

  #remove(connection: Connection): void {
    if (!this.#open.delete(connection.socket)) return
    Metrics.connections.unsafeUpdate(this.#open.size, [])
    const neighbours = this.#byAddress.get(connection.address)
    neighbours?.delete(connection)
    if (neighbours?.size === 0) this.#byAddress.delete(connection.address)
  }
}
