import { Array as Arr } from "effect"
import {
  type Capability,
  type ChatModel,
  type ImageModel,
  type Model,
  nearestSeconds,
  type ProviderAccount,
  type RouteBase,
  type VideoModel
} from "../../domain/Model.ts"
import type { Adapters } from "./Adapters.ts"
import type { Compiled } from "./Compile.ts"
import { sandboxAdapter, sandboxProviders } from "./Rules.ts"

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

type Rest<A> = readonly [A, ...ReadonlyArray<A>]

const chatOver = (model: ChatModel, routes: Rest<ChatModel["routes"][number]>): ChatModel => {
  const served = new Set<Capability>(routes.flatMap((route) => [...(route.capabilities ?? model.capabilities)]))
  return {
    ...model,
    routes,
    capabilities: new Set([...model.capabilities].filter((capability) => served.has(capability))),
    reasoning: served.has("reasoning") ? model.reasoning : "none"
  }
}

const imageOver = (model: ImageModel, routes: Rest<ImageModel["routes"][number]>): ImageModel => {
  const served = model.variants.filter(({ resolution }) => routes.some((route) => route.resolutions.has(resolution)))
  return {
    ...model,
    routes,
    variants: Arr.isNonEmptyReadonlyArray(served) ? served : model.variants,
    edit: routes.some((route) => route.editModel !== undefined)
  }
}

const videoOver = (model: VideoModel, routes: Rest<VideoModel["routes"][number]>): VideoModel => {
  const served = model.seconds.allowed.filter((seconds) => routes.some((route) => route.seconds.includes(seconds)))
  const allowed = Arr.isNonEmptyReadonlyArray(served) ? served : model.seconds.allowed
  const references = new Set(routes.map((route) => route.referenceImage))
  const [only = model.referenceImage] = references
  return {
    ...model,
    routes,
    seconds: { allowed, default: nearestSeconds(allowed, model.seconds.default) },
    referenceImage: references.size === 1 ? only : "optional"
  }
}

/** The model with some of its routes, and no promise that they cannot keep. Undefined without any route. */
const over = (model: Model, chosen: (route: RouteBase) => boolean): Model | undefined => {
  if (model.surface === "chat") {
    const routes = model.routes.filter(chosen)
    return Arr.isNonEmptyReadonlyArray(routes) ? chatOver(model, routes) : undefined
  }
  if (model.surface === "image") {
    const routes = model.routes.filter(chosen)
    return Arr.isNonEmptyReadonlyArray(routes) ? imageOver(model, routes) : undefined
  }
  const routes = model.routes.filter(chosen)
  return Arr.isNonEmptyReadonlyArray(routes) ? videoOver(model, routes) : undefined
}

export const sandboxAccounts: ReadonlyArray<ProviderAccount> = sandboxProviders.map((name) => ({
  name,
  adapter: sandboxAdapter,
  baseUrl: undefined,
  credential: undefined,
  headers: {}
}))

const inSandbox = (model: Model): Model => {
  const base = sandboxAccounts.map((provider, index) => ({
    id: `${model.id}@${provider.name}`,
    provider,
    model: model.id,
    preference: index + 1,
    weight: 1,
    options: {}
  }))
  if (model.surface === "chat") {
    return { ...model, routes: base.map((route) => ({ ...route, capabilities: undefined, cost: undefined })) }
  }
  if (model.surface === "image") {
    const editModel = model.edit ? model.id : undefined
    const resolutions = new Set(model.variants.map(({ resolution }) => resolution))
    return { ...model, routes: base.map((route) => ({ ...route, editModel, resolutions, cost: new Map() })) }
  }
  const { referenceImage } = model
  const imageModel = referenceImage === "none" ? undefined : model.id
  const own = {
    referenceImage,
    imageModel,
    seconds: model.seconds.allowed,
    secondsAs: "number",
    cost: undefined
  } as const
  return { ...model, routes: base.map((route) => ({ ...route, ...own })) }
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
