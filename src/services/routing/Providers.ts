import { Context, Effect } from "effect"
import type { RouteBase, Surface } from "../../domain/Model.ts"
import { type Adapters, everything, type Features } from "../catalog/AdapterFeatures.ts"
import { type Provider, ProviderFailure } from "./Provider.ts"

export class Providers extends Context.Tag("gateway/Providers")<Providers, ReadonlyMap<string, Provider>>() {}

const featuresOf = ({ chat, image, video }: Provider): ReadonlyMap<Surface, Features> => {
  const features = new Map<Surface, Features>()
  if (chat !== undefined) features.set("chat", chat.features)
  if (image !== undefined) features.set("image", image.features ?? everything)
  if (video !== undefined) features.set("video", everything)
  return features
}

export const adaptersOf = (providers: ReadonlyMap<string, Provider>): Adapters =>
  new Map(
    [...providers].map(([name, provider]) => [name, { surfaces: featuresOf(provider), options: provider.options }])
  )

export const requireAdapter = <S extends Surface>(
  providers: Context.Tag.Service<Providers>,
  route: RouteBase,
  surface: S
) => {
  const adapter: Provider[S] = providers.get(route.provider.adapter)?.[surface]
  return adapter === undefined
    ? new ProviderFailure({
        class: "network",
        status: undefined,
        unsent: true,
        detail: `no ${surface} adapter is called ${route.provider.adapter}`
      })
    : Effect.succeed(adapter)
}
