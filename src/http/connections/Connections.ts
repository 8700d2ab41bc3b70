import { readFileSync } from "node:fs"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { Context } from "effect"

export interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

const isOver = ({ response }: Exchange): boolean => response.writableFinished || response.destroyed

/** In so many milliseconds the first bytes of a connection should have come. */
const arrivalMillis = 1000

/** One client connection. A client may send requests ahead; they are answered in their order. */
export class Connection {
  readonly socket: Socket
  readonly address: string
  latest: Exchange | undefined
  /** The one before the latest, if it was not over when the latest came. */
  previous: Exchange | undefined
  /** Its client sent what is no HTTP: nothing more is read from it. */
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

  /** Whether it may be closed to make room. A new one, of which nothing was read yet, may have sent its request. */
  get isSpare(): boolean {
    const isNew = this.socket.bytesRead === 0 && performance.now() - this.#openedAt < arrivalMillis
    return this.isIdle && !isNew
  }

  begin(exchange: Exchange): void {
    this.previous = this.isIdle ? undefined : this.latest
    this.latest = exchange
  }
}

/** What `/proc` says of this process; a usual limit where there is none. */
const descriptorLimit = (): number => {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1]
    return soft === undefined ? 1024 : Number(soft)
  } catch {
    return 1024
  }
}

/** Descriptors for the database, files, logs and what the runtime itself needs. */
const reservedDescriptors = 128
const mostConnections = 10_000

/** Half of what the reserve leaves, since a request may need one more descriptor for its provider. */
export const connectionLimits = (options: { readonly trustedProxies: number; readonly descriptors?: number }) => {
  const { descriptors = descriptorLimit(), trustedProxies } = options
  const total = Math.min(mostConnections, Math.max(2, Math.floor((descriptors - reservedDescriptors) / 2)))
  return { total, perAddress: trustedProxies > 0 ? total : Math.ceil(total / 2) }
}

export class ConnectionLimits extends Context.Reference<ConnectionLimits>()("gateway/http/ConnectionLimits", {
  defaultValue: () => connectionLimits({ trustedProxies: 0 })
}) {}

/** The longest unused of those on which no request is being worked on. */
const longestIdle = (connections: Iterable<Connection>): Connection | undefined => {
  let longest: Connection | undefined
  for (const connection of connections) {
    if (connection.isSpare && connection.lastUse < (longest?.lastUse ?? Infinity)) longest = connection
  }
  return longest
}

/** All open connections, within limits. Where there are too many, idle ones make room for new ones. */
export class Connections {
  readonly #limits: typeof ConnectionLimits.Service
  readonly #open = new Map<Duplex, Connection>()
  readonly #byAddress = new Map<string, Set<Connection>>()
  #uses = 0

  constructor(limits: typeof ConnectionLimits.Service) {
    this.#limits = limits
  }

  /** Undefined where there is no room for the connection. */
  add(socket: Socket): Connection | undefined {
    const address = socket.remoteAddress ?? "unknown"
    const neighbours = this.#byAddress.get(address) ?? new Set()
    if (neighbours.size >= this.#limits.perAddress && !this.#evict(neighbours)) return undefined
    if (this.#open.size >= this.#limits.total && !this.#evict(this.#open.values())) return undefined
    const connection = new Connection(socket, address)
    this.#use(connection)
    this.#open.set(socket, connection)
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
    const neighbours = this.#byAddress.get(connection.address)
    neighbours?.delete(connection)
    if (neighbours?.size === 0) this.#byAddress.delete(connection.address)
  }
}
