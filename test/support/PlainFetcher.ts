import { Effect, Layer, Stream } from "effect"
import { Fetcher, FetchFailed, type FetchRequest } from "../../src/services/Fetcher.ts"

const failed = (reason: FetchFailed["reason"], detail: string, status?: number) =>
  new FetchFailed({ reason, status, detail })

const bytes = ({ limitBytes, own, url }: FetchRequest) =>
  Effect.gen(function* () {
    if (!URL.canParse(url)) return yield* failed("refused", "no URL")
    const headers = own !== undefined && new URL(url).origin === own.origin ? own.headers : {}
    const response = yield* Effect.tryPromise({
      try: (signal) => fetch(url, { headers: { ...headers }, signal }),
      catch: (cause) => failed("network", String(cause))
    })
    if (response.status !== 200) return yield* failed("status", `${response.status}`, response.status)
    const body = yield* Effect.tryPromise({
      try: () => response.arrayBuffer(),
      catch: (cause) => failed("network", String(cause))
    })
    return body.byteLength > limitBytes ? yield* failed("too_large", "too large") : new Uint8Array(body)
  })

/** A fetcher that goes wherever it is sent, this machine included; headers go to the route's own origin only. */
export const layer = Layer.succeed(Fetcher, {
  bytes,
  stream: (request) => Stream.fromEffect(bytes(request))
})
