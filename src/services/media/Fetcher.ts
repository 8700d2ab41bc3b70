import { Context, Data, type Effect, type Stream } from "effect"

/** Why a URL cannot be fetched. `name`: the host name has no address. */
export type UrlProblem = "url" | "credentials" | "address" | "name" | "port" | "redirect"

/** `refused`: scheme, port, address or redirects are not allowed. */
export class FetchFailed extends Data.TaggedError("FetchFailed")<{
  readonly reason: "refused" | "status" | "too_large" | "timeout" | "network"
  readonly status: number | undefined
  /** For operators only, because it may contain addresses. */
  readonly detail: string
  readonly problem?: UrlProblem | undefined
}> {}

/**
 * Returns the failure as the author of the URL may see it. It hides whether a private host name exists, and its
 * address.
 */
export const explainFailure = (url: string, { detail, problem, reason }: FetchFailed) =>
  problem === "name"
    ? { reason: "refused" as const, detail: `${new URL(url).host}: the name has no public address` }
    : { reason, detail }

export interface FetchRequest {
  readonly url: string
  /** Selects the exempt ranges: `FETCH_ALLOW` or `RESULT_FETCH_ALLOW`. */
  readonly from: "customer" | "provider"
  readonly limitBytes: number
  readonly withinSeconds: number
  /** The route's own origin. It is not checked, and only it gets the headers, which may contain a credential. */
  readonly ownOrigin?: { readonly origin: string; readonly headers: Readonly<Record<string, string>> } | undefined
}

/** A POST to a customer's URL. */
export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly withinSeconds: number
  /** The maximum bytes to read of the response body, if they arrive soon. Default: none. */
  readonly answerBytes?: number | undefined
}

interface PostAnswer {
  readonly status: number
  /** The beginning of the response body. */
  readonly answer: string
}

/** Fetches untrusted URLs: default ports, public addresses, at most 3 redirects. Connects to the checked address. */
export class Fetcher extends Context.Tag("gateway/Fetcher")<
  Fetcher,
  {
    /**
     * Checks a URL that the provider fetches. Looks up host names only if an exempt range could allow their addresses.
     */
    readonly check: (request: Pick<FetchRequest, "url" | "from">) => Effect.Effect<void, FetchFailed>
    readonly bytes: (request: FetchRequest) => Effect.Effect<Uint8Array, FetchFailed>
    readonly stream: (request: FetchRequest) => Stream.Stream<Uint8Array, FetchFailed>
    /** Sends a POST to a customer's URL. Does not follow redirects. */
    readonly post: (request: PostRequest) => Effect.Effect<PostAnswer, FetchFailed>
  }
>() {}
