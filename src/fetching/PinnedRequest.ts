import { Resolver } from "node:dns/promises"
import { NodeStream } from "@effect/platform-node"
import { Effect, Stream } from "effect"
import ipaddr from "ipaddr.js"
import { buildConnector, Client } from "undici"
import { openTunnel, portOf } from "../node/Outgoing.ts"
import type { AddressRange } from "../services/access/BlockList.ts"
import { FetchFailed, type UrlProblem } from "../services/media/Fetcher.ts"
import { errorCode } from "../services/runtime/System.ts"

export type Address = ipaddr.IPv4 | ipaddr.IPv6

const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3")

/** Converts an IPv4-mapped IPv6 address to IPv4. Returns undefined for ambiguous forms and addresses with a zone id. */
export const parseAddress = (text: string): Address | undefined => {
  if (ipaddr.IPv4.isValidFourPartDecimal(text)) return ipaddr.IPv4.parse(text)
  // Rejects `::10.0.0.1`, because the parser would read it as 10.0.0.1, unlike the system.
  if (/%|^::\d+\./.test(text) || !ipaddr.IPv6.isValid(text)) return undefined
  const address = ipaddr.IPv6.parse(text)
  return address.isIPv4MappedAddress() ? address.toIPv4Address() : address
}

export const canonical = (address: Address): string => address.toNormalizedString()

/** Excludes IPv6 addresses that contain an IPv4 address (NAT64, 6to4), because that may be private. */
export const isPublic = (address: Address): boolean =>
  address.range() === "unicast" && (address instanceof ipaddr.IPv4 || address.match(globalUnicast))

export const within = (ranges: ReadonlyArray<AddressRange>): ((address: Address) => boolean) => {
  const parsed = ranges.map((range) => ipaddr.parseCIDR(range))
  return (address) => parsed.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits))
}

export type Names = (host: string) => Effect.Effect<ReadonlyArray<string>, Error>

const firstTryMillis = 1_000
const tries = 2

const special = /(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa)$/

export const isPrivateName = (host: string): boolean => {
  const name = host.toLowerCase().replace(/\.$/, "")
  return !name.includes(".") || special.test(name)
}

/** Queries DNS directly, because the system's lookup uses Node's few threads, which connections to providers need too. */
export const makeNames =
  (servers?: ReadonlyArray<string>): Names =>
  (host) =>
    Effect.flatMap(
      Effect.promise((signal) => {
        const resolver = new Resolver({ timeout: firstTryMillis, tries })
        if (servers !== undefined) resolver.setServers(servers)
        signal.addEventListener("abort", () => resolver.cancel())
        return Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)])
      }),
      (answers) => {
        const addresses = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []))
        return addresses.length > 0 ? Effect.succeed(addresses) : Effect.fail(new Error("the name has no address"))
      }
    )

const maxAddresses = 8
const nextAddressMillis = 1_000
const detailLimit = 300

/** Contains only the host of the URL, because paths and queries may contain secrets. */
export const failure = (
  reason: FetchFailed["reason"],
  url: URL | undefined,
  what: string,
  status?: number,
  problem?: UrlProblem
) => {
  const detail = url === undefined ? what : `${url.host.slice(0, 255)}: ${what}`
  return new FetchFailed({ reason, status, detail: detail.replaceAll(/\s+/g, " ").slice(0, detailLimit), problem })
}

export const refusal = (problem: UrlProblem, url: URL | undefined, what: string, status?: number): FetchFailed =>
  failure("refused", url, what, status, problem)

const toNetworkFailure = (url: URL, status?: number) => (cause: unknown) => {
  if (cause instanceof FetchFailed) return cause
  const error = cause instanceof Error ? cause : new Error(String(cause))
  const code = errorCode(error)
  const text = error instanceof AggregateError ? error.errors.map(String).join("; ") : error.message
  return failure("network", url, code === undefined ? text : `${code} ${text}`, status)
}

export interface HopRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  /** The body of a POST. Undefined for a GET. */
  readonly post: string | undefined
  /** Connects only to these addresses, without another lookup. If undefined, the system resolves the name. */
  readonly addresses: ReadonlyArray<Address> | undefined
  /** The only trusted certificate authorities, in PEM. If undefined, the default ones. */
  readonly ca: string | undefined
  /** The URL of the proxy to use, if any. */
  readonly proxy: string | undefined
  readonly onConnect: () => void
}

