import { OpenApi } from "@effect/platform"
import { Record, Struct } from "effect"
import type { ListedModel } from "../../domain/ListedModel.ts"
import type { Model, Surface } from "../../domain/Model.ts"
import { Api, about } from "../Api.ts"
import { answerHeaders, idempotencyKey } from "../schema/Headers.ts"
import { errorContent } from "./DocumentedErrors.ts"
import { type Examples, examplesOf } from "./Examples.ts"

/** What a customer reads first, as Markdown. */
const introduction = (baseUrl: string, model: string): string =>
  `${about.description} The base URL is \`${baseUrl}\`.

## Authentication

Send your key as \`Authorization: Bearer <API_KEY>\`, or as \`x-api-key: <API_KEY>\`. The examples take it from the environment:

\`\`\`
export GATEWAY_KEY=ggw_…
\`\`\`

## Official clients

The OpenAI clients work with this base URL and your key.

\`\`\`sh
curl ${baseUrl}/models -H "Authorization: Bearer $GATEWAY_KEY"
\`\`\`

\`\`\`python
import os
from openai import OpenAI

client = OpenAI(base_url="${baseUrl}", api_key=os.environ["GATEWAY_KEY"])
completion = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Say hello in one sentence."}],
)
print(completion.choices[0].message.content)
\`\`\`

\`\`\`js
import OpenAI from "openai"

const client = new OpenAI({ baseURL: "${baseUrl}", apiKey: process.env.GATEWAY_KEY })
const completion = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "Say hello in one sentence." }]
})
console.log(completion.choices[0].message.content)
\`\`\`

## Conventions

- Bodies are JSON in UTF-8; times are integer Unix seconds; money is in USD.
- \`null\` is the same as leaving a field out. Fields that are not listed are accepted and have no effect.
- Every answer has an \`x-request-id\`: yours if you sent one, and the one to name when you ask about a request.
- Every error is \`{"error": {"message", "type", "param", "code"}}\`. Branch on \`code\`, which is more precise than the status.
- Retry 429, 500, 502, 503 and 504, after \`retry-after\` seconds where that header is there. With an \`Idempotency-Key\`, repeating an image or a video makes and charges nothing twice.
`

const headersNamed = (...names: ReadonlyArray<keyof typeof answerHeaders>) => Struct.pick(answerHeaders, ...names)

const headersOf: Readonly<Record<string, object>> = {
  "302": headersNamed("location"),
  "409": headersNamed("x-should-retry"),
  "429": headersNamed("retry-after"),
  "500": headersNamed("retry-after"),
  "503": headersNamed("retry-after")
}
const rate = headersNamed(
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-limit-tokens",
  "x-ratelimit-remaining-tokens",
  "x-ratelimit-reset-tokens"
)

/** The surface and the body schemas of each generating group. */
const generating: Readonly<Record<string, { readonly surface: Surface; readonly bodies: ReadonlyArray<string> }>> = {
  chat: { surface: "chat", bodies: ["ChatCompletionRequest"] },
  messages: { surface: "chat", bodies: ["MessagesRequest", "CountTokensRequest"] },
  responses: { surface: "chat", bodies: ["ResponsesRequest"] },
  images: { surface: "image", bodies: ["ImageGenerationRequest", "ImageEditRequest", "ImageEditForm"] },
  videos: { surface: "video", bodies: ["VideoCreateRequest", "VideoCreateForm"] }
}

/** Those that answer once the request is charged. */
const tellingCharge: ReadonlySet<string> = new Set([
  "createChatCompletion",
  "createMessage",
  "createResponse",
  "createImage",
  "createImageEdit"
])

const showingOneVideo: ReadonlySet<string> = new Set(["getVideo", "getVideoContent"])

/** The platform adds its own decode error to every endpoint. */
const isOurs = (
  schema: object
): schema is { readonly failures: ReadonlyArray<unknown>; readonly description: string } => "failures" in schema

export const failureSchemasOf = ({ content }: OpenApi.OpenApiSpecResponse) => {
  const schema = content?.["application/json"]?.schema
  const members: ReadonlyArray<object> = schema === undefined ? [] : "anyOf" in schema ? schema.anyOf : [schema]
  return members.filter(isOurs)
}

const describeError = (status: string, response: OpenApi.OpenApiSpecResponse, headers: object, tag: string) => {
  const [ours] = failureSchemasOf(response)
  if (ours === undefined) return undefined
  return {
    description: ours.description,
    headers: { ...headers, ...headersOf[status] },
    content: { "application/json": errorContent(ours.failures, tag, generating[tag]?.surface) }
  }
}

