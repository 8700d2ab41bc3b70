import { Schema } from "effect"
import type { ListedModel, Listing } from "../../domain/ListedModel.ts"
import type { Model, RouteBase } from "../../domain/Model.ts"
import { ChatModelEntry, chatOperations } from "./ChatEntry.ts"
import type { EntryOperations } from "./EntryOperations.ts"
import { ImageModelEntry, imageOperations } from "./ImageEntry.ts"
import { VideoModelEntry, videoOperations } from "./VideoEntry.ts"

export const ModelEntry = Schema.Union(ChatModelEntry, ImageModelEntry, VideoModelEntry)
export type ModelEntry = typeof ModelEntry.Type

type UseModel<A> = <M extends Model, R extends RouteBase>(
  operations: Omit<EntryOperations<never, M, R>, "entryAt">,
  model: M,
  routes: ReadonlyArray<R>
) => A

export const onModel = <A>(model: Model, use: UseModel<A>): A => {
  if (model.surface === "chat") return use(chatOperations, model, model.routes)
  if (model.surface === "image") return use(imageOperations, model, model.routes)
  return use(videoOperations, model, model.routes)
}

export const onEntry = <A>(
  entry: ModelEntry,
  use: <E extends ModelEntry, M extends Model, R extends RouteBase>(operations: EntryOperations<E, M, R>, entry: E) => A
): A => {
  if (entry.surface === "chat") return use(chatOperations, entry)
  if (entry.surface === "image") return use(imageOperations, entry)
  return use(videoOperations, entry)
}

const listingOf = (model: Model): Listing => onModel(model, (operations, surfaceModel) => operations.list(surfaceModel))

/** Returns the first later prices that differ from the current ones, because a later version may differ only in costs. */
const nextPricing = (model: Model, { pricing }: Listing): ListedModel["next_pricing"] => {
  const currentText = JSON.stringify(pricing)
  for (let { next } = model; next !== undefined; next = next.model.next) {
    const laterPricing = listingOf(next.model).pricing
    if (JSON.stringify(laterPricing) !== currentText) return { at: next.at / 1000, ...laterPricing }
  }
  return undefined
}

/** Returns the list entry of a model. For the prices at a moment, pass the result of `modelAt`. */
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
