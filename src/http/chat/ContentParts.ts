import { Schema } from "effect"
import type { CacheControl, ImagePart, TextPart } from "../../domain/Chat.ts"
import { describedField, isWithin, matching, NonEmptyString, optional } from "../../domain/Constraints.ts"
import { maxUrlLength, referenceProblems, refuseReference } from "../../domain/Media.ts"
import {
  formatPath,
  invalidIn,
  isAbsent,
  isNonEmptyString,
  isObject,
  isOneOf,
  isString,
  type JsonObject,
  type Path,
  paramOf,
  readEach,
  readObjectIn,
  readString
} from "../body/Guards.ts"
import { ImageUrl, mustBeOneOf } from "../schema/SharedFields.ts"

const Ttl = Schema.Literal("5m", "1h")

const CacheMark = Schema.Struct({
  type: Schema.Literal("ephemeral"),
  ttl: optional(Ttl, "How long the provider caches it after its last use: `5m` by default.")
}).annotations({
  identifier: "CacheControl",
  description:
    "A cache breakpoint: the end of the prompt prefix that the provider caches. Providers without cache breakpoints do not receive it."
})

const isTtl = isOneOf(...Ttl.literals)

interface CacheMarkField {
  readonly cache_control?: CacheControl
}

/** Returns `cache_control` in an object that the caller spreads into a part or message. */
export const readCacheMark = ({ cache_control: mark }: JsonObject, path: Path): CacheMarkField => {
  if (isAbsent(mark)) return {}
  if (!isObject(mark) || mark.type !== "ephemeral") {
    return invalidIn(path, "cache_control", "must be an object of type ephemeral")
  }
  if (isAbsent(mark.ttl)) return { cache_control: { type: "ephemeral" } }
  return isTtl(mark.ttl)
    ? { cache_control: { type: "ephemeral", ttl: mark.ttl } }
    : invalidIn(path, "cache_control.ttl", mustBeOneOf(Ttl.literals))
}

export const cacheMarkField = { cache_control: optional(CacheMark) }

/** The types of a text part in all dialects. Each dialect accepts all of them, because clients mix them. */
export const TextType = Schema.Literal("text", "input_text", "output_text")
export const isTextType = isOneOf(...TextType.literals)

/** Returns the schema of a text part. `fields` are the dialect's additional fields. */
export const textPartOf = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct({ type: TextType, text: Schema.String, ...fields })
export const refusalPartOf = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String, ...fields })

export const TextPartSchema = textPartOf(cacheMarkField).annotations({ identifier: "TextPart" })
export const RefusalPartSchema = refusalPartOf(cacheMarkField)

/** The values of `detail` that chat completions documents. Responses has one more. Each dialect accepts all of them. */
export const chatDetails = ["auto", "low", "high"] as const
const Detail = Schema.Literal(...chatDetails, "original")
export const responsesDetails = Detail.literals
const isDetail = isOneOf(...Detail.literals)

const UrlImageType = Schema.Literal("image_url", "input_image")
/** The types of an image part in all dialects. */
export const isImageType = isOneOf(...UrlImageType.literals, "image")

const noFile = describedField(Schema.Null, "Not supported: send the image in `image_url`.")

/** An image in the format of the Messages API. */
export const ImageSource = Schema.Union(
  Schema.Struct({
    type: Schema.Literal("base64"),
    media_type: matching(/^image\/[a-zA-Z0-9.+-]+$/),
    data: NonEmptyString
  }),
  Schema.Struct({ type: Schema.Literal("url"), url: ImageUrl })
)

/** An image in the format of any dialect. `fields` are the dialect's additional fields. */
export const imagePartOf = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Union(
    Schema.Struct({
      type: UrlImageType,
      image_url: Schema.Struct({ url: ImageUrl, detail: optional(Detail) }),
      file_id: noFile,
      ...fields
    }),
    Schema.Struct({
      type: UrlImageType,
      image_url: ImageUrl,
      detail: optional(Detail),
      file_id: noFile,
      ...fields
    }),
    Schema.Struct({ type: Schema.Literal("image"), source: ImageSource, ...fields })
  )

export const ImagePartSchema = imagePartOf(cacheMarkField).annotations({ identifier: "ImagePart" })

const maxTypeLength = 64

