import { Effect, Either, Schema } from "effect"
import { atMost, describedField, isWithin } from "../../domain/Constraints.ts"
import type { InvalidRequest } from "../../domain/Failure.ts"
import {
  maxReferenceBytes,
  maxReferences,
  maxUrlLength,
  nthImage,
  type Reference,
  referenceProblems,
  refuseReference
} from "../../domain/Media.ts"
import { decodeBase64, fromBase64 } from "../../services/media/Base64.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { isAbsent, isArray, isObject, isString, type JsonObject, refusalAt } from "../body/Guards.ts"
import { readWith } from "../schema/Decoding.ts"
import { maxUrlLengthText, urlLimit } from "../schema/SharedFields.ts"

type Decoded<A> = Either.Either<A, InvalidRequest>

const refuseImage = (problem: string, subject: string | undefined): Decoded<never> =>
  Either.left(refuseReference("image", problem, subject))
const invalid = (param: Field, path: string, problem: string): Decoded<never> =>
  Either.left(refusalAt(param, path, problem))

const readBytes = (bytes: Uint8Array | undefined, subject: string | undefined): Decoded<Reference> => {
  if (bytes === undefined) return refuseImage(referenceProblems.neither, subject)
  if (bytes.length === 0) return refuseImage(referenceProblems.empty, subject)
  return bytes.length > maxReferenceBytes
    ? refuseImage(referenceProblems.large, subject)
    : Either.right({ _tag: "Bytes", bytes })
}

const dataUrl = /^data:[^,]*;base64,/i

