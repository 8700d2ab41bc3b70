import { Effect, Layer } from "effect"
import { Upstream } from "../../src/providers/client/Upstream.ts"
import * as Registry from "../../src/providers/Registry.ts"
import { adaptersOf, Providers } from "../../src/services/routing/Providers.ts"
import * as TokensFake from "../fakes/TokensFake.ts"
import * as PlainFetcher from "../harness/upstream/PlainFetcher.ts"

/** The adapters that the gateway is built with, as a catalog is read against them. */
export const registered = Effect.map(Providers, adaptersOf).pipe(
  Effect.provide(
    Layer.provide(
      Registry.layer,
      Layer.mergeAll(
        Upstream.layer({ connectTimeoutSeconds: 5, idleTimeoutSeconds: 5 }),
        PlainFetcher.layer,
        TokensFake.layer
      )
    )
  )
)
