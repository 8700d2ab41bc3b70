import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { ModelNotFound } from "../../domain/Failure.ts"
import { Catalog, perSnapshot } from "../../services/catalog/Catalog.ts"
import { listed, listing } from "../../services/catalog/Surfaces.ts"
import { json, jsonText, respond } from "../Answer.ts"
import { ResourceApi } from "../Api.ts"

export const ModelsHandlers = HttpApiBuilder.group(
  ResourceApi,
  "models",
  Effect.fnUntraced(function* (handlers) {
    const catalog = yield* Catalog
    const body = perSnapshot(catalog, ({ models }) => JSON.stringify(listing(models)))
    return handlers
      .handleRaw("list", () => Effect.map(body, (text) => respond(jsonText(200, text))))
      .handleRaw("retrieve", ({ path: { "*": id } }) => {
        const model = catalog.current.find(id)
        return model === undefined
          ? new ModelNotFound({ model: id, surface: undefined })
          : Effect.succeed(respond(json(200, listed(model))))
      })
  })
)
