import { Context, Data, type Effect, type Stream } from "effect"

/**
 * Why a URL that somebody else chose gave nothing:
 * - `refused`: it does not lead where it may (scheme, port, address, redirects)
 * - `status`: the host answered with another status than 200
 * - `too_large`, `timeout`, `network`: what they say
 */
export class FetchFailed extends Data.TaggedError("FetchFailed")<{
  readonly reason: "refused" | "status" | "too_large" | "timeout" | "network"
  readonly status: number | undefined
  /** For the operator's log. */
  readonly detail: string
}> {}

export interface FetchRequest {
  readonly url: string
  /** Whose URL it is decides which list of exempt ranges holds: `FETCH_ALLOW` or `RESULT_FETCH_ALLOW`. */
  readonly from: "customer" | "provider"
  readonly limitBytes: number
  /** For all of it, redirects and body included. */
  readonly withinSeconds: number
  /**
   * A route's own origin, such as `https://queue.fal.run`: needs no check, and is the only one that gets the headers,
   * where a credential may be.
   */
  readonly own?: { readonly origin: string; readonly headers: Readonly<Record<string, string>> } | undefined
}

/**
 * GET of URLs that customers and providers hand us. Only http(s) on default ports; every address that a name resolves
 * to, and every literal, is checked against private, loopback, link-local, multicast and reserved ranges; the connection
 * goes to the checked address; at most 3 redirects, each checked again.
 */
export class Fetcher extends Context.Tag("gateway/Fetcher")<
  Fetcher,
  {
    /**
     * Whether a URL may be fetched, by what it says itself, for one that somebody else is to fetch. A name is looked up
     * only where the exempt ranges could let it through.
     */
    readonly check: (request: Pick<FetchRequest, "url" | "from">) => Effect.Effect<void, FetchFailed>
    /** The whole body. */
    readonly bytes: (request: FetchRequest) => Effect.Effect<Uint8Array, FetchFailed>
    /** The body as it comes, for what is too large to be held. */
    readonly stream: (request: FetchRequest) => Stream.Stream<Uint8Array, FetchFailed>
  }
>() {}
