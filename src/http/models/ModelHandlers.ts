import { HttpApiBuilder, type HttpServerRequest } from "@effect/platform"
import { Effect } from "effect"
import { ModelNotFound } from "../../domain/Failure.ts"
import { Catalog, perSnapshot } from "../../services/catalog/Catalog.ts"
import { listed, listing } from "../../services/catalog/Surfaces.ts"
import { json, jsonText, respond } from "../Answer.ts"
import { ResourceApi } from "../Api.ts"
import { modelInfo, modelPage } from "./ModelPage.ts"

/** Set by all of Anthropic's clients. */
const isOfAnthropic = ({ headers }: HttpServerRequest.HttpServerRequest) => headers["anthropic-version"] !== undefined

const queryOf = ({ url }: HttpServerRequest.HttpServerRequest) => new URLSearchParams(url.split("?")[1])

export const ModelsHandlers = HttpApiBuilder.group(
  ResourceApi,
  "models",
  Effect.fnUntraced(function* (handlers) {
    const catalog = yield* Catalog
    const body = perSnapshot(catalog, ({ models }) => JSON.stringify(listing(models)))
    return handlers
      .handleRaw("list", ({ request }) =>
        isOfAnthropic(request)
          ? Effect.sync(() => respond(json(200, modelPage(catalog.current.models, queryOf(request)))))
          : Effect.map(body, (text) => respond(jsonText(200, text)))
      )
      .handleRaw("retrieve", ({ path: { "*": id }, request }) => {
        const model = catalog.current.find(id)
        const shown = isOfAnthropic(request) ? modelInfo(model) : model && listed(model)
        return shown === undefined
          ? new ModelNotFound({ model: id, surface: isOfAnthropic(request) ? "chat" : undefined })
          : Effect.succeed(respond(json(200, shown)))
      })
  })
)
