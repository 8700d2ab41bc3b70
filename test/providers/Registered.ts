import { Effect, Layer } from "effect"
import * as Registry from "../../src/providers/Registry.ts"
import { adaptersOf, Providers } from "../../src/services/routing/Provider.ts"
import { services } from "../contracts/MediaHarness.ts"
import * as TokensFake from "../fakes/TokensFake.ts"

/** All adapters of the gateway, for validating catalogs. */
export const registered = Effect.map(Providers, adaptersOf).pipe(
  Effect.provide(Layer.provide(Registry.layer, Layer.merge(services, TokensFake.layer)))
)
