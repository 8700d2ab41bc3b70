import { Effect, Layer, type Scope } from "effect"
import { Upstream } from "../../src/providers/client/Upstream.ts"
import type { Fetcher } from "../../src/services/media/Fetcher.ts"
import type { FailureClass, Provider } from "../../src/services/routing/Provider.ts"
import { fetcherFor, ranges } from "../fetching/ForeignServer.ts"
import { type Body, effectOf, liveOver } from "../harness/It.ts"

/** What carries the upstream secret, and what must never leave the route's own origin. */
export const secret = "sk-upstream-secret"

/** Where a result is: inside the response, behind a URL of the host itself, behind one of another host. */
export type Place = "inside" | "own" | "elsewhere"

/** What a host can be made to do on either surface, and the failure that it is. */
export const meaning = {
  limit: "limit",
  funds: "account",
  key: "account",
  request: "request",
  image: "request",
  moderation: "moderation",
  server: "retry",
  missing: "retry",
  page: "retry",
  garbage: "retry",
  empty: "retry",
  "cut answer": "network"
} as const satisfies Readonly<Record<string, FailureClass>>
export type Fault = keyof typeof meaning

/** After these nobody knows what the host did. */
export const unread = ["page", "garbage", "empty", "cut answer"] as const

export interface MediaHarness<Host> {
  readonly name: string
  readonly make: Effect.Effect<Provider, never, Upstream | Fetcher>
  readonly services: Layer.Layer<Upstream | Fetcher>
  readonly host: Effect.Effect<Host, never, Scope.Scope>
}

/** What adapters of media need of the gateway. */
export const services = Layer.merge(
  Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 180 }),
  fetcherFor([], { resultFetchAllow: ranges("127.0.0.0/8"), connectTimeoutSeconds: 5 })
)

export const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString("base64")

export const imageTypeOf = (type: unknown) =>
  (["image/png", "image/jpeg", "image/webp", "image/gif"] as const).find((known) => known === type)

/** Tests of one half of an adapter, each with a host of its own. */
export const checksOf =
  <Host, Adapter>(
    { host, make, services }: Omit<MediaHarness<Host>, "name">,
    half: (provider: Provider) => Adapter | undefined
  ) =>
  (title: string, body: Body<[adapter: Adapter, host: Host], Scope.Scope>) =>
    liveOver(services)(title, function* () {
      const adapter = half(yield* make)
      if (adapter === undefined) return yield* Effect.dieMessage("the provider has no such half")
      return yield* effectOf(body)(adapter, yield* host)
    })
