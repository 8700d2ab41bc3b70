import type { Server } from "node:http"
import { Socket, setDefaultAutoSelectFamilyAttemptTimeout } from "node:net"
import { Context, Effect, type Scope } from "effect"
import { Agent, Client, type Dispatcher, EnvHttpProxyAgent, errors, Pool } from "undici"

export interface Proxies {
  /** The URL of the proxy for `http:`, if any. May contain a password. */
  readonly http: string | undefined
  /** The URL of the proxy for `https:`. If undefined, that for `http:` is used. May contain a password. */
  readonly https: string | undefined
  /** Comma-separated hosts that are called without a proxy, like their subdomains. `*` means all hosts. */
  readonly except: string
}

/** The proxies for all outgoing calls of an effect. */
export class OutgoingProxies extends Context.Reference<OutgoingProxies>()("gateway/OutgoingProxies", {
  defaultValue: (): Proxies => ({ http: undefined, https: undefined, except: "" })
}) {}

// Always called without a proxy, so a model server on this machine needs no entry in NO_PROXY.
const ownHosts = "localhost,127.0.0.1,[::1]"

/** Returns the hosts that are called without a proxy, in the format of undici's agents. */
const exceptionsOf = ({ except }: Proxies): string => (except.trim() === "*" ? "*" : `${except},${ownHosts}`)

/** Returns the port of a URL, or the default port of its scheme. */
export const portOf = ({ port, protocol }: URL): string => port || (protocol === "https:" ? "443" : "80")