const base64In = (value: string): string | undefined => {
  if (/^https?:\/\//i.test(value)) return undefined
  // Only the start is matched, because megabytes of base64 may follow.
  const [prefix] = dataUrl.exec(value.slice(0, 300)) ?? []
  return prefix === undefined ? value : value.slice(prefix.length)
}

const readString = (value: string, subject: string | undefined): Decoded<Reference> => {
  const base64 = base64In(value)
  if (base64 !== undefined) {
    return base64.length > maxTextLength
      ? refuseImage(referenceProblems.large, subject)
      : readBytes(fromBase64(base64), subject)
  }
  return isWithin(maxUrlLength, value) && URL.canParse(value)
    ? Either.right({ _tag: "Url", url: value })
    : refuseImage(referenceProblems.url, subject)
}

const readImage = (value: unknown, subject: string | undefined): Decoded<Reference> => {
  if (value instanceof Uint8Array) return readBytes(value, subject)
  return isString(value)
    ? readString(value, subject)
    : invalid("image", "image", "must be a string or an array of strings")
}

/** The official clients send a reference without a file as `{image_url}` or `{file_id}`. */
const readInputReference = (value: unknown, subject: string | undefined): Decoded<Reference> => {
  const param = "input_reference"
  if (value instanceof Uint8Array) return readBytes(value, subject)
  if (isString(value)) return readString(value, subject)
  if (!isObject(value)) return invalid(param, param, "must be a string, a file or an object with `image_url`")
  if (!isAbsent(value.file_id)) {
    return invalid(param, `${param}.file_id`, "is not supported: send the image itself, or its URL as `image_url`")
  }
  return isString(value.image_url)
    ? readString(value.image_url, subject)
    : invalid(param, `${param}.image_url`, "must be a string")
}

const readers = { image: readImage, input_reference: readInputReference } as const
type Field = keyof typeof readers
const fields: ReadonlyArray<Field> = ["image", "input_reference"]

/** Returns each reference as a URL or as bytes of unknown content. An absent field means `[]`. */
const readReferences = (param: Field, value: unknown): Decoded<ReadonlyArray<Reference>> => {
  if (isAbsent(value)) return Either.right([])
  const values = isArray(value) ? value : [value]
  return values.length <= maxReferences
    ? Either.all(values.map((item, index) => readers[param](item, nthImage(index, values.length))))
    : invalid(param, param, `must hold at most ${maxReferences} images`)
}

/** The gateway decodes longer base64 in slices. */
const maxUnslicedLength = 256 * 1024
/** The base64 of the largest reference is half as long. The rest is for line breaks and spaces. */
const maxTextLength = 3 * maxReferenceBytes

const emptyBytes = new Uint8Array()

function* decodeText(text: string): EventLoop.Steps<unknown> {
  const base64 = base64In(text)
  if (base64 === undefined) return text
  return base64.length > maxTextLength ? text : ((yield* decodeBase64(base64)) ?? emptyBytes)
}

const isLargeText = (value: unknown): value is string => isString(value) && value.length > maxUnslicedLength

const largeTextIn = (field: Field, value: unknown): string | undefined => {
  const isWrapped = field === "input_reference" && isObject(value) && isAbsent(value.file_id)
  const text = isWrapped ? value.image_url : value
  return isLargeText(text) ? text : undefined
}

function* decodeField(field: Field, value: unknown): EventLoop.Steps<unknown> {
  const items: Array<unknown> = []
  for (const item of isArray(value) ? value : [value]) {
    const text = largeTextIn(field, item)
    items.push(text === undefined ? item : yield* decodeText(text))
  }
  return isArray(value) ? items : items[0]
}

const isLargeField = (field: Field, value: unknown): boolean =>
  isArray(value)
    ? value.length <= maxReferences && value.some((item) => largeTextIn(field, item) !== undefined)
    : largeTextIn(field, value) !== undefined

function* decodeFields(body: JsonObject, fields: ReadonlyArray<Field>): EventLoop.Steps<JsonObject> {
  const decodedBody: Record<string, unknown> = { ...body }
  for (const field of fields) decodedBody[field] = yield* decodeField(field, body[field])
  return decodedBody
}

/** Replaces long base64 in a body by its bytes. It is decoded in slices, so other requests can run. */
export const decodeReferences = (body: unknown): Effect.Effect<unknown> => {
  if (!isObject(body)) return Effect.succeed(body)
  const largeFields = fields.filter((field) => isLargeField(field, body[field]))
  return largeFields.length === 0 ? Effect.succeed(body) : EventLoop.runInSlices(decodeFields(body, largeFields))
}

/** Documents a reference and accepts any value, because `readReferences` checks it. It also accepts bytes. */
const Reference = Schema.declare((_value): _value is unknown => true, {
  identifier: "ReferenceImage",
  description: `An http(s) URL, a \`data:\` URL or bare base64 of a PNG, JPEG, WebP or GIF of at most ${maxReferenceBytes / 2 ** 20} MiB. An http(s) URL has at most ${maxUrlLengthText} characters.`,
  jsonSchema: { type: "string", minLength: 1, ...urlLimit },
  arbitrary: () => (fc) => fc.string({ minLength: 1 })
})

const Frame = Schema.Union(
  Reference,
  Schema.Struct({
    image_url: Reference,
    file_id: describedField(Schema.Null, "Not supported: send the image itself, or its URL as `image_url`.")
  })
)

const withMaxCount = atMost(maxReferences)

export const References = readWith(Schema.Union(Reference, withMaxCount(Schema.Array(Reference))), (value) =>
  readReferences("image", value)
)

export const RequiredReferences = readWith(
  Schema.Union(Reference, withMaxCount(Schema.NonEmptyArray(Reference))),
  (value) =>
    Either.filterOrLeft(
      readReferences("image", value),
      (references) => references.length > 0,
      () => refusalAt("image", "image", "is required")
    )
)

export const Frames = readWith(Schema.Union(Frame, withMaxCount(Schema.Array(Frame))), (value) =>
  readReferences("input_reference", value)
)

const File = Schema.String.annotations({ jsonSchema: { type: "string", format: "binary" } })
export const Files = Schema.Union(File, withMaxCount(Schema.Array(File)))

/** Documents the name under which clients send several files. */
export const imageInBrackets = describedField(Files, "Another name of `image`.")
