import { Effect, Either, Schema } from "effect"
import { atMost, described, isWithin } from "../../domain/Constraints.ts"
import type { InvalidRequest } from "../../domain/Failure.ts"
import { largestReference, longestUrl, maxReferences, type Reference } from "../../domain/Media.ts"
import { nthImage, referenceProblems, refuseReference } from "../../domain/ReferenceProblem.ts"
import { decodeBase64, fromBase64 } from "../../services/media/Base64.ts"
import * as EventLoop from "../../services/runtime/EventLoop.ts"
import { isAbsent, isArray, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { refuseAt } from "../body/Refusals.ts"
import { readWith } from "../schema/Decoding.ts"
import { urlLength, urlLimit } from "../schema/SharedFields.ts"

type Decoded<A> = Either.Either<A, InvalidRequest>

const unusableImage = (problem: string, subject: string | undefined): Decoded<never> =>
  Either.left(refuseReference("image", problem, subject))
const invalid = (param: Field, path: string, problem: string): Decoded<never> =>
  Either.left(refuseAt(param, path, problem))

const readBytes = (bytes: Uint8Array | undefined, subject: string | undefined): Decoded<Reference> => {
  if (bytes === undefined) return unusableImage(referenceProblems.neither, subject)
  if (bytes.length === 0) return unusableImage(referenceProblems.empty, subject)
  return bytes.length > largestReference
    ? unusableImage(referenceProblems.large, subject)
    : Either.right({ _tag: "Bytes", bytes })
}

const dataUrl = /^data:[^,]*;base64,/i

const base64In = (value: string): string | undefined => {
  if (/^https?:\/\//i.test(value)) return undefined
  // Only the start: the rest is megabytes of base64.
  const [prefix] = dataUrl.exec(value.slice(0, 300)) ?? []
  return prefix === undefined ? value : value.slice(prefix.length)
}

const readString = (value: string, subject: string | undefined): Decoded<Reference> => {
  const base64 = base64In(value)
  if (base64 !== undefined) {
    return base64.length > longestText
      ? unusableImage(referenceProblems.large, subject)
      : readBytes(fromBase64(base64), subject)
  }
  return isWithin(longestUrl, value) && URL.canParse(value)
    ? Either.right({ _tag: "Url", url: value })
    : unusableImage(referenceProblems.url, subject)
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

/** References come as URLs, or as the bytes that they encode, of whatever those may be; none is the same as `[]`. */
const readReferences = (param: Field, value: unknown): Decoded<ReadonlyArray<Reference>> => {
  if (isAbsent(value)) return Either.right([])
  const given = isArray(value) ? value : [value]
  return given.length <= maxReferences
    ? Either.all(given.map((one, index) => readers[param](one, nthImage(index, given.length))))
    : invalid(param, param, `must hold at most ${maxReferences} images`)
}

/** Longer base64 is decoded in slices. */
const smallText = 256 * 1024
/** Twice the largest reference's base64, which leaves room for blanks. */
const longestText = 3 * largestReference

const noBytes = new Uint8Array()

function* decodeText(text: string): EventLoop.Steps<unknown> {
  const base64 = base64In(text)
  if (base64 === undefined) return text
  return base64.length > longestText ? text : ((yield* decodeBase64(base64)) ?? noBytes)
}

const isLargeText = (value: unknown): value is string => isString(value) && value.length > smallText

const largeTextIn = (field: Field, value: unknown): string | undefined => {
  const isWrapped = field === "input_reference" && isObject(value) && isAbsent(value.file_id)
  const text = isWrapped ? value.image_url : value
  return isLargeText(text) ? text : undefined
}

function* decodeField(field: Field, value: unknown): EventLoop.Steps<unknown> {
  const decoded: Array<unknown> = []
  for (const item of isArray(value) ? value : [value]) {
    const text = largeTextIn(field, item)
    decoded.push(text === undefined ? item : yield* decodeText(text))
  }
  return isArray(value) ? decoded : decoded[0]
}

const isLargeField = (field: Field, value: unknown): boolean =>
  isArray(value)
    ? value.length <= maxReferences && value.some((item) => largeTextIn(field, item) !== undefined)
    : largeTextIn(field, value) !== undefined

function* decodeFields(body: JsonObject, fields: ReadonlyArray<Field>): EventLoop.Steps<JsonObject> {
  const decoded: Record<string, unknown> = { ...body }
  for (const field of fields) decoded[field] = yield* decodeField(field, body[field])
  return decoded
}

/** Replaces long base64 by its bytes, decoded in slices. */
export const decodeReferences = (body: unknown): Effect.Effect<unknown> => {
  if (!isObject(body)) return Effect.succeed(body)
  const large = fields.filter((field) => isLargeField(field, body[field]))
  return large.length === 0 ? Effect.succeed(body) : EventLoop.runInSlices(decodeFields(body, large))
}

/** Only described: `readReferences` also takes bytes, in place of a form's files and of long texts. */
const Reference = Schema.declare((_value): _value is unknown => true, {
  identifier: "ReferenceImage",
  description: `An http(s) URL, a \`data:\` URL or bare base64 of a PNG, JPEG, WebP or GIF of at most ${largestReference / 2 ** 20} MiB. An http(s) URL has at most ${urlLength} characters.`,
  jsonSchema: { type: "string", minLength: 1, ...urlLimit },
  arbitrary: () => (fc) => fc.string({ minLength: 1 })
})

const Frame = Schema.Union(
  Reference,
  Schema.Struct({
    image_url: Reference,
    file_id: described(Schema.Null, "Not supported: send the image itself, or its URL as `image_url`.")
  })
)

const few = atMost(maxReferences)

export const References = readWith(Schema.Union(Reference, few(Schema.Array(Reference))), (value) =>
  readReferences("image", value)
)

export const RequiredReferences = readWith(Schema.Union(Reference, few(Schema.NonEmptyArray(Reference))), (value) =>
  Either.filterOrLeft(
    readReferences("image", value),
    (references) => references.length > 0,
    () => refuseAt("image", "image", "is required")
  )
)

export const Frames = readWith(Schema.Union(Frame, few(Schema.Array(Frame))), (value) =>
  readReferences("input_reference", value)
)

const File = Schema.String.annotations({ jsonSchema: { type: "string", format: "binary" } })
export const Files = Schema.Union(File, few(Schema.Array(File)))

/** Clients that send several files name the field so. */
export const imageInBrackets = described(Files, "Another name of `image`.")