const isExcepted = (url: URL, exceptions: string): boolean =>
  exceptions === "*" ||
  exceptions.split(/[,\s]+/).some((entry) => {
    const [, name = "", port = ""] = /^(?:\*?\.)?(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    if (name === "" || (port !== "" && port !== portOf(url))) return false
    return url.hostname === name || url.hostname.endsWith(`.${name}`)
  })

/** Returns the URL of the proxy through which to call a URL. Undefined if it is called without one. */
export const proxyFor = (proxies: Proxies, url: URL): string | undefined => {
  const proxy = url.protocol === "https:" ? (proxies.https ?? proxies.http) : proxies.http
  return proxy === undefined || isExcepted(url, exceptionsOf(proxies)) ? undefined : proxy
}

const authorizationOf = ({ password, username }: URL): Record<string, string> => {
  if (username === "") return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { "proxy-authorization": `Basic ${Buffer.from(pair).toString("base64")}` }
}

/** Replaces a `SocketError`, because undici would reconnect after one endlessly and without a pause. */
const toTunnelFailure = (error: unknown): unknown =>
  error instanceof errors.SocketError ? new Error("the proxy closed the connection", { cause: error }) : error

/** Makes undici's `connect` fail for good if the proxy closes the connection (see `toTunnelFailure`). Needed by undici 7.30. */
const failClosedTunnels = <F extends (...args: never) => unknown>(connect: F): F =>
  new Proxy(connect, {
    apply: async (target, self, args) => {
      try {
        return await Reflect.apply(target, self, args)
      } catch (error) {
        throw toTunnelFailure(error)
      }
    }
  })

/**
 * Opens a connection to `target` (`address:port`) through a proxy. Fails if the proxy refuses.
 */
export const openTunnel = async (proxy: string, target: string, signal: AbortSignal): Promise<Socket> => {
  const url = new URL(proxy)
  const client = new Client(url.origin)
  try {
    const { socket, statusCode } = await client.connect({ path: target, headers: authorizationOf(url), signal })
    if (!(socket instanceof Socket)) throw new TypeError("a tunnel must be a socket")
    socket.once("close", () => client.destroy(() => undefined))
    if (statusCode === 200) return socket
    socket.on("error", () => undefined).destroy()
    throw new Error(`the proxy answered with status ${statusCode}`)
  } catch (error) {
    client.destroy(() => undefined)
    throw toTunnelFailure(error)
  }
}

/**
 * Milliseconds to connect to one address of a host before the next is tried. Node's 250 ms are too short for a distant host:
 * if IPv6 or IPv4 does not work, every connection would fail. Two seconds also allow for a lost packet, which Linux resends
 * after one second.
 */
const addressTimeoutMillis = 2_000

/** Applies to all connections of the process, including those to PostgreSQL. */
export const setAddressTimeout = Effect.sync(() => setDefaultAutoSelectFamilyAttemptTimeout(addressTimeoutMillis))

/**
 * Calls `use` with a signal that aborts after `millis`, or when `interrupted` does. `AbortSignal.any` with
 * `AbortSignal.timeout` would not do: Node 20 refers to both weakly, so the limit is lost with the next garbage collection.
 */
export const abortAfter = async <A>(
  millis: number,
  interrupted: AbortSignal,
  use: (signal: AbortSignal) => Promise<A>
): Promise<A> => {
  const controller = new AbortController()
  const interrupt = () => controller.abort(interrupted.reason)
  const timer = setTimeout(
    () => controller.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError")),
    millis
  )
  interrupted.addEventListener("abort", interrupt)
  if (interrupted.aborted) interrupt()
  try {
    return await use(controller.signal)
  } finally {
    clearTimeout(timer)
    interrupted.removeEventListener("abort", interrupt)
  }
}

interface AgentOptions {
  /** Milliseconds to connect to a host. With a proxy, the limit applies separately to the connection, the tunnel and TLS. */
  readonly connectTimeoutMillis: number
  /** The maximum number of connections per host. Unlimited if undefined. */
  readonly connections?: number
}

const makeDispatcher = (proxies: Proxies, { connectTimeoutMillis, ...rest }: AgentOptions): Dispatcher => {
  const connect = { timeout: connectTimeoutMillis, autoSelectFamilyAttemptTimeout: addressTimeoutMillis }
  const { http, https } = proxies
  if (http === undefined && https === undefined) return new Agent({ ...rest, connect })
  return new EnvHttpProxyAgent({
    ...rest,
    connect,
    proxyTls: connect,
    requestTls: { timeout: connectTimeoutMillis },
    clientFactory: (proxy, options) => {
      // Limits the wait for a proxy that cannot reach the host. Undici's default is 300 s.
      const pool = new Pool(proxy, { ...options, headersTimeout: connectTimeoutMillis })
      return Object.assign(pool, { connect: failClosedTunnels(pool.connect.bind(pool)) })
    },
    // An empty string means no proxy. With undefined, undici would read the variables of the process.
    httpProxy: http ?? "",
    httpsProxy: https ?? "",
    noProxy: exceptionsOf(proxies)
  })
}

/** Returns an agent that uses the proxies of `OutgoingProxies` and is destroyed with the scope. */
export const makeAgent = (options: AgentOptions): Effect.Effect<Dispatcher, never, Scope.Scope> =>
  Effect.flatMap(OutgoingProxies, (proxies) =>
    Effect.acquireRelease(
      Effect.sync(() => makeDispatcher(proxies, options)),
      (agent) => Effect.promise(() => agent.destroy())
    )
  )

/**
 * After the last response of a connection, runs `close` instead of Node's `destroySoon`. That resets the connection if the
 * request's body was not read completely, so the client could lose the response. Needed by Node 20.20 and 24.9.
 */
export const replaceDestroySoon = (socket: Socket, close: (destroySoon: () => void) => void): void => {
  const destroySoon = socket.destroySoon.bind(socket)
  Object.assign(socket, { destroySoon: () => close(destroySoon) })
}

/**
 * Allows responses to a client that has shut down its sending side. Node's HTTP server ends such a connection immediately, and
 * only this undocumented property prevents it. Needed by Node 20.20 and 24.9.
 */
export const allowHalfOpen = (server: Server): void => {
  Object.assign(server, { httpAllowHalfOpen: true })
}

/**
 * Returns a function that sends the next byte of `head`, which must be the beginning of the socket's next write. That write
 * then skips the bytes that were sent. The early bytes show whether a client has disconnected or only shut down its sending
 * side, because only a failed write tells Node, which cannot send a part of a status line. Needed by Node 20.20 and 24.9.
 */
export const makeHeadStart = (socket: Socket, head: Uint8Array): (() => void) => {
  const write = socket.write.bind(socket)
  let sent = 0
  const writeRest = (
    text: string | Uint8Array,
    encoding?: BufferEncoding,
    callback?: (error?: Error | null) => void
  ) => {
    Reflect.deleteProperty(socket, "write")
    const rest = typeof text === "string" ? text.slice(sent) : text.subarray(sent)
    sent = 0
    return write(rest, encoding, callback)
  }
  return () => {
    if (sent === head.length) return
    if (sent === 0) Object.assign(socket, { write: writeRest })
    write(head.subarray(sent, sent + 1))
    sent += 1
  }
}

const numberOf = (holder: unknown, name: string): number => {
  const value: unknown = typeof holder === "object" && holder !== null ? Reflect.get(holder, name) : undefined
  return typeof value === "number" ? value : 0
}

/**
 * Returns how many bytes of a socket's output the system has accepted, from undocumented properties. Node's own counters change
 * only once per chunk, so a slow reader of a large response would look like one that reads nothing. Needed by Node 20.20 and
 * 24.9.
 */
export const sentBytes = (socket: Socket): number =>
  numberOf(socket, "_bytesDispatched") - numberOf(Reflect.get(socket, "_handle"), "writeQueueSize")

/** Reads a response body of undici. Returns undefined if it is larger than `maxBytes`, after closing it. */
export const readAnswerBody = async (
  body: AsyncIterable<Uint8Array>,
  maxBytes: number
): Promise<Buffer | undefined> => {
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > maxBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
