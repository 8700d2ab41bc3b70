import { Socket } from "node:net"
import { Context } from "effect"
import { Client, errors } from "undici"

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
export const exceptionsOf = ({ except }: Proxies): string => (except.trim() === "*" ? "*" : `${except},${ownHosts}`)

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
export const failClosedTunnels = <F extends (...args: never) => unknown>(connect: F): F =>
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