export interface HopResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  /** The socket pauses while 64 KiB are unread. */
  readonly body: Stream.Stream<Uint8Array, FetchFailed>
  readonly fail: (failure: FetchFailed) => void
}

const targetOf = (address: Address, url: URL): string =>
  `${address.kind() === "ipv4" ? address.toString() : `[${address.toString()}]`}:${portOf(url)}`

/** Opens a tunnel through the proxy to the address that was checked, so the proxy does not resolve the name again. */
const tunnelFor = ({ addresses, ca, onConnect, url }: HopRequest, proxy: string, signal: AbortSignal) => {
  const [first] = addresses ?? []
  const target = first === undefined ? `${url.hostname}:${portOf(url)}` : targetOf(first, url)
  const secure = buildConnector({ timeout: 0, ...(ca === undefined ? undefined : { ca }) })
  const connect: buildConnector.connector = (options, take) => {
    openTunnel(proxy, target, signal).then(
      (socket) => {
        signal.addEventListener("abort", () => socket.destroy())
        const finish: buildConnector.Callback = (...result) => {
          if (result[0] === null) onConnect()
          take(...result)
        }
        if (url.protocol === "http:") return finish(null, socket)
        return secure({ ...options, servername: serverNameOf(options), httpSocket: socket }, finish)
      },
      (error: Error) => take(error, null)
    )
  }
  return connect
}

const serverNameOf = ({ servername }: buildConnector.Options): string => (servername ?? "").replace(/\.$/, "")

const connectorFor = (request: HopRequest, signal: AbortSignal): buildConnector.connector => {
  const { addresses, ca, onConnect, proxy } = request
  if (proxy !== undefined) return tunnelFor(request, proxy, signal)
  const answers = addresses?.slice(0, maxAddresses).map((address) => ({
    address: address.toString(),
    family: address.kind() === "ipv4" ? 4 : 6
  }))
  const checked = addresses?.map(canonical)
  const connect = buildConnector({
    timeout: 0,
    signal,
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: nextAddressMillis,
    ...(answers === undefined ? undefined : { lookup: (_host, _options, answer) => answer(null, answers) }),
    ...(ca === undefined ? undefined : { ca })
  })
  return (target, take) =>
    connect({ ...target, servername: serverNameOf(target) }, (...[error, socket]) => {
      if (error !== null) return take(error, null)
      const remote = parseAddress(socket.remoteAddress ?? "")
      if (checked !== undefined && (remote === undefined || !checked.includes(canonical(remote)))) {
        socket.destroy()
        return take(new Error("the connection reached another address"), null)
      }
      onConnect()
      return take(null, socket)
    })
}

/** Sends a request over a new connection, which is closed with the scope. */
export const send = Effect.fnUntraced(function* (request: HopRequest) {
  const { headers, post, url } = request
  const ending = new AbortController()
  const connect = connectorFor(request, ending.signal)
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new Client(url.origin, { headersTimeout: 0, bodyTimeout: 0, connect })),
    (made) =>
      Effect.sync(() => {
        // Aborts a running connection attempt too, because undici does not.
        ending.abort()
        made.destroy(() => undefined)
      })
  )
  const {
    body,
    headers: received,
    statusCode: status
  } = yield* Effect.tryPromise({
    try: (signal) => {
      const method = post === undefined ? "GET" : "POST"
      return client.request({ path: url.pathname + url.search, method, headers, body: post ?? null, signal })
    },
    catch: toNetworkFailure(url)
  })
  // Without a listener the error would crash the process.
  body.on("error", () => undefined)
  const toFailure = toNetworkFailure(url, status)
  const response: HopResponse = {
    status,
    headers: received,
    // Checks for an error first, because `fromReadable` treats a body that failed before its first read as complete.
    body: Stream.suspend(() =>
      body.errored === null ? NodeStream.fromReadable(() => body, toFailure) : Stream.fail(toFailure(body.errored))
    ),
    fail: (failure) => void body.destroy(failure)
  }
  return response
})
