import net from "node:net"
import tls from "node:tls"
import { Effect, type Scope } from "effect"
import type { FetchFailed } from "../services/media/Fetcher.ts"
import { type Address, canonical, parseAddress } from "./Addresses.ts"
import { broken, failed } from "./Failed.ts"

/** The most addresses of one name that are tried. */
const mostAddresses = 8
const nextAddressMillis = 1_000

const bare = (hostname: string): string => hostname.replace(/^\[|\]$/g, "")

/** Makes a socket that is gone when the scope closes, and waits until it says that it is ready. */
const ready = Effect.fnUntraced(function* <S extends net.Socket>(url: URL, event: string, make: () => S) {
  let socket: S | undefined
  yield* Effect.addFinalizer(() => Effect.sync(() => socket?.destroy()))
  return yield* Effect.async<S, FetchFailed>((resume) => {
    const fail = (error: Error) => resume(Effect.fail(broken(url, error)))
    try {
      const made = make()
      socket = made
      made.once(event, () => resume(Effect.succeed(made)))
      // Stays for as long as the socket: an error that nobody hears would end the process.
      made.on("error", fail)
      made.once("close", () => fail(new Error("the connection was closed")))
    } catch (error) {
      fail(error instanceof Error ? error : new Error(String(error)))
    }
  })
})

const open = (url: URL, addresses: ReadonlyArray<Address> | undefined) => {
  const answers = addresses?.slice(0, mostAddresses).map((address) => ({
    address: address.toString(),
    family: address.kind() === "ipv4" ? 4 : 6
  }))
  const [first] = answers ?? []
  const lookup: net.LookupFunction = (_host, { all }, answer) => {
    if (all === true) answer(null, answers ?? [])
    else answer(null, first?.address ?? "", first?.family)
  }
  return net.connect({
    host: bare(url.hostname),
    port: Number(url.port || (url.protocol === "https:" ? 443 : 80)),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: nextAddressMillis,
    ...(answers === undefined ? undefined : { lookup })
  })
}

const secured = (url: URL, socket: net.Socket, ca: string | undefined) => {
  const host = bare(url.hostname).replace(/\.$/, "")
  return tls.connect({
    socket,
    host,
    ALPNProtocols: ["http/1.1"],
    ...(net.isIP(host) === 0 ? { servername: host } : undefined),
    ...(ca === undefined ? undefined : { ca })
  })
}

/**
 * A connection to one of these addresses and to no other; nothing is looked up again. Without addresses it goes wherever
 * the system takes the name.
 */
export const connect = Effect.fnUntraced(function* (
  url: URL,
  addresses: ReadonlyArray<Address> | undefined,
  ca: string | undefined
): Effect.fn.Return<net.Socket, FetchFailed, Scope.Scope> {
  const socket = yield* ready(url, "connect", () => open(url, addresses))
  if (addresses !== undefined) {
    const reached = parseAddress(socket.remoteAddress ?? "")
    const checked = addresses.map(canonical)
    if (reached === undefined || !checked.includes(canonical(reached))) {
      return yield* failed("refused", url, "the connection led elsewhere")
    }
  }
  return url.protocol === "https:" ? yield* ready(url, "secureConnect", () => secured(url, socket, ca)) : socket
})
