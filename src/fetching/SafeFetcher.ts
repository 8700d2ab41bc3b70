import { Duration, Effect, ExecutionStrategy, Exit, Layer, Scope, Stream } from "effect"
import { OutgoingProxies, type Proxies, proxyFor } from "../node/Outgoing.ts"
import type { AddressRange } from "../services/access/BlockList.ts"
import { Fetcher, type FetchFailed, type FetchRequest, type PostRequest } from "../services/media/Fetcher.ts"
import { monotonicMillis } from "../services/runtime/System.ts"
import {
  type Address,
  failure,
  type HopRequest,
  type HopResponse,
  isPrivateName,
  isPublic,
  makeNames,
  type Names,
  parseAddress,
  refusal,
  send,
  within
} from "./PinnedRequest.ts"

export interface SafeFetcherOptions {
  readonly fetchAllow: ReadonlyArray<AddressRange>
  readonly resultFetchAllow: ReadonlyArray<AddressRange>
  /** The time limit for the DNS lookup, connection and TLS handshake of one hop together. */
  readonly connectTimeoutSeconds: number
  readonly names?: Names | undefined
  /** The only trusted certificate authorities, in PEM. If undefined, the default ones. */
  readonly ca?: string | undefined
}

const maxRedirects = 3
const maxUrlLength = 8_192
const maxHeadersWait = "2 seconds"
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

const ownHeaders = (request: FetchRequest): Record<string, string> => {
  const headers: Record<string, string> = {}
  const source = request.ownOrigin?.headers ?? {}
  for (const name in source) headers[name.toLowerCase()] = source[name] ?? ""
  return headers
}

const read = (text: string, base?: URL): Effect.Effect<URL, FetchFailed> => {
  if (text.length > maxUrlLength || !URL.canParse(text, base?.href))
    return Effect.fail(refusal(base === undefined ? "url" : "redirect", base, "not a URL"))
  const url = new URL(text, base)
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return Effect.fail(refusal(base === undefined ? "url" : "redirect", base, "not http(s)"))
  }
  if (url.username !== "" || url.password !== "") {
    return Effect.fail(refusal("credentials", url, "credentials in the URL"))
  }
  return Effect.succeed(url)
}

const literalOf = (url: URL): Address | undefined => parseAddress(url.hostname.replace(/^\[|\]$/g, ""))

const resolveRedirect = (from: URL, { headers, status }: HopResponse) =>
  Effect.gen(function* () {
    const { location } = headers
    if (typeof location !== "string") return yield* failure("status", from, "a redirect without a location", status)
    const to = yield* read(location, from)
    if (from.protocol !== "https:" || to.protocol === "https:") return to
    return yield* refusal("redirect", to, `redirected from https at ${from.host}`, status)
  })

const accept = (url: URL, response: HopResponse, limitBytes: number): Effect.Effect<HopResponse, FetchFailed> => {
  const { headers, status } = response
  if (status !== 200) return Effect.fail(failure("status", url, `status ${status}`, status))
  const { "content-encoding": encoding = "identity", "content-length": length } = headers
  if (String(encoding).trim().toLowerCase() !== "identity") {
    return Effect.fail(failure("network", url, "compressed although the request forbids it", status))
  }
  return Number(length) > limitBytes
    ? Effect.fail(failure("too_large", url, `announces more than ${limitBytes} bytes`, status))
    : Effect.succeed(response)
}

/** Reads up to `limit` bytes, fewer if the body fails or is late. */
const readStart = ({ body }: HopResponse, limit: number): Effect.Effect<string> =>
  Effect.suspend(() => {
    if (limit === 0) return Effect.succeed("")
    const chunks: Array<Uint8Array> = []
    let bytes = 0
    const take = (chunk: Uint8Array) =>
      Effect.sync(() => {
        chunks.push(chunk)
        bytes += chunk.length
        return bytes < limit
      })
    return Stream.runForEachWhile(body, take).pipe(
      Effect.timeout(maxHeadersWait),
      Effect.ignore,
      Effect.map(() => Buffer.concat(chunks).subarray(0, limit).toString("utf8"))
    )
  })

