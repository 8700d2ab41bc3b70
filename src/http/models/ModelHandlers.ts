import { HttpApiBuilder, type HttpServerRequest } from "@effect/platform"
import { Clock, Effect } from "effect"
import { type Caller, mayUseModel } from "../../domain/ApiKey.ts"
import { ModelNotAllowed } from "../../domain/Failure.ts"
import { type ChatModel, isChat, type Model, modelAt } from "../../domain/Model.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import { Catalog, perSnapshot } from "../../services/catalog/Catalog.ts"
import { listModel, listModels } from "../../services/catalog/Surfaces.ts"
import { json, jsonText, respond } from "../Answer.ts"
import { ResourceApi } from "../Api.ts"
import { CurrentCaller } from "../schema/Headers.ts"
import type { ModelInfo, ModelPage } from "./ModelSchema.ts"

const infoOf = ({ contextLength, created, id, maxOutput, ownMaxOutput = maxOutput }: ChatModel): ModelInfo => ({
  type: "model",
  id,
  display_name: id,
  created_at: new Date(created * 1000).toISOString().replace(".000", ""),
  max_input_tokens: contextLength,
  max_tokens: ownMaxOutput
})

const usualLimit = 20
const maxModels = 1_000

const limitIn = (query: URLSearchParams): number => {
  const given = Number(query.get("limit") ?? usualLimit)
  return Number.isInteger(given) && given > 0 ? Math.min(given, maxModels) : usualLimit
}

/** A cursor that is no model's id is ignored. */
const modelPage = (models: ReadonlyArray<Model>, query: URLSearchParams): ModelPage => {
  const limit = limitIn(query)
  const all = models.filter(isChat)
  const at = (name: string) => all.findIndex(({ id }) => id === query.get(name))
  const [after, before] = [at("after_id"), at("before_id")]
  const [from, to] = before === -1 ? [after + 1, after + 1 + limit] : [Math.max(0, before - limit), before]
  const data = all.slice(from, to).map(infoOf)
  return {
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: before === -1 ? to < all.length : from > 0
  }
}

/** Undefined for a model of another surface. */
const modelInfo = (model: Model | undefined): ModelInfo | undefined =>
  model?.surface === "chat" ? infoOf(model) : undefined

/** Set by all of Anthropic's clients. */
const isOfAnthropic = ({ headers }: HttpServerRequest.HttpServerRequest) => headers["anthropic-version"] !== undefined

const allowedTo = (caller: Caller, models: ReadonlyArray<Model>): ReadonlyArray<Model> =>
  caller.models === undefined ? models : models.filter(({ id }) => mayUseModel(caller, id))

const modelsAt = (models: ReadonlyArray<Model>, at: number) => models.map((model) => modelAt(model, at))

const queryOf = ({ url }: HttpServerRequest.HttpServerRequest) => new URLSearchParams(url.split("?")[1])

export const ModelsHandlers = HttpApiBuilder.group(
  ResourceApi,
  "models",
  Effect.fnUntraced(function* (handlers) {
    const catalog = yield* Catalog
    const body = perSnapshot(catalog, ({ models }, now) => JSON.stringify(listModels(modelsAt(models, now))))

    const list = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      const caller = yield* CurrentCaller
      if (isOfAnthropic(request)) {
        return json(200, modelPage(allowedTo(caller, catalog.current.models), queryOf(request)))
      }
      return caller.models === undefined
        ? jsonText(200, yield* body)
        : json(200, listModels(modelsAt(allowedTo(caller, catalog.current.models), yield* Clock.currentTimeMillis)))
    })

    const retrieve = Effect.fnUntraced(function* (id: string, request: HttpServerRequest.HttpServerRequest) {
      const caller = yield* CurrentCaller
      const model = catalog.current.findAt(id, yield* Clock.currentTimeMillis)
      const shown = isOfAnthropic(request) ? modelInfo(model) : model && listModel(model)
      if (model === undefined || shown === undefined) {
        const surface = isOfAnthropic(request) ? "chat" : undefined
        return yield* unknownModel(catalog.current, id, surface, (other) => mayUseModel(caller, other.id))
      }
      if (!mayUseModel(caller, model.id)) return yield* new ModelNotAllowed({ model: model.id })
      return json(200, shown)
    })

    return handlers
      .handleRaw("list", ({ request }) => Effect.map(list(request), respond))
      .handleRaw("retrieve", ({ path: { "*": id }, request }) => Effect.map(retrieve(id, request), respond))
  })
)
