import { Context, Data, type Effect, type Stream } from "effect"

/** What of a URL keeps it from being fetched; `name`: its host's has no address. */
export type UrlProblem = "url" | "credentials" | "address" | "name" | "port" | "redirect"

/** `refused`: scheme, port, address or redirects are not allowed. */
export class FetchFailed extends Data.TaggedError("FetchFailed")<{
  readonly reason: "refused" | "status" | "too_large" | "timeout" | "network"
  readonly status: number | undefined
  /** For operators: it may tell addresses. */
  readonly detail: string
  readonly problem?: UrlProblem | undefined
}> {}

/** For whoever gave the URL: neither whether a private name exists nor where it leads is told. */
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
  /** A route's own origin is not checked, and alone gets the headers, which may hold a credential. */
  readonly own?: { readonly origin: string; readonly headers: Readonly<Record<string, string>> } | undefined
}

/** To a customer's URL. */
export interface PostRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly withinSeconds: number
  /** How much of the answer's body is read, as far as it comes soon; by default nothing. */
  readonly answerBytes?: number | undefined
}

interface PostAnswer {
  readonly status: number
  /** The beginning of its body. */
  readonly answer: string
}

/** GET of untrusted URLs: default ports, public addresses, at most 3 redirects; connects to the address it checked. */
export class Fetcher extends Context.Tag("gateway/Fetcher")<
  Fetcher,
  {
    /** For a URL that the provider fetches; looks up names only where exempt ranges could admit them. */
    readonly check: (request: Pick<FetchRequest, "url" | "from">) => Effect.Effect<void, FetchFailed>
    readonly bytes: (request: FetchRequest) => Effect.Effect<Uint8Array, FetchFailed>
    readonly stream: (request: FetchRequest) => Stream.Stream<Uint8Array, FetchFailed>
    /** Follows no redirect. */
    readonly post: (request: PostRequest) => Effect.Effect<PostAnswer, FetchFailed>
  }
>() {}
