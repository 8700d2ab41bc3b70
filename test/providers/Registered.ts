import { Effect, Layer } from "effect"
import * as Registry from "../../src/providers/Registry.ts"
import { adaptersOf, Providers } from "../../src/services/routing/Provider.ts"
import { services } from "../contracts/MediaHarness.ts"
import * as TokensFake from "../fakes/TokensFake.ts"

/** The adapters that the gateway is built with, as a catalog is read against them. */
export const registered = Effect.map(Providers, adaptersOf).pipe(
  Effect.provide(Layer.provide(Registry.layer, Layer.merge(services, TokensFake.layer)))
)
