import { Duration, Effect, ExecutionStrategy, Exit, Layer, Scope, Stream } from "effect"
import { OutgoingProxies, type Proxies, proxyFor } from "../node/Outgoing.ts"
import type { AddressRange } from "../services/access/AddressRange.ts"
import { Fetcher, type FetchFailed, type FetchRequest, type PostRequest } from "../services/media/Fetcher.ts"
import * as Monotonic from "../services/runtime/Monotonic.ts"
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
  /** For the name, the connection and TLS of one hop. */
  readonly connectTimeoutSeconds: number
  readonly names?: Names | undefined
  /** PEM of the only trusted authorities; undefined: the usual ones. */
  readonly ca?: string | undefined
}

const maxRedirects = 3
const longestUrl = 8_192
const longestStart = "2 seconds"
const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])

const ownHeaders = (request: FetchRequest): Record<string, string> => {
  const headers: Record<string, string> = {}
  const given = request.own?.headers ?? {}
  for (const name in given) headers[name.toLowerCase()] = given[name] ?? ""
  return headers
}

const read = (text: string, base?: URL): Effect.Effect<URL, FetchFailed> => {
  if (text.length > longestUrl || !URL.canParse(text, base?.href))
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
    if (typeof location !== "string") return yield* failure("status", from, "a redirect to nowhere", status)
    const to = yield* read(location, from)
    if (from.protocol !== "https:" || to.protocol === "https:") return to
    return yield* refusal("redirect", to, `redirected from https at ${from.host}`, status)
  })

const accept = (url: URL, response: HopResponse, limitBytes: number): Effect.Effect<HopResponse, FetchFailed> => {
  const { headers, status } = response
  if (status !== 200) return Effect.fail(failure("status", url, `status ${status}`, status))
  const { "content-encoding": encoding = "identity", "content-length": length } = headers
  if (String(encoding).trim().toLowerCase() !== "identity") {
    return Effect.fail(failure("network", url, "compressed, which was not asked for", status))
  }
  return Number(length) > limitBytes
    ? Effect.fail(failure("too_large", url, `announces more than ${limitBytes} bytes`, status))
    : Effect.succeed(response)
}

/** A body that breaks off, or does not come, is as short as it is. */
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
      Effect.timeout(longestStart),
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
    // Told like a name of a private address, so that nobody learns which private names exist.
    const answers = yield* Effect.mapError(names(url.hostname), ({ message }) =>
      failure("network", url, message, undefined, "name")
    )
    const addresses: Array<Address> = []
    for (const answer of answers) {
      const address = parseAddress(answer)
      if (address === undefined) return yield* refusal("name", url, `${answer} is no address`)
      addresses.push(address)
    }
    return addresses
  })

  /** Refused if one of a name's addresses is not allowed. */
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
    // The port is empty where it is the scheme's default.
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
      onTimeout: () => failure("timeout", url, "took too long to look up")
    })
  })

  /** Connects to what `resolve` allows; undefined: wherever the system resolves the name. */
  const hop = (
    { headers: more, post, url }: Pick<HopRequest, "url" | "headers" | "post">,
    resolve: Effect.Effect<HopRequest["addresses"], FetchFailed>
  ) =>
    Effect.suspend(() => {
      let isConnected = false
      const late = Effect.suspend(() =>
        isConnected ? Effect.never : Effect.fail(failure("timeout", url, "took too long to connect to"))
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

  const ask = (url: URL, own: boolean, request: FetchRequest) =>
    hop(
      { url, headers: own ? ownHeaders(request) : {}, post: undefined },
      own ? Effect.succeed(undefined) : resolveAllowed(url, request.from)
    )

  const post = Effect.fn("Fetcher.post")(({ answerBytes = 0, body, headers, url: text, withinSeconds }: PostRequest) =>
    Effect.gen(function* () {
      const url = yield* read(text)
      const response = yield* Effect.timeoutFail(hop({ url, headers, post: body }, resolveAllowed(url, "customer")), {
        duration: Duration.seconds(withinSeconds),
        onTimeout: () => failure("timeout", url, `no answer within ${withinSeconds} s`)
      })
      return { status: response.status, answer: yield* readStart(response, answerBytes) }
    }).pipe(Effect.scoped)
  )

  const follow = Effect.fnUntraced(function* (first: URL, request: FetchRequest) {
    const scope = yield* Effect.scope
    const trusted =
      request.own !== undefined && URL.canParse(request.own.origin) ? new URL(request.own.origin) : undefined
    let url = first
    let own = true
    for (let hops = 0; hops <= maxRedirects; hops++) {
      // Once redirected elsewhere, no later hop gets the headers.
      own &&= url.origin === trusted?.origin
      const hopScope = yield* Scope.fork(scope, ExecutionStrategy.sequential)
      const response = yield* Scope.extend(ask(url, own, request), hopScope)
      if (!redirects.has(response.status)) return yield* accept(url, response, request.limitBytes)
      url = yield* resolveRedirect(url, response)
      yield* Scope.close(hopScope, Exit.void)
    }
    return yield* refusal("redirect", url, `more than ${maxRedirects} redirects`)
  })

  const open = Effect.fnUntraced(function* (request: FetchRequest) {
    const url = yield* read(request.url)
    const late = failure("timeout", url, `not whole within ${request.withinSeconds} s`)
    const deadline = (yield* Monotonic.millis) + request.withinSeconds * 1_000
    const { body, fail, status } = yield* Effect.timeoutFail(follow(url, request), {
      duration: Duration.seconds(request.withinSeconds),
      onTimeout: () => late
    })
    const left = deadline - (yield* Monotonic.millis)
    yield* Effect.forkScoped(
      Effect.delay(
        Effect.sync(() => fail(late)),
        Math.max(0, left)
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
