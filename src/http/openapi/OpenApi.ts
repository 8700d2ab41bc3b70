import { OpenApi } from "@effect/platform"
import { Record } from "effect"
import type { Model, Surface } from "../../domain/Model.ts"
import { Api } from "../Api.ts"
import { type Examples, examplesOf } from "./Examples.ts"

const requestsOf: ReadonlyArray<readonly [Surface, string]> = [
  ["chat", "ChatCompletionRequest"],
  ["image", "ImageGenerationRequest"],
  ["image", "ImageEditRequest"],
  ["image", "ImageEditForm"],
  ["video", "VideoCreateRequest"],
  ["video", "VideoCreateForm"]
]

const surfaces: Readonly<Record<string, Surface>> = { images: "image", videos: "video" }

const json = "application/json"

type Media = OpenApi.OpenApiSpecMediaType
type Operation = OpenApi.OpenAPISpecOperation
type Response = OpenApi.OpenApiSpecResponse

const withExamples = ({ requestBody, ...operation }: Operation, { answer, request = {} }: Examples): Operation => {
  const asked = (media: Media, type: string): Media => {
    const exemplified = { ...media, examples: Record.map(request[type] ?? {}, (value) => ({ value })) }
    return exemplified
  }
  const answered = (response: Response, status: string): Response => {
    const media = response.content?.[json]
    if (Number(status) >= 400 || media === undefined) return response
    const example = { ...media, examples: { answer: { value: answer } } }
    return { ...response, content: { ...response.content, [json]: example } }
  }
  return {
    ...operation,
    ...(requestBody === undefined
      ? {}
      : {
          requestBody: { ...requestBody, content: Record.map<string, Media, Media>({ ...requestBody.content }, asked) }
        }),
    responses: Record.map<string, Response, Response>({ ...operation.responses }, answered)
  }
}

/** `openapi.json` for a catalog; `baseUrl` is the service's base address with its version, e.g. `https://host/v1`. */
export const openApiDocument = (
  models: ReadonlyArray<Pick<Model, "id" | "surface">>,
  baseUrl: string
): OpenApi.OpenAPISpec => {
  const document = OpenApi.fromApi(Api, { additionalPropertiesStrategy: "allow" })
  const idsOf = (surface: Surface) => models.filter((model) => model.surface === surface).map(({ id }) => id)
  const schemas = { ...document.components.schemas }
  for (const [surface, name] of requestsOf) {
    const request = schemas[name]
    const ids = idsOf(surface)
    if (request === undefined || !("properties" in request) || ids.length === 0) continue
    const model = { ...request.properties.model, type: "string" as const, enum: ids }
    schemas[name] = { ...request, properties: { ...request.properties, model } }
  }
  const exemplify = (operation: Operation): Operation => {
    const [model] = idsOf(surfaces[operation.tags[0]] ?? "chat")
    const examples = model === undefined ? undefined : examplesOf(model)[operation.operationId]
    return examples === undefined ? operation : withExamples(operation, examples)
  }
  const paths = Record.map(document.paths, (item) => Record.map<string, Operation, Operation>({ ...item }, exemplify))
  return { ...document, paths, servers: [{ url: baseUrl }], components: { ...document.components, schemas } }
}
