import { Schema } from "effect"
import type { ListedModel } from "../../domain/ListedModel.ts"
import type { Model, RouteBase } from "../../domain/Model.ts"
import { ChatModelEntry, chatSurface } from "./ChatSurface.ts"
import { ImageModelEntry, imageSurface } from "./ImageSurface.ts"
import type { Surface } from "./Surface.ts"
import { VideoModelEntry, videoSurface } from "./VideoSurface.ts"

export const ModelEntry = Schema.Union(ChatModelEntry, ImageModelEntry, VideoModelEntry)
export type ModelEntry = typeof ModelEntry.Type

type UseModel<A> = <M extends Model, R extends RouteBase>(
  surface: Surface<never, M, R>,
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

export const listModel = (model: Model): ListedModel => ({
  id: model.id,
  object: "model",
  created: model.created,
  owned_by: "generation-gateway",
  surface: model.surface,
  ...onModel(model, (surface, own) => surface.list(own))
})

export const listModels = (models: ReadonlyArray<Model>) => ({ object: "list", data: models.map(listModel) })
