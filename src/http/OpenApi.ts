import { OpenApi } from "@effect/platform"
import type { Model, Surface } from "../domain/Model.ts"
import { Api } from "./Api.ts"

/** The request bodies whose `model` is one of a surface. */
const requestsOf: ReadonlyArray<readonly [Surface, string]> = [
  ["chat", "ChatCompletionRequest"],
  ["image", "ImageGenerationRequest"],
  ["image", "ImageEditRequest"],
  ["image", "ImageEditForm"],
  ["video", "VideoCreateRequest"],
  ["video", "VideoCreateForm"]
]

const document = OpenApi.fromApi(Api, { additionalPropertiesStrategy: "allow" })

/** `openapi.json` for a catalog; `baseUrl` is the service's base address with its version, e.g. `https://host/v1`. */
export const openApiDocument = (
  models: ReadonlyArray<Pick<Model, "id" | "surface">>,
  baseUrl: string
): OpenApi.OpenAPISpec => {
  const schemas = { ...document.components.schemas }
  for (const [surface, name] of requestsOf) {
    const request = schemas[name]
    const ids = models.filter((model) => model.surface === surface).map(({ id }) => id)
    if (request === undefined || !("properties" in request) || ids.length === 0) continue
    const model = { ...request.properties.model, type: "string" as const, enum: ids }
    schemas[name] = { ...request, properties: { ...request.properties, model } }
  }
  return { ...document, servers: [{ url: baseUrl }], components: { ...document.components, schemas } }
}
