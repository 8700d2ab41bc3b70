import { Array as Arr } from "effect"
import { type Model, modelAt, type ProviderAccount, type RouteBase } from "../../domain/Model.ts"
import type { Compiled } from "./CatalogEntries.ts"
import { sandboxAdapter, sandboxProviders } from "./CatalogRules.ts"
import { onModel } from "./ModelEntry.ts"

export interface SaleState {
  readonly model: Model
  /** The model narrowed to its callable routes and to what they support; undefined if no route can be called. */
  readonly callable: Model | undefined
  readonly isSandboxed: boolean
  /** Why the model cannot be called; undefined if it can. */
  readonly reason: string | undefined
  /** Why a route cannot be called, by route id. */
  readonly blockedRoutes: ReadonlyMap<string, string>
}

/** Returns the state with the prices at a moment in Unix milliseconds. */
export const saleStateAt = (state: SaleState, at: number): SaleState => ({
  ...state,
  model: modelAt(state.model, at),
  callable: state.callable && modelAt(state.callable, at)
})

/**
 * `true`: the sandbox serves every model without a callable route. `when-no-credential`: only if no provider has a
 * credential.
 */
export type SandboxMode = boolean | "when-no-credential"

/** Returns the changed model with the same change in its later versions. */
const withNext = ({ next }: Model, changed: Model, change: (model: Model) => Model): Model =>
  next === undefined ? changed : { ...changed, next: { at: next.at, model: change(next.model) } }

const narrowTo = (model: Model, isChosen: (route: RouteBase) => boolean): Model | undefined => {
  const narrowedModel = onModel(model, (operations, surfaceModel, routes): Model | undefined => {
    const chosenRoutes = routes.filter(isChosen)
    return Arr.isNonEmptyReadonlyArray(chosenRoutes) ? operations.narrow(surfaceModel, chosenRoutes) : undefined
  })
  return narrowedModel && withNext(model, narrowedModel, (next) => narrowTo(next, isChosen) ?? next)
}

export const sandboxAccounts: ReadonlyArray<ProviderAccount> = sandboxProviders.map((name) => ({
  name,
  adapter: sandboxAdapter,
  baseUrl: undefined,
  credential: undefined,
  headers: {}
}))

const toSandbox = (model: Model): Model => {
  const sandboxRoutes = sandboxAccounts.map((provider, index) => ({
    id: `${model.id}@${provider.name}`,
    provider,
    model: model.id,
    preference: index + 1,
    weight: 1,
    options: {}
  }))
  return withNext(
    model,
    onModel(model, (operations, surfaceModel): Model => operations.inSandbox(surfaceModel, sandboxRoutes)),
    toSandbox
  )
}

const joinWithOr = (words: ReadonlyArray<string>): string => [...new Set(words)].join(" or ")

export const saleStates = ({ models, upstreams }: Compiled, mode: SandboxMode): ReadonlyArray<SaleState> => {
  const hasCredential = [...upstreams.values()].some(
    (upstream) => upstream.isReady && upstream.account.adapter !== sandboxAdapter
  )
  const sandbox = mode === "when-no-credential" ? !hasCredential : mode
  return models.map((model): SaleState => {
    const missingCredentials = model.routes.flatMap(({ id, provider }) => {
      const upstream = upstreams.get(provider.name)
      const { isReady = false, variable = "" } = upstream ?? {}
      return isReady ? [] : [{ id, variable }]
    })
    const blockedRoutes = new Map(missingCredentials.map(({ id, variable }) => [id, `${variable} is not set`] as const))
    const narrowedModel = narrowTo(model, ({ id }) => !blockedRoutes.has(id))
    const isSandboxed = narrowedModel === undefined && sandbox
    const callable = isSandboxed ? toSandbox(model) : narrowedModel
    const variables = missingCredentials.map(({ variable }) => variable)
    return {
      model,
      callable,
      isSandboxed,
      reason: callable === undefined ? `set ${joinWithOr(variables)}` : undefined,
      blockedRoutes
    }
  })
}
