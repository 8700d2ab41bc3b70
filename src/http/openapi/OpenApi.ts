import { OpenApi } from "@effect/platform"
import { Record, Struct } from "effect"
import { UpstreamRejected } from "../../domain/Failure.ts"
import type { ListedModel } from "../../domain/ListedModel.ts"
import type { Model, Surface } from "../../domain/Model.ts"
import { type AnswerHeader, answerHeaders } from "../AnswerHeaders.ts"
import { Api, about } from "../Api.ts"
import { toWire, type WireError } from "../errors/ErrorMessages.ts"
import type { Tag } from "../errors/ErrorRow.ts"
import { errorTable } from "../errors/ErrorTable.ts"
import { messagesError } from "../messages/MessagesAnswer.ts"
import { responsesError } from "../responses/ResponsesObject.ts"
import { idempotencyKey } from "../schema/Headers.ts"
import { type Examples, examplesOf } from "./Examples.ts"

/** The example of a long prompt, for which Responses forwards the provider's message and code. */
const tooLong = new UpstreamRejected({
  param: null,
  reason: "Your input exceeds the context window of this model. Please adjust your input and try again.",
  reasonCode: "context_length_exceeded"
})

interface ErrorForm {
  readonly schema: string
  readonly encode: (error: WireError) => {
    readonly error: { readonly type: string; readonly code?: string | null | undefined }
  }
}

const defaultForm: ErrorForm = { schema: "Error", encode: ({ body }) => body }

/** The endpoint groups whose errors differ from the default form. */
const forms: Readonly<Record<string, ErrorForm>> = {
  messages: { schema: "MessagesError", encode: ({ body }) => messagesError(body, undefined, "req_5d0f") },
  responses: { schema: "Error", encode: responsesError }
}

const enumOf = (values: ReadonlyArray<unknown>) => ({ enum: [...new Set(values)] })

/** Returns the content of an error response for these failures: its schema with their types and codes, and examples. */
export const errorContent = (tags: ReadonlyArray<Tag>, group: string, surface: Surface = "chat") => {
  const { encode, schema } = forms[group] ?? defaultForm
  const failures = [
    ...Object.values(errorTable).map(({ example }) => example(surface)),
    ...(group === "responses" ? [tooLong] : [])
  ]
  const bodies = failures.filter(({ _tag }) => tags.includes(_tag)).map((failure) => encode(toWire(failure)))
  const codes = bodies.map(({ error }) => error.code)
  const error = {
    type: enumOf(bodies.map(({ error }) => error.type)),
    ...(codes.includes(undefined) ? undefined : { code: enumOf(codes) })
  }
  return {
    schema: { allOf: [{ $ref: `#/components/schemas/${schema}` }, { properties: { error: { properties: error } } }] },
    examples: Object.fromEntries(
      bodies.map((value, index) => [`${value.error.code ?? value.error.type}_${index + 1}`, { value }])
    )
  }
}

/** The description of the document, as Markdown. */
const introduction = (baseUrl: string): string =>
  `${about.description} The base URL is \`${baseUrl}\`. OpenAI's clients work with this base URL and your key.

## Authentication

Send your key as \`Authorization: Bearer <API_KEY>\` or as \`x-api-key: <API_KEY>\`. The examples read it from a variable:

\`\`\`sh
export GATEWAY_KEY=ggw_…
\`\`\`

## Conventions

- Bodies are JSON in UTF-8. Times are integer Unix seconds. Money is in USD.
- \`null\` is the same as an absent field. The gateway accepts unlisted fields and ignores them.
- Every response has an \`x-request-id\`: your own, or a new one. Quote it when you ask the operator about a request.
- Every error is \`{"error": {"message", "type", "param", "code"}}\`. Branch on \`code\`, which is more precise than the status.
- Retry 429, 500, 502, 503 and 504, after \`retry-after\` seconds if the header is present.
- If you send an \`Idempotency-Key\`, a repeated image or video request creates and charges only one image or video.
`

const headersNamed = (...names: ReadonlyArray<AnswerHeader>) => Struct.pick(answerHeaders, ...names)

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

