import { Context } from "effect"
import type { Provider } from "./Provider.ts"

/** Every adapter of the gateway, by the name a catalog uses. */
export class Providers extends Context.Tag("gateway/Providers")<Providers, ReadonlyMap<string, Provider>>() {}
