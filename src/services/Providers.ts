import { Context } from "effect"
import type { Surface } from "../domain/Model.ts"
import type { Adapters } from "./catalog/Adapters.ts"
import type { Provider } from "./Provider.ts"

/** Every adapter of the gateway, by the name a catalog uses. */
export class Providers extends Context.Tag("gateway/Providers")<Providers, ReadonlyMap<string, Provider>>() {}

const surfacesOf = (provider: Provider): ReadonlySet<Surface> =>
  new Set((["chat", "image", "video"] as const).filter((surface) => provider[surface] !== undefined))

/** What the adapters can serve, for a catalog to be read against. */
export const adaptersOf = (providers: ReadonlyMap<string, Provider>): Adapters =>
  new Map([...providers].map(([name, provider]) => [name, surfacesOf(provider)]))