/** The surface and the body schemas of each group of generating endpoints. */
const generating: Readonly<Record<string, { readonly surface: Surface; readonly bodies: ReadonlyArray<string> }>> = {
  chat: { surface: "chat", bodies: ["ChatCompletionRequest"] },
  messages: { surface: "chat", bodies: ["MessagesRequest", "CountTokensRequest"] },
  responses: { surface: "chat", bodies: ["ResponsesRequest"] },
  images: { surface: "image", bodies: ["ImageGenerationRequest", "ImageEditRequest", "ImageEditForm"] },
  videos: { surface: "video", bodies: ["VideoCreateRequest", "VideoCreateForm"] }
}

/** Operations whose response has the header with the charge. */
const chargedOperations: ReadonlySet<string> = new Set([
  "createChatCompletion",
  "createMessage",
  "createResponse",
  "createImage",
  "createImageEdit"
])

const singleVideoOperations: ReadonlySet<string> = new Set(["getVideo", "getVideoContent"])

/** Returns false for the decode error that the platform adds to every endpoint. */
const isOurs = (schema: object): schema is { readonly failures: ReadonlyArray<Tag>; readonly description: string } =>
  "failures" in schema

export const failureSchemasOf = ({ content }: OpenApi.OpenApiSpecResponse) => {
  const schema = content?.["application/json"]?.schema
  const members: ReadonlyArray<object> = schema === undefined ? [] : "anyOf" in schema ? schema.anyOf : [schema]
  return members.filter(isOurs)
}

const describeError = (status: string, response: OpenApi.OpenApiSpecResponse, headers: object, tag: string) => {
  const [failureSchema] = failureSchemasOf(response)
  if (failureSchema === undefined) return undefined
  return {
    description: failureSchema.description,
    headers: { ...headers, ...headersOf[status] },
    content: { "application/json": errorContent(failureSchema.failures, tag, generating[tag]?.surface) }
  }
}

const describeOperation = (operation: OpenApi.OpenAPISpecOperation) => {
  // Only endpoints with a rate limit have 429. A 401 precedes the rate check, so it lacks the rate headers.
  const isRateLimited = operation.responses[429] !== undefined
  const isRepeatable = operation.parameters.some(({ name }) => name === idempotencyKey)
  const successHeaders = {
    ...(isRateLimited || singleVideoOperations.has(operation.operationId) ? headersNamed("x-gateway-sandbox") : {}),
    ...(chargedOperations.has(operation.operationId) ? headersNamed("x-gateway-charge-usd") : {}),
    ...(isRepeatable ? headersNamed("idempotency-replayed") : {}),
    ...(operation.tags[0] === "chat" ? headersNamed("x-gateway-max-output-tokens") : {})
  }
  const responses: { [status: string]: object } = {}
  for (const [status, response] of Object.entries(operation.responses)) {
    const headers = {
      ...headersNamed("x-request-id"),
      ...(operation.tags[0] === "messages" ? headersNamed("request-id") : {}),
      ...(isRateLimited && status !== "401" ? rate : {})
    }
    const describedResponse =
      Number(status) < 400
        ? { ...response, headers: { ...headers, ...successHeaders, ...headersOf[status] } }
        : describeError(status, response, headers, operation.tags[0] ?? "")
    if (describedResponse !== undefined) responses[status] = describedResponse
  }
  return { ...operation, responses, security: [{ bearer: [] }, { apiKey: [] }] }
}

const securitySchemes = {
  bearer: { type: "http", scheme: "bearer", description: "`Authorization: Bearer <API_KEY>`" },
  apiKey: { type: "apiKey", in: "header", name: "x-api-key" }
}

const nonEmptyField = { minLength: 1, minItems: 1 }

const constraints: Readonly<Record<string, object>> = {
  ImageEditForm: {
    anyOf: ["image", "image[]"].map((name) => ({ required: [name], properties: { [name]: nonEmptyField } }))
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

/** Returns the published document. `baseUrl` includes the version, such as `https://host/v1`. */
export const openApiDocument = (
  models: ReadonlyArray<Model>,
  listModel: (model: Model) => ListedModel,
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
  const allExamples = examplesOf(models, listModel)
  const addExamples = (operation: Operation): Operation => {
    const examples = allExamples[operation.operationId]
    return examples === undefined ? operation : withExamples(operation, examples)
  }
  const paths = Record.map(document.paths, (item) => Record.map<string, Operation, Operation>({ ...item }, addExamples))
  const info = { ...document.info, description: introduction(baseUrl) }
  return { ...document, info, paths, servers: [{ url: baseUrl }], components: { ...document.components, schemas } }
}
