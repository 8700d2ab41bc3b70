import { Socket, setDefaultAutoSelectFamilyAttemptTimeout } from "node:net"
import { Context, Effect, type Scope } from "effect"
import { Agent, Client, type Dispatcher, EnvHttpProxyAgent, errors, Pool } from "undici"

export interface Proxies {
  /** URL of the proxy for `http:`; undefined: none. May hold a password. */
  readonly http: string | undefined
  /** URL of the proxy for `https:`; undefined: that for `http:`. May hold a password. */
  readonly https: string | undefined
  /** Comma-separated hosts that need no proxy, with their subdomains; `*` is every host. */
  readonly except: string
}

/** The proxies of all outgoing calls of an effect. */
export class OutgoingProxies extends Context.Reference<OutgoingProxies>()("gateway/OutgoingProxies", {
  defaultValue: (): Proxies => ({ http: undefined, https: undefined, except: "" })
}) {}

// A model server on this machine needs no entry in NO_PROXY.
const ownHosts = "localhost,127.0.0.1,[::1]"

/** Returns the hosts that need no proxy, in the format of undici's agents. */
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

/** Returns the URL of the proxy for a URL, or undefined if the host needs none. */
export const proxyFor = (proxies: Proxies, url: URL): string | undefined => {
  const proxy = url.protocol === "https:" ? (proxies.https ?? proxies.http) : proxies.http
  return proxy === undefined || isExcepted(url, exceptionsOf(proxies)) ? undefined : proxy
}

const authorizationOf = ({ password, username }: URL): Record<string, string> => {
  if (username === "") return {}
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { "proxy-authorization": `Basic ${Buffer.from(pair).toString("base64")}` }
}

/** After a `SocketError` undici connects again, without a pause and without end. */
const toTunnelFailure = (error: unknown): unknown =>
  error instanceof errors.SocketError ? new Error("the proxy closed the connection", { cause: error }) : error

/** Makes undici's `connect` to a proxy fail in another way if the proxy closes the connection. Needed by undici 7.30. */
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
    if (!(socket instanceof Socket)) throw new TypeError("a tunnel is a socket")
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
 * Milliseconds to connect to one address of a host before the next is tried. Node's 250 ms are too short for a distant host
 * if IPv6 or IPv4 does not work: every connection would fail. Two seconds also cover one lost packet, which Linux sends
 * again after a second.
 */
export const addressTimeoutMillis = 2_000

/** Applies to all connections of the process, including those to PostgreSQL. */
export const setAddressTimeout = Effect.sync(() => setDefaultAutoSelectFamilyAttemptTimeout(addressTimeoutMillis))

export interface AgentOptions {
  /** Milliseconds to connect to a host. With a proxy: for each of the connection to it, its tunnel to the host, and TLS. */
  readonly connectTimeoutMillis: number
  /** Connections per host at most; undefined: any number. */
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
      // Undici itself waits 300 s for a proxy that does not reach the host.
      const pool = new Pool(proxy, { ...options, headersTimeout: connectTimeoutMillis })
      return Object.assign(pool, { connect: failClosedTunnels(pool.connect.bind(pool)) })
    },
    // "" means no proxy; undefined would mean the variables of the process.
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
