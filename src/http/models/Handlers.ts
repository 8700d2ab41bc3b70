import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { ModelNotFound } from "../../domain/Failure.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { listing } from "../../services/catalog/Surfaces.ts"
import { json, jsonText, respond } from "../Answer.ts"
import { ReadApi } from "../Api.ts"

export const ModelsHandlers = HttpApiBuilder.group(
  ReadApi,
  "models",
  Effect.fnUntraced(function* (handlers) {
    const { models } = yield* Catalog
    const all = listing(models)
    const body = JSON.stringify(all)
    const byId = new Map(all.data.map((model) => [model.id, model]))
    return handlers
      .handleRaw("list", () => Effect.sync(() => respond(jsonText(200, body))))
      .handleRaw("retrieve", ({ path: { "*": id } }) => {
        const model = byId.get(id)
        return model === undefined
          ? new ModelNotFound({ model: id, surface: undefined })
          : Effect.sync(() => respond(json(200, model)))
      })
  })
)
