import { Effect, Layer, Stream } from "effect"
import { Fetcher, FetchFailed, type FetchRequest, type UrlProblem } from "../../src/services/media/Fetcher.ts"

export const fetchFailed = (reason: FetchFailed["reason"], status?: number, problem?: UrlProblem) =>
  new FetchFailed({ reason, status, detail: `${reason} of the fake`, problem })

/** Answers fetches by a script per URL. A URL without a script does not exist. */
export class FetcherFake {
  /** All fetches, in order. */
  readonly calls: Array<FetchRequest> = []
  /** The URLs whose fetches run. */
  readonly busy = new Set<string>()
  /** The maximum number of fetches that ran at the same time. */
  mostBusy = 0
  readonly #bodies = new Map<string, Effect.Effect<Uint8Array, FetchFailed>>()

  on(url: string, body: Uint8Array | Effect.Effect<Uint8Array, FetchFailed>): this {
    this.#bodies.set(url, Effect.isEffect(body) ? body : Effect.succeed(body))
    return this
  }

  readonly #bytes = (request: FetchRequest) =>
    Effect.acquireUseRelease(
      Effect.sync(() => {
        this.calls.push(request)
        this.busy.add(request.url)
        this.mostBusy = Math.max(this.mostBusy, this.busy.size)
      }),
      () => this.#bodies.get(request.url) ?? Effect.fail(fetchFailed("refused")),
      () => Effect.sync(() => this.busy.delete(request.url))
    )

  /** Fails for a URL whose script refuses it. All other URLs pass. */
  readonly #check = ({ url }: Pick<FetchRequest, "url">) => {
    const body = this.#bodies.get(url)
    return body === undefined ? Effect.void : Effect.asVoid(body)
  }

  readonly layer = Layer.succeed(Fetcher, {
    check: this.#check,
    bytes: this.#bytes,
    stream: (request) => Stream.fromEffect(this.#bytes(request)),
    post: () => Effect.dieMessage("nothing is to be posted")
  })
}
