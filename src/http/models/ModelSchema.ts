import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Integer } from "../../domain/Constraints.ts"
import { ListedModel } from "../../domain/ListedModel.ts"
import { ModelErrors, ReadErrors } from "../errors/ErrorMessages.ts"
import { Authenticated } from "../schema/Headers.ts"

export const ModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(ListedModel)
}).annotations({
  identifier: "ModelList",
  description: "Every callable model that the key may use, in the catalog's order."
})

export const ModelInfo = Schema.Struct({
  type: Schema.Literal("model"),
  id: Schema.String,
  display_name: Schema.String,
  created_at: Schema.String.annotations({ description: "An RFC 3339 time." }),
  max_input_tokens: Integer,
  max_tokens: Integer
}).annotations({ identifier: "ModelInfo", description: "A chat model, for a request with `anthropic-version`." })
export type ModelInfo = typeof ModelInfo.Type

export const ModelPage = Schema.Struct({
  data: Schema.Array(ModelInfo),
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String),
  has_more: Schema.Boolean
}).annotations({ identifier: "ModelPage", description: "Chat models, for a request with `anthropic-version`." })
export type ModelPage = typeof ModelPage.Type

export const listModels = HttpApiEndpoint.get("list", "/models")
  .addSuccess(Schema.Union(ModelList, ModelPage))
  .addError(ReadErrors)
  .annotateContext(
    OpenApi.annotations({
      identifier: "listModels",
      summary: "List models",
      description:
        "Requests with the header `anthropic-version` get a page of chat models in Anthropic's format, with `limit`, `after_id` and `before_id`."
    })
  )

const retrieveEndpoint = HttpApiEndpoint.get("retrieve", "/models/:id")
  .setPath(Schema.Struct({ id: Schema.String.annotations({ description: "May contain slashes, escaped or not." }) }))
  .addSuccess(Schema.Union(ListedModel, ModelInfo))
  .addError(ModelErrors)
  .annotateContext(OpenApi.annotations({ identifier: "getModel", summary: "Get a model" }))

/** The endpoint as the router needs it: with a wildcard, because a model's id may contain slashes. */
const retrieveAnyPathEndpoint = HttpApiEndpoint.get("retrieve", "/models/*")
  .setPath(Schema.Struct({ "*": Schema.String }))
  .addSuccess(Schema.Union(ListedModel, ModelInfo))
  .addError(ModelErrors)

export const Models = HttpApiGroup.make("models")
  .add(listModels)
  .add(retrieveEndpoint)
  .annotate(OpenApi.Description, "The models that you can call, with their prices and parameters.")
  .middleware(Authenticated)
export const ModelsRead = HttpApiGroup.make("models")
  .add(listModels)
  .add(retrieveAnyPathEndpoint)
  .middleware(Authenticated)