/** Shortens an unknown type for an error message. */
export const shortenType = (type: string): string => type.slice(0, maxTypeLength)

/** Throws the refusal of a part's type. `types` lists the accepted types in the message. */
export const invalidType = (path: Path, type: unknown, types: string): never =>
  invalidIn(
    path,
    "type",
    isNonEmptyString(type) ? `must be ${types}, not \`${shortenType(type)}\`` : `must be ${types}`
  )

const webUrl = /^https?:\/\//i
const dataImage = /^data:image\/[a-z0-9.+-]+(?:;[a-z0-9=.+-]+)*;base64,./i

/** Returns whether a text can be an image's URL. Of base64 it checks only the start, because a later step decodes it. */
const isReference = (url: string): boolean =>
  webUrl.test(url.slice(0, 8)) ? isWithin(maxUrlLength, url) && URL.canParse(url) : dataImage.test(url.slice(0, 200))

const makeImagePart = (url: unknown, path: Path, detail?: string): ImagePart => {
  if (!isNonEmptyString(url) || !isReference(url)) {
    const text = formatPath(path)
    throw refuseReference(paramOf(text), referenceProblems.neitherUrl, `The image of \`${text}\``)
  }
  return { type: "image_url", image_url: detail === undefined ? { url } : { url, detail } }
}

/** Reads an image of the Messages API, which is base64 or a URL. */
export const readImageSource = (part: JsonObject, path: Path): ImagePart => {
  const source = readObjectIn(part, "source", path)
  if (source.type === "file")
    return invalidIn(path, "source.type", "must be base64 or url: the gateway stores no files")
  const isInline = source.type === "base64"
  if (!isInline && source.type !== "url") return invalidIn(path, "source.type", "must be base64 or url")
  if (isInline && (!isNonEmptyString(source.media_type) || !isNonEmptyString(source.data))) {
    return invalidIn(path, "source", "must have a `media_type` and `data` in base64")
  }
  return makeImagePart(isInline ? `data:${String(source.media_type)};base64,${String(source.data)}` : source.url, path)
}

/** Reads an image of any dialect, if `isImageType` accepts its type. The error message lists `details`. */
const readImage = (part: JsonObject, path: Path, details: ReadonlyArray<string>): ImagePart => {
  if (part.type === "image") return readImageSource(part, path)
  if (!isAbsent(part.file_id)) return invalidIn(path, "file_id", "is not supported: send the image in `image_url`")
  const image = part.image_url
  const { detail, url } = isObject(image) ? image : { url: image, detail: part.detail }
  if (!isNonEmptyString(url)) return invalidIn(path, "image_url", "must be a URL, or an object with a `url`")
  if (isAbsent(detail)) return makeImagePart(url, path)
  const field = isObject(image) ? "image_url.detail" : "detail"
  if (!isDetail(detail)) return invalidIn(path, field, mustBeOneOf(details))
  return makeImagePart(url, path, detail === "original" ? "high" : detail)
}

/** Reads a text part, if `isTextType` accepts its type. */
export const readText = (part: JsonObject, path: Path): TextPart => ({
  type: "text",
  text: readString(part, "text", path)
})

export type ReadPart<A> = (part: JsonObject, path: Path) => A

/** Returns a reader of a part of a user's message. `types` and `details`: the values that the error messages list. */
export const makeUserPartReader =
  (types: string, details: ReadonlyArray<string>): ReadPart<TextPart | ImagePart> =>
  (part, path) => {
    if (isTextType(part.type)) return readText(part, path)
    return isImageType(part.type) ? readImage(part, path, details) : invalidType(path, part.type, types)
  }

/** Returns a reader of a part of an assistant's message: a refusal, or a part that `readTextOnly` accepts. */
export const makeAssistantPartReader =
  (readTextOnly: ReadPart<TextPart>): ReadPart<TextPart> =>
  (part, path) =>
    part.type === "refusal" ? { type: "text", text: readString(part, "refusal", path) } : readTextOnly(part, path)

/** Reads a string or an array of parts. */
export const readParts = <A>(content: unknown, path: Path, readPart: ReadPart<A>): string | ReadonlyArray<A> =>
  isString(content) ? content : readEach(content, path, readPart, "must be a string or an array of content parts")
