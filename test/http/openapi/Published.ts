import { Ajv2020 } from "ajv/dist/2020.js"
import { Either, Option } from "effect"
import type { InvalidRequest } from "../../../src/domain/Failure.ts"
import type { Model } from "../../../src/domain/Model.ts"
import { type JsonObject } from "../../../src/http/body/Guards.ts"
import type { Part } from "../../../src/http/body/Multipart.ts"
import { openApiDocument } from "../../../src/http/openapi/OpenApi.ts"
import { listModel } from "../../../src/services/catalog/ModelEntry.ts"
import { assert } from "../../harness/It.ts"
import { readForm } from "../body/Forms.ts"
import { modelNamed } from "./NamedModels.ts"

/** The OpenAPI document of a catalog, and what its schemas say of a value. */
export const published = (models: ReadonlyArray<Pick<Model, "id" | "surface">>) => {
  const document = openApiDocument(models.map(modelNamed), listModel, "https://api.test/v1")
  const ajv = new Ajv2020({ strict: false, strictNumbers: true, formats: { binary: true } })
  ajv.addSchema({ $id: "document", ...JSON.parse(JSON.stringify(document)) })
  // `getSchema` compiles a schema once.
  const validate = (pointer: string, value: unknown): boolean => {
    const check = ajv.getSchema(`document#${pointer}`) ?? assert.fail(`no schema at ${pointer}`)
    return check(value) === true
  }
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

const fileText = "bytes of a file"

/** Remembers the form that a body was read from, as a schema sees it: a file is some text. */
const remember = <A extends object>(body: A, parts: ReadonlyArray<Part>): A => {
  const fields = new Map<string, ReadonlyArray<string>>()
  for (const { name, value } of parts) {
    fields.set(name, [...(fields.get(name) ?? []), typeof value === "string" ? value : fileText])
  }
  const instance = Object.fromEntries([...fields].map(([name, all]) => [name, all.length === 1 ? all[0] : all]))
  forms.set(body, instance)
  return body
}

const textOf = (body: unknown): string => JSON.stringify(body) ?? ""

const depthOf = (value: unknown): number =>
  typeof value === "object" && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

interface Inexpressible {
  readonly what: string
  readonly schemas: RegExp
  /** The field that the refusal names. */
  readonly param: RegExp
  readonly isIn: (body: unknown) => boolean
}

/** Parts of bodies that a decoder may refuse although the published schema accepts them. */
export const inexpressible: ReadonlyArray<Inexpressible> = [
  {
    what: "what a reference image holds",
    schemas: /./,
    param: /^(?:image|input_reference|messages|input)/,
    isIn: (body) => /"(?:image|image\[\]|image_url|source|input_reference[^"]*)":/.test(textOf(body))
  },
  {
    what: "a file of a form in the place of a text",
    schemas: /Form$/,
    param: /./,
    isIn: (body) => textOf(body).includes(fileText)
  },
  {
    what: "a tool choice and the tools beside it",
    schemas: /^(?:Chat|Responses)/,
    param: /^tool_choice$/,
    isIn: (body) => textOf(body).includes('"tool_choice":')
  },
  {
    what: "a tool result and the call before it",
    schemas: /^(?:Chat|Responses)/,
    param: /^(?:messages|input)$/,
    isIn: (body) => /"role":"tool"|_call_output"/.test(textOf(body))
  },
  {
    what: "how deep a JSON Schema nests",
    schemas: /^(?:Chat|Responses)/,
    param: /^(?:tools|response_format|text|messages|input)/,
    isIn: (body) => depthOf(body) > 100
  }
]

/** Proves that the published schema says of a request's body what the decoder says. */
const assertAgreement = (
  schemas: { readonly json: string; readonly form?: string },
  body: unknown,
  refused: InvalidRequest | undefined
) => {
  const form = typeof body === "object" && body !== null ? forms.get(body) : undefined
  const name = form === undefined ? schemas.json : (schemas.form ?? schemas.json)
  const instance = form ?? body
  const isExcused = ({ isIn, param, schemas }: Inexpressible) =>
    schemas.test(name) && param.test(refused?.param ?? "") && isIn(instance)
  if (refused !== undefined && inexpressible.some(isExcused)) return
  const shown = `${name} ${JSON.stringify(instance)?.slice(0, 300)}: ${refused?.message ?? "accepted"}`
  assert.strictEqual(accepts(name, instance), refused === undefined, shown)
}

/** A refusal's message, with its hint if it has one. */
export type Words = string | readonly [message: string, hint: string]

/** What a body that must be accepted is read as, and tag, param, message and hint of the refusal of one. */
export const judging = <A>(decode: (body: unknown) => Either.Either<A, InvalidRequest>) => ({
  taken: (body: unknown): A => Either.getOrThrowWith(decode(body), ({ message }) => new Error(message)),
  refusal: (body: unknown) => {
    const result = decode(body)
    if (Either.isRight(result)) return "accepted"
    const { _tag, hint, message, param } = result.left
    return [_tag, param, message, ...(hint === undefined ? [] : [hint])]
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
    assertAgreement(schemas, body, Option.getOrUndefined(Either.getLeft(Either.flatMap(decoded, rules))))
    return decoded
  })

/** Makes the bodies that forms stand for. */
export const formBodies =
  (toBody: (parts: ReadonlyArray<Part>) => JsonObject) =>
  (type: string, form: Buffer): JsonObject => {
    const parts = Either.getOrThrowWith(readForm(type, form), ({ message }) => new Error(message))
    return remember(toBody(parts), parts)
  }
