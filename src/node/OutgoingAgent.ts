import { setDefaultAutoSelectFamilyAttemptTimeout } from "node:net"
import { Effect, type Scope } from "effect"
import { Agent, type Dispatcher, EnvHttpProxyAgent, Pool } from "undici"
import { exceptionsOf, failClosedTunnels, OutgoingProxies, type Proxies } from "./OutgoingProxies.ts"

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
