import { HttpApiBuilder, type HttpServerRequest } from "@effect/platform"
import { Clock, Effect } from "effect"
import { type Caller, mayUseModel } from "../../domain/ApiKey.ts"
import { ModelNotAllowed } from "../../domain/Failure.ts"
import { type ChatModel, isChat, type Model, modelAt } from "../../domain/Model.ts"
import { unknownModel } from "../../domain/ModelNames.ts"
import { discountModel } from "../../domain/Pricing.ts"
import { Catalog, cachePerSnapshot } from "../../services/catalog/Catalog.ts"
import { listModel, listModels } from "../../services/catalog/ModelEntry.ts"
import { ResourceApi } from "../Api.ts"
import { json, respond, textAnswer } from "../HttpAnswer.ts"
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

const defaultLimit = 20
const maxModels = 1_000

const limitIn = (query: URLSearchParams): number => {
  const requestedLimit = Number(query.get("limit") ?? defaultLimit)
  return Number.isInteger(requestedLimit) && requestedLimit > 0 ? Math.min(requestedLimit, maxModels) : defaultLimit
}

/** Returns a page of the chat models. A cursor that is not a model's id is ignored. */
const modelPage = (models: ReadonlyArray<Model>, query: URLSearchParams): ModelPage => {
  const limit = limitIn(query)
  const chatModels = models.filter(isChat)
  const indexOf = (name: string) => chatModels.findIndex(({ id }) => id === query.get(name))
  const [after, before] = [indexOf("after_id"), indexOf("before_id")]
  const [from, to] = before === -1 ? [after + 1, after + 1 + limit] : [Math.max(0, before - limit), before]
  const data = chatModels.slice(from, to).map(infoOf)
  return {
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: before === -1 ? to < chatModels.length : from > 0
  }
}

/** Returns undefined for a model that is not a chat model. */
const modelInfo = (model: Model | undefined): ModelInfo | undefined =>
  model?.surface === "chat" ? infoOf(model) : undefined

/** Returns whether a client of Anthropic sent the request. All of them send this header. */
const isAnthropicRequest = ({ headers }: HttpServerRequest.HttpServerRequest) =>
  headers["anthropic-version"] !== undefined

const allowedTo = (caller: Caller, models: ReadonlyArray<Model>): ReadonlyArray<Model> =>
  caller.models === undefined ? models : models.filter(({ id }) => mayUseModel(caller, id))

/** Returns the models with their prices at `at`, minus a discount in percent. */
const modelsAt = (models: ReadonlyArray<Model>, at: number, discountPercent = 0) =>
  models.map((model) => discountModel(modelAt(model, at), discountPercent))

const queryOf = ({ url }: HttpServerRequest.HttpServerRequest) => new URLSearchParams(url.split("?")[1])

export const ModelsHandlers = HttpApiBuilder.group(
  ResourceApi,
  "models",
  Effect.fnUntraced(function* (handlers) {
    const catalog = yield* Catalog
    const body = cachePerSnapshot(catalog, ({ models }, now) => JSON.stringify(listModels(modelsAt(models, now))))

    const list = Effect.fnUntraced(function* (request: HttpServerRequest.HttpServerRequest) {
      const caller = yield* CurrentCaller
      if (isAnthropicRequest(request)) {
        return json(200, modelPage(allowedTo(caller, catalog.current.models), queryOf(request)))
      }
      if (caller.models === undefined && !caller.discountPercent) return textAnswer(200, yield* body)
      const models = allowedTo(caller, catalog.current.models)
      return json(200, listModels(modelsAt(models, yield* Clock.currentTimeMillis, caller.discountPercent)))
    })

    const retrieve = Effect.fnUntraced(function* (id: string, request: HttpServerRequest.HttpServerRequest) {
      const caller = yield* CurrentCaller
      const model = catalog.current.findAt(id, yield* Clock.currentTimeMillis, caller.discountPercent)
      const info = isAnthropicRequest(request) ? modelInfo(model) : model && listModel(model)
      if (model === undefined || info === undefined) {
        const surface = isAnthropicRequest(request) ? "chat" : undefined
        return yield* unknownModel(catalog.current, id, surface, (other) => mayUseModel(caller, other.id))
      }
      if (!mayUseModel(caller, model.id)) return yield* new ModelNotAllowed({ model: model.id })
      return json(200, info)
    })

    return handlers
      .handleRaw("list", ({ request }) => Effect.map(list(request), respond))
      .handleRaw("retrieve", ({ path: { "*": id }, request }) => Effect.map(retrieve(id, request), respond))
  })
)
