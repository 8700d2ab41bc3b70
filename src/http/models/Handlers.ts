import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Catalog, perSnapshot } from "../../services/catalog/Catalog.ts"
import { listing } from "../../services/catalog/Surfaces.ts"
import { jsonText, respond } from "../Answer.ts"
import { ResourceApi } from "../Api.ts"

export const ModelsHandlers = HttpApiBuilder.group(
  ResourceApi,
  "models",
  Effect.fnUntraced(function* (handlers) {
    const body = perSnapshot(yield* Catalog, ({ models }) => JSON.stringify(listing(models)))
    return handlers.handleRaw("list", () => Effect.map(body, (text) => respond(jsonText(200, text))))
  })
)
