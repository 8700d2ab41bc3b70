import { Ajv2020 } from "ajv/dist/2020.js"
import { Either } from "effect"
import type { InvalidRequest } from "../../../src/domain/Failure.ts"
import type { Model } from "../../../src/domain/Model.ts"
import { type JsonObject } from "../../../src/http/body/Guards.ts"
import type { Part } from "../../../src/http/body/Multipart.ts"
import { openApiDocument } from "../../../src/http/openapi/OpenApi.ts"
import { listModel } from "../../../src/services/catalog/Surfaces.ts"
import { assert } from "../../harness/It.ts"
import { readForm } from "../body/Forms.ts"
import { modelNamed } from "./NamedModels.ts"

/** The OpenAPI document of a catalog, and what its schemas say of a value. */
export const published = (models: ReadonlyArray<Pick<Model, "id" | "surface">>) => {
  const document = openApiDocument(models.map(modelNamed), listModel, "https://api.test/v1")
  const ajv = new Ajv2020({ strict: false, strictNumbers: true, formats: { binary: true } })
  ajv.addSchema({ $id: "document", ...JSON.parse(JSON.stringify(document)) })
  const validate = (pointer: string, value: unknown): boolean => ajv.validate({ $ref: `document#${pointer}` }, value)
  const accepts = (name: string, value: unknown): boolean => validate(`/components/schemas/${name}`, value)
  return { document, validate, accepts }
}

/** Schemas by content type. */
export const schemasOf = (content: object | undefined): Readonly<Record<string, unknown>> =>
  Object.fromEntries(Object.entries(content ?? {}).map(([type, { schema }]) => [type, schema]))

/** The model of every body in the tables of tests. */
export const { accepts, document, validate } = published([
  { id: "m", surface: "chat" },
  { id: "m", surface: "image" },
  { id: "m", surface: "video" }
])

const forms = new WeakMap<object, unknown>()

/** Remembers the form that a body was read from, as a schema sees it: a file is some text. */
const remember = <A extends object>(body: A, parts: ReadonlyArray<Part>): A => {
  const fields = new Map<string, ReadonlyArray<string>>()
  for (const { name, value } of parts) {
    fields.set(name, [...(fields.get(name) ?? []), typeof value === "string" ? value : "bytes of a file"])
  }
  const instance = Object.fromEntries([...fields].map(([name, all]) => [name, all.length === 1 ? all[0] : all]))
  forms.set(body, instance)
  return body
}

/** Refusals of bodies that JSON Schema cannot tell from accepted ones. */
export const inexpressible: ReadonlyArray<readonly [what: string, in_: RegExp, message: RegExp]> = [
  ["what a reference image holds", /./, /^Failed to process the reference image\. .+\.$/],
  ["a file of a form in the place of a text", /Form$/, /must be text, not a file|`input_reference\.image_url` must be/],
  [
    "a tool choice and the tools beside it",
    /^(?:Chat|Responses)/,
    /^`tool_choice` (?:must name one of|needs) `tools`\.$/
  ],
  [
    "a tool result and the call before it",
    /^(?:Chat|Responses)/,
    /must answer a tool call (?:of an earlier assistant message|earlier in the input)\.$/
  ],
  ["how deep a JSON Schema nests", /^(?:Chat|Responses)/, /must not nest more than 100 levels deep\.$/]
]

/** Proves that the published schema says of a request's body what the decoder says; `refusal` is its message. */
const assertAgreement = (
  schemas: { readonly json: string; readonly form?: string },
  body: unknown,
  refusal: string | undefined
) => {
  const form = typeof body === "object" && body !== null ? forms.get(body) : undefined
  const name = form === undefined ? schemas.json : (schemas.form ?? schemas.json)
  const instance = form ?? body
  const excused = inexpressible.some(([, where, message]) => where.test(name) && message.test(refusal ?? ""))
  if (excused) return
  const shown = `${name} ${JSON.stringify(instance)?.slice(0, 300)}: ${refusal ?? "accepted"}`
  assert.strictEqual(accepts(name, instance), refusal === undefined, shown)
}

/** What a body that must be accepted is read as, and tag, param and message of the refusal of one. */
export const judging = <A>(decode: (body: unknown) => Either.Either<A, InvalidRequest>) => ({
  taken: (body: unknown): A => Either.getOrThrowWith(decode(body), ({ message }) => new Error(message)),
  refusal: (body: unknown) => {
    const result = decode(body)
    return Either.isLeft(result) ? [result.left._tag, result.left.param, result.left.message] : "accepted"
  }
})

/** The same, and of each body the proof that the published schema says of it what the decoder says. */
export const agreeing = <A>(
  schemas: Parameters<typeof assertAgreement>[0],
  decode: (body: unknown) => Either.Either<A, InvalidRequest>,
  rules: (read: A) => Either.Either<unknown, InvalidRequest> = Either.right
) =>
  judging((body) => {
    const decoded = decode(body)
    const message = Either.match(Either.flatMap(decoded, rules), {
      onLeft: (left) => left.message,
      onRight: () => undefined
    })
    assertAgreement(schemas, body, message)
    return decoded
  })

/** Makes the bodies that forms stand for. */
export const formBodies =
  (toBody: (parts: ReadonlyArray<Part>) => JsonObject) =>
  (type: string, form: Buffer): JsonObject => {
    const parts = Either.getOrThrowWith(readForm(type, form), ({ message }) => new Error(message))
    return remember(toBody(parts), parts)
  }
