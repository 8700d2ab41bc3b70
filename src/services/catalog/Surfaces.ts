import { Schema } from "effect"
import type { ListedModel, Listing } from "../../domain/ListedModel.ts"
import type { Model, RouteBase } from "../../domain/Model.ts"
import { ChatModelEntry, chatSurface } from "./ChatSurface.ts"
import { ImageModelEntry } from "./ImageEntry.ts"
import { imageSurface } from "./ImageSurface.ts"
import type { Surface } from "./Surface.ts"
import { VideoModelEntry, videoSurface } from "./VideoSurface.ts"

export const ModelEntry = Schema.Union(ChatModelEntry, ImageModelEntry, VideoModelEntry)
export type ModelEntry = typeof ModelEntry.Type

type UseModel<A> = <M extends Model, R extends RouteBase>(
  surface: Omit<Surface<never, M, R>, "entryAt">,
  model: M,
  routes: ReadonlyArray<R>
) => A

export const onModel = <A>(model: Model, use: UseModel<A>): A => {
  if (model.surface === "chat") return use(chatSurface, model, model.routes)
  if (model.surface === "image") return use(imageSurface, model, model.routes)
  return use(videoSurface, model, model.routes)
}

export const onEntry = <A>(
  entry: ModelEntry,
  use: <E extends ModelEntry, M extends Model, R extends RouteBase>(surface: Surface<E, M, R>, entry: E) => A
): A => {
  if (entry.surface === "chat") return use(chatSurface, entry)
  if (entry.surface === "image") return use(imageSurface, entry)
  return use(videoSurface, entry)
}

const listingOf = (model: Model): Listing => onModel(model, (surface, own) => surface.list(own))

/** The first that differs; a date may change costs alone. */
const nextPricing = (model: Model, { pricing }: Listing): ListedModel["next_pricing"] => {
  const now = JSON.stringify(pricing)
  for (let { next } = model; next !== undefined; next = next.model.next) {
    const later = listingOf(next.model).pricing
    if (JSON.stringify(later) !== now) return { at: next.at / 1000, ...later }
  }
  return undefined
}

/** By the prices that it has. */
export const listModel = (model: Model): ListedModel => {
  const listing = listingOf(model)
  const next = nextPricing(model, listing)
  return {
    id: model.id,
    object: "model",
    created: model.created,
    owned_by: "generation-gateway",
    surface: model.surface,
    ...listing,
    ...(next !== undefined && { next_pricing: next })
  }
}

export const listModels = (models: ReadonlyArray<Model>) => ({ object: "list", data: models.map(listModel) })
