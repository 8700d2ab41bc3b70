import { HttpApiBuilder } from "@effect/platform"
import { Effect } from "effect"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { listing } from "../../services/catalog/Surfaces.ts"
import { jsonText, respond } from "../Answer.ts"
import { ReadApi } from "../Api.ts"

export const ModelsHandlers = HttpApiBuilder.group(
  ReadApi,
  "models",
  Effect.fnUntraced(function* (handlers) {
    const { models } = yield* Catalog
    const body = JSON.stringify(listing(models))
    return handlers.handleRaw("list", () => Effect.sync(() => respond(jsonText(200, body))))
  })
)