const make = ({ ca, connectTimeoutSeconds, ...options }: SafeFetcherOptions, proxies: Proxies) => {
  const names = options.names ?? makeNames()
  const ranges = { customer: options.fetchAllow, provider: options.resultFetchAllow }
  const exempt = { customer: within(ranges.customer), provider: within(ranges.provider) }
  const connectTimeout = Duration.seconds(connectTimeoutSeconds)

  const addressesOf = Effect.fnUntraced(function* (url: URL) {
    const literal = literalOf(url)
    if (literal !== undefined) return [literal]
    // Unknown names and names of private addresses fail alike, so callers cannot find out which private names exist.
    const answers = yield* Effect.mapError(names(url.hostname), ({ message }) =>
      failure("network", url, message, undefined, "name")
    )
    const addresses: Array<Address> = []
    for (const answer of answers) {
      const address = parseAddress(answer)
      if (address === undefined) return yield* refusal("name", url, `${answer} is not an address`)
      addresses.push(address)
    }
    return addresses
  })

  /** Fails unless all addresses of the name are allowed. */
  const resolveAllowed = Effect.fnUntraced(function* (url: URL, from: FetchRequest["from"]) {
    const addresses = yield* addressesOf(url)
    const isExempt = exempt[from]
    const forbidden = addresses.find((address) => !isExempt(address) && !isPublic(address))
    if (forbidden !== undefined) {
      return yield* refusal(
        literalOf(url) === undefined ? "name" : "address",
        url,
        `${forbidden.toString()} is ${forbidden.range()}, not an address to fetch from`
      )
    }
    // `port` is empty for the default port of the scheme.
    if (url.port !== "" && !addresses.every(isExempt)) return yield* refusal("port", url, "not a default port")
    return addresses
  })

  const check = Effect.fn("Fetcher.check")(function* ({ from, url: text }: Pick<FetchRequest, "url" | "from">) {
    const url = yield* read(text)
    if (literalOf(url) === undefined) {
      if (url.port === "" && !isPrivateName(url.hostname)) return
      if (ranges[from].length === 0) {
        const problem = isPrivateName(url.hostname) ? "name" : "port"
        return yield* refusal(problem, url, "a private name, or not a default port")
      }
    }
    yield* Effect.timeoutFail(resolveAllowed(url, from), {
      duration: connectTimeout,
      onTimeout: () => failure("timeout", url, "DNS lookup timed out")
    })
  })

  /** Connects only to the addresses from `resolve`. If those are undefined, the system resolves the name. */
  const hop = (
    { headers: more, post, url }: Pick<HopRequest, "url" | "headers" | "post">,
    resolve: Effect.Effect<HopRequest["addresses"], FetchFailed>
  ) =>
    Effect.suspend(() => {
      let isConnected = false
      const late = Effect.suspend(() =>
        isConnected ? Effect.never : Effect.fail(failure("timeout", url, "connection timed out"))
      )
      const headers = { accept: "*/*", "user-agent": "generation-gateway", ...more, "accept-encoding": "identity" }
      const onConnect = () => {
        isConnected = true
      }
      const proxy = proxyFor(proxies, url)
      const response = Effect.flatMap(resolve, (addresses) =>
        send({ url, headers, post, addresses, ca, proxy, onConnect })
      )
      return Effect.raceFirst(response, Effect.delay(late, connectTimeout))
    })

  const get = (url: URL, isOwnOrigin: boolean, request: FetchRequest) =>
    hop(
      { url, headers: isOwnOrigin ? ownHeaders(request) : {}, post: undefined },
      isOwnOrigin ? Effect.succeed(undefined) : resolveAllowed(url, request.from)
    )

  const post = Effect.fn("Fetcher.post")(({ answerBytes = 0, body, headers, url: text, withinSeconds }: PostRequest) =>
    Effect.gen(function* () {
      const url = yield* read(text)
      const response = yield* Effect.timeoutFail(hop({ url, headers, post: body }, resolveAllowed(url, "customer")), {
        duration: Duration.seconds(withinSeconds),
        onTimeout: () => failure("timeout", url, `no response within ${withinSeconds} s`)
      })
      return { status: response.status, answer: yield* readStart(response, answerBytes) }
    }).pipe(Effect.scoped)
  )

  const follow = Effect.fnUntraced(function* (first: URL, request: FetchRequest) {
    const scope = yield* Effect.scope
    const ownOrigin =
      request.ownOrigin !== undefined && URL.canParse(request.ownOrigin.origin)
        ? new URL(request.ownOrigin.origin)
        : undefined
    let url = first
    let isOwnOrigin = true
    for (let hops = 0; hops <= maxRedirects; hops++) {
      // After a redirect to another origin, neither that hop nor a later one receives our headers.
      isOwnOrigin &&= url.origin === ownOrigin?.origin
      const hopScope = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      const response = yield* Scope.extend(get(url, isOwnOrigin, request), hopScope)
      if (!redirects.has(response.status)) return yield* accept(url, response, request.limitBytes)
      url = yield* resolveRedirect(url, response)
      yield* Scope.close(hopScope, Exit.void)
    }
    return yield* refusal("redirect", url, `more than ${maxRedirects} redirects`)
  })

  const open = Effect.fnUntraced(function* (request: FetchRequest) {
    const url = yield* read(request.url)
    const late = failure("timeout", url, `incomplete after ${request.withinSeconds} s`)
    const deadline = (yield* monotonicMillis) + request.withinSeconds * 1_000
    const { body, fail, status } = yield* Effect.timeoutFail(follow(url, request), {
      duration: Duration.seconds(request.withinSeconds),
      onTimeout: () => late
    })
    const remaining = deadline - (yield* monotonicMillis)
    yield* Effect.forkScoped(
      Effect.delay(
        Effect.sync(() => fail(late)),
        Math.max(0, remaining)
      )
    )
    let bytes = 0
    return Stream.mapEffect(body, (chunk) => {
      bytes += chunk.length
      return bytes <= request.limitBytes
        ? Effect.succeed(chunk)
        : Effect.fail(failure("too_large", url, `more than ${request.limitBytes} bytes`, status))
    })
  })

  const stream = (request: FetchRequest) => Stream.unwrapScoped(open(request))

  const bytes = Effect.fn("Fetcher.bytes")((request: FetchRequest) =>
    Effect.map(Stream.runCollect(stream(request)), (chunks) => Buffer.concat([...chunks]))
  )

  return Fetcher.of({ check, bytes, stream, post })
}

export const layer = (options: SafeFetcherOptions) =>
  Layer.effect(
    Fetcher,
    Effect.map(OutgoingProxies, (proxies) => make(options, proxies))
  )
