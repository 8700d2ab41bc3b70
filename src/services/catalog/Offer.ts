import { Array as Arr } from "effect"
import type { Model, ProviderAccount, RouteBase } from "../../domain/Model.ts"
import type { Adapters } from "./Adapters.ts"
import type { Compiled } from "./Compile.ts"
import { sandboxAdapter, sandboxProviders } from "./Rules.ts"
import { onModel } from "./Surfaces.ts"

/** What became of one model: what the catalog says, and what can be called of it. */
export interface Offer {
  /** With all routes of the catalog. */
  readonly model: Model
  /** With the routes that can be called, and no more than they can do; undefined where there is none. */
  readonly callable: Model | undefined
  /** Whether the built-in sandbox serves it. */
  readonly sandboxed: boolean
  /** Why the model is not callable. */
  readonly reason: string | undefined
  /** Why a route cannot be called, by the route's id. */
  readonly blocked: ReadonlyMap<string, string>
}

/** `true` serves every model without a route of its own from the sandbox. */
export type SandboxMode = boolean | "when-no-credential"

/** The model with some of its routes; undefined without any. */
const over = (model: Model, isChosen: (route: RouteBase) => boolean) =>
  onModel(model, (surface, own, routes): Model | undefined => {
    const chosen = routes.filter(isChosen)
    return Arr.isNonEmptyReadonlyArray(chosen) ? surface.narrow(own, chosen) : undefined
  })

export const sandboxAccounts: ReadonlyArray<ProviderAccount> = sandboxProviders.map((name) => ({
  name,
  adapter: sandboxAdapter,
  baseUrl: undefined,
  credential: undefined,
  headers: {}
}))

const inSandbox = (model: Model): Model => {
  const bases = sandboxAccounts.map((provider, index) => ({
    id: `${model.id}@${provider.name}`,
    provider,
    model: model.id,
    preference: index + 1,
    weight: 1,
    options: {}
  }))
  return onModel(model, (surface, own): Model => surface.inSandbox(own, bases))
}

const or = (words: ReadonlyArray<string>): string => [...new Set(words)].join(" or ")

/** What every model of a catalog comes to, in catalog order. */
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
    const own = over(model, ({ id }) => !blocked.has(id))
    const sandboxed = own === undefined && sandbox && speaks(sandboxAdapter, model)
    const callable = sandboxed ? inSandbox(model) : own
    const reasons = [
      ...(missing.length > 0 ? [`set ${or(missing.map(({ variable }) => variable))}`] : []),
      ...(mute.length > 0 ? [`this gateway does not speak ${or(mute.map(({ provider }) => provider.adapter))}`] : [])
    ]
    return { model, callable, sandboxed, reason: callable === undefined ? reasons.join("; ") : undefined, blocked }
  })
}