const describeOperation = (operation: OpenApi.OpenAPISpecOperation) => {
  // Only generating endpoints are rated; what precedes the rate check has no headers of it.
  const rated = operation.responses[429] !== undefined
  const repeatable = operation.parameters.some(({ name }) => name === idempotencyKey)
  const made = {
    ...(rated || showingOneVideo.has(operation.operationId) ? headersNamed("x-gateway-sandbox") : {}),
    ...(tellingCharge.has(operation.operationId) ? headersNamed("x-gateway-charge-usd") : {}),
    ...(repeatable ? headersNamed("idempotency-replayed") : {}),
    ...(operation.tags[0] === "chat" ? headersNamed("x-gateway-max-output-tokens") : {})
  }
  const responses: { [status: string]: object } = {}
  for (const [status, response] of Object.entries(operation.responses)) {
    const headers = {
      ...headersNamed("x-request-id"),
      ...(operation.tags[0] === "messages" ? headersNamed("request-id") : {}),
      ...(rated && status !== "401" ? rate : {})
    }
    const described =
      Number(status) < 400
        ? { ...response, headers: { ...headers, ...made, ...headersOf[status] } }
        : describeError(status, response, headers, operation.tags[0] ?? "")
    if (described !== undefined) responses[status] = described
  }
  return { ...operation, responses, security: [{ bearer: [] }, { apiKey: [] }] }
}

const securitySchemes = {
  bearer: { type: "http", scheme: "bearer", description: "`Authorization: Bearer <API_KEY>`" },
  apiKey: { type: "apiKey", in: "header", name: "x-api-key" }
}

const filled = { minLength: 1, minItems: 1 }

const constraints: Readonly<Record<string, object>> = {
  ImageEditForm: {
    anyOf: ["image", "image[]"].map((name) => ({ required: [name], properties: { [name]: filled } }))
  }
}

export const platformSchemas = new Set(["HttpApiDecodeError", "Issue", "PropertyKey"])

const describe = (spec: Pick<OpenApi.OpenAPISpec, "paths" | "components">) => ({
  paths: Record.mapEntries(spec.paths, (item, path) => [
    path.replace(/^\/v1(?=\/)/, ""),
    Record.map<string, OpenApi.OpenAPISpecOperation, object>({ ...item }, describeOperation)
  ]),
  components: {
    schemas: Record.map(
      Record.filter(spec.components.schemas, (_, name) => !platformSchemas.has(name)),
      (schema, name) => ({ ...schema, ...constraints[name] })
    ),
    securitySchemes
  },
  security: [{ bearer: [] }, { apiKey: [] }]
})

const Published = Api.annotate(OpenApi.Transform, ({ components, paths, ...rest }) => ({
  ...rest,
  ...describe({ components, paths })
}))

const json = "application/json"

type Media = OpenApi.OpenApiSpecMediaType
type Operation = OpenApi.OpenAPISpecOperation
type Response = OpenApi.OpenApiSpecResponse

const withExamples = ({ requestBody, ...operation }: Operation, { answer, request = {} }: Examples): Operation => {
  const documentExamples = (media: Media, type: string): Media => {
    const examples = Record.map(request[type] ?? {}, (value) => ({ value }))
    return Object.assign({}, media, { examples })
  }
  const documentResponse = (response: Response, status: string): Response => {
    const media = response.content?.[json]
    if (Number(status) >= 400 || media === undefined) return response
    const example = { ...media, examples: { answer: { value: answer } } }
    return { ...response, content: { ...response.content, [json]: example } }
  }
  return {
    ...operation,
    ...(requestBody && {
      requestBody: {
        ...requestBody,
        content: Record.map<string, Media, Media>({ ...requestBody.content }, documentExamples)
      }
    }),
    responses: Record.map<string, Response, Response>({ ...operation.responses }, documentResponse)
  }
}

/** `baseUrl` includes the version, e.g. `https://host/v1`. */
export const openApiDocument = (
  models: ReadonlyArray<Model>,
  listed: (model: Model) => ListedModel,
  baseUrl: string
): OpenApi.OpenAPISpec => {
  const document = OpenApi.fromApi(Published, { additionalPropertiesStrategy: "allow" })
  const idsOf = (surface: Surface) => models.filter((model) => model.surface === surface).map(({ id }) => id)
  const schemas = { ...document.components.schemas }
  for (const { bodies, surface } of Object.values(generating)) {
    const ids = idsOf(surface)
    for (const name of bodies) {
      const request = schemas[name]
      if (request === undefined || !("properties" in request) || ids.length === 0) continue
      const model = { ...request.properties.model, type: "string" as const, enum: ids }
      schemas[name] = { ...request, properties: { ...request.properties, model } }
    }
  }
  const allExamples = examplesOf(models, listed)
  const exemplify = (operation: Operation): Operation => {
    const examples = allExamples[operation.operationId]
    return examples === undefined ? operation : withExamples(operation, examples)
  }
  const paths = Record.map(document.paths, (item) => Record.map<string, Operation, Operation>({ ...item }, exemplify))
  const info = { ...document.info, description: introduction(baseUrl, idsOf("chat")[0] ?? "<model>") }
  return { ...document, info, paths, servers: [{ url: baseUrl }], components: { ...document.components, schemas } }
}
