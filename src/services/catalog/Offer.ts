import { Array as Arr } from "effect"
import { type Model, modelAt, type ProviderAccount, type RouteBase } from "../../domain/Model.ts"
import type { Adapters } from "./AdapterFeatures.ts"
import { sandboxAdapter, sandboxProviders } from "./CatalogRules.ts"
import type { Compiled } from "./Compile.ts"
import { onModel } from "./Surfaces.ts"

export interface Offer {
  readonly model: Model
  /** With the routes that can be called and what they support; undefined without any. */
  readonly callable: Model | undefined
  readonly sandboxed: boolean
  readonly reason: string | undefined
  readonly blocked: ReadonlyMap<string, string>
}

/** As it is at a moment, in Unix milliseconds. */
export const offerAt = (offer: Offer, at: number): Offer => ({
  ...offer,
  model: modelAt(offer.model, at),
  callable: offer.callable && modelAt(offer.callable, at)
})

/** `true`: every model without a callable route. */
export type SandboxMode = boolean | "when-no-credential"

/** What is done to a model is done to what it becomes. */
const withNext = ({ next }: Model, changed: Model, change: (model: Model) => Model): Model =>
  next === undefined ? changed : { ...changed, next: { at: next.at, model: change(next.model) } }

const narrowTo = (model: Model, isChosen: (route: RouteBase) => boolean): Model | undefined => {
  const narrowed = onModel(model, (surface, own, routes): Model | undefined => {
    const chosen = routes.filter(isChosen)
    return Arr.isNonEmptyReadonlyArray(chosen) ? surface.narrow(own, chosen) : undefined
  })
  return narrowed && withNext(model, narrowed, (next) => narrowTo(next, isChosen) ?? next)
}

export const sandboxAccounts: ReadonlyArray<ProviderAccount> = sandboxProviders.map((name) => ({
  name,
  adapter: sandboxAdapter,
  baseUrl: undefined,
  credential: undefined,
  headers: {}
}))

const toSandbox = (model: Model): Model => {
  const bases = sandboxAccounts.map((provider, index) => ({
    id: `${model.id}@${provider.name}`,
    provider,
    model: model.id,
    preference: index + 1,
    weight: 1,
    options: {}
  }))
  return withNext(
    model,
    onModel(model, (surface, own): Model => surface.inSandbox(own, bases)),
    toSandbox
  )
}

const joinWithOr = (words: ReadonlyArray<string>): string => [...new Set(words)].join(" or ")

export const offers = (
  { models, upstreams }: Compiled,
  adapters: Adapters,
  mode: SandboxMode
): ReadonlyArray<Offer> => {
  const anyCredential = [...upstreams.values()].some((it) => it.ready && it.account.adapter !== sandboxAdapter)
  const sandbox = mode === "when-no-credential" ? !anyCredential : mode
  const speaks = (adapter: string, { surface }: Model) => adapters.get(adapter)?.surfaces.has(surface) === true
  return models.map((model): Offer => {
    const mute = model.routes.filter(({ provider }) => !speaks(provider.adapter, model))
    const missing = model.routes.flatMap(({ id, provider }) => {
      const upstream = upstreams.get(provider.name)
      const { ready = false, variable = "" } = upstream ?? {}
      return ready || !speaks(provider.adapter, model) ? [] : [{ id, variable }]
    })
    const blocked = new Map([
      ...mute.map(
        ({ id, provider }) => [id, `this gateway does not speak ${provider.adapter} for ${model.surface}`] as const
      ),
      ...missing.map(({ id, variable }) => [id, `${variable} is not set`] as const)
    ])
    const own = narrowTo(model, ({ id }) => !blocked.has(id))
    const sandboxed = own === undefined && sandbox && speaks(sandboxAdapter, model)
    const callable = sandboxed ? toSandbox(model) : own
    const reasons = [
      ...(missing.length > 0 ? [`set ${joinWithOr(missing.map(({ variable }) => variable))}`] : []),
      ...(mute.length > 0
        ? [`this gateway does not speak ${joinWithOr(mute.map(({ provider }) => provider.adapter))}`]
        : [])
    ]
    return { model, callable, sandboxed, reason: callable === undefined ? reasons.join("; ") : undefined, blocked }
  })
}
