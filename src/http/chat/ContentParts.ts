import { Schema } from "effect"
import type { CacheControl, ImagePart, TextPart } from "../../domain/Chat.ts"
import { described, Filled, isWithin, matching, optional } from "../../domain/Constraints.ts"
import { longestUrl } from "../../domain/Media.ts"
import { referenceProblems, refuseReference } from "../../domain/ReferenceProblem.ts"
import { isAbsent, isFilled, isObject, isOneOf, isString, type JsonObject } from "../body/Guards.ts"
import { ImageUrl, mustBeOneOf } from "../schema/SharedFields.ts"
import { invalidIn, type Path, paramOf, readEach, readObjectIn, readString, textOf } from "./FieldReaders.ts"

const Ttl = Schema.Literal("5m", "1h")

const CacheMark = Schema.Struct({
  type: Schema.Literal("ephemeral"),
  ttl: optional(Ttl, "How long the vendor keeps it after its last use: `5m` by default.")
}).annotations({
  identifier: "CacheControl",
  description: "Asks vendors that cache by mark to cache the prompt up to here. Others do not get it."
})

const isTtl = isOneOf(...Ttl.literals)

const unmarked: { readonly cache_control?: CacheControl } = {}

/** The field to spread into what was read beside it. */
export const readCacheMark = ({ cache_control: mark }: JsonObject, path: Path): typeof unmarked => {
  if (isAbsent(mark)) return unmarked
  if (!isObject(mark) || mark.type !== "ephemeral") {
    return invalidIn(path, "cache_control", "must be an object of type ephemeral")
  }
  if (isAbsent(mark.ttl)) return { cache_control: { type: "ephemeral" } }
  return isTtl(mark.ttl)
    ? { cache_control: { type: "ephemeral", ttl: mark.ttl } }
    : invalidIn(path, "cache_control.ttl", mustBeOneOf(Ttl.literals))
}

export const marked = { cache_control: optional(CacheMark) }

/** The types of a text part in all dialects: clients of each dialect send it to the others. */
export const TextType = Schema.Literal("text", "input_text", "output_text")
export const isTextType = isOneOf(...TextType.literals)

/** Parts as each dialect has them; `more` are further fields. */
export const textPartOf = <Fields extends Schema.Struct.Fields>(more: Fields) =>
  Schema.Struct({ type: TextType, text: Schema.String, ...more })
export const refusalPartOf = <Fields extends Schema.Struct.Fields>(more: Fields) =>
  Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String, ...more })

export const TextPartSchema = textPartOf(marked).annotations({ identifier: "TextPart" })
export const RefusalPartSchema = refusalPartOf(marked)

/** The values of chat completions; Responses has one more, and each dialect takes all. */
export const chatDetails = ["auto", "low", "high"] as const
const Detail = Schema.Literal(...chatDetails, "original")
export const responsesDetails = Detail.literals
const isDetail = isOneOf(...Detail.literals)

const UrlImageType = Schema.Literal("image_url", "input_image")
/** The types of an image part in all dialects. */
export const isImageType = isOneOf(...UrlImageType.literals, "image")

const noFile = described(Schema.Null, "Not supported: send the picture in `image_url`.")

/** A picture as the Messages API has it. */
export const ImageSource = Schema.Union(
  Schema.Struct({ type: Schema.Literal("base64"), media_type: matching(/^image\/[a-zA-Z0-9.+-]+$/), data: Filled }),
  Schema.Struct({ type: Schema.Literal("url"), url: ImageUrl })
)

/** A picture as clients of each dialect send it; `more` are fields of the part. */
export const imagePartOf = <Fields extends Schema.Struct.Fields>(more: Fields) =>
  Schema.Union(
    Schema.Struct({
      type: UrlImageType,
      image_url: Schema.Struct({ url: ImageUrl, detail: optional(Detail) }),
      file_id: noFile,
      ...more
    }),
    Schema.Struct({
      type: UrlImageType,
      image_url: ImageUrl,
      detail: optional(Detail),
      file_id: noFile,
      ...more
    }),
    Schema.Struct({ type: Schema.Literal("image"), source: ImageSource, ...more })
  )

export const ImagePartSchema = imagePartOf(marked).annotations({ identifier: "ImagePart" })

const longestShownType = 64

/** An unknown type, shortened for an error message. */
export const shownType = (type: string): string => type.slice(0, longestShownType)

/** `known`: the types that this position accepts. */
export const invalidType = (path: Path, type: unknown, known: string): never =>
  invalidIn(path, "type", isFilled(type) ? `must be ${known}, not \`${shownType(type)}\`` : `must be ${known}`)

const webUrl = /^https?:\/\//i
const dataImage = /^data:image\/[a-z0-9.+-]+(?:;[a-z0-9=.+-]+)*;base64,./i

/** Only the start: the rest is base64, judged once it is decoded. */
const isReference = (url: string): boolean =>
  webUrl.test(url.slice(0, 8)) ? isWithin(longestUrl, url) && URL.canParse(url) : dataImage.test(url.slice(0, 200))

const imagePart = (url: unknown, path: Path, detail?: string): ImagePart => {
  if (!isFilled(url) || !isReference(url)) {
    const at = textOf(path)
    throw refuseReference(paramOf(at), referenceProblems.neitherUrl, `The image of \`${at}\``)
  }
  return { type: "image_url", image_url: detail === undefined ? { url } : { url, detail } }
}

/** A picture of the Messages API: base64, or a URL. */
export const readSource = (part: JsonObject, path: Path): ImagePart => {
  const source = readObjectIn(part, "source", path)
  if (source.type === "file") return invalidIn(path, "source.type", "must be base64 or url: files are not kept here")
  const isInline = source.type === "base64"
  if (!isInline && source.type !== "url") return invalidIn(path, "source.type", "must be base64 or url")
  if (isInline && (!isFilled(source.media_type) || !isFilled(source.data))) {
    return invalidIn(path, "source", "must have a `media_type` and `data` in base64")
  }
  return imagePart(isInline ? `data:${String(source.media_type)};base64,${String(source.data)}` : source.url, path)
}

/** A picture of any dialect, whose type is one of `isImageType`; `details`: the values that this dialect documents. */
const readImage = (part: JsonObject, path: Path, details: ReadonlyArray<string>): ImagePart => {
  if (part.type === "image") return readSource(part, path)
  if (!isAbsent(part.file_id)) return invalidIn(path, "file_id", "is not supported: send the picture in `image_url`")
  const image = part.image_url
  const inner = isObject(image) ? image : { url: image, detail: part.detail }
  if (!isFilled(inner.url)) return invalidIn(path, "image_url", "must be a URL, or an object with a `url`")
  if (isAbsent(inner.detail)) return imagePart(inner.url, path)
  const field = isObject(image) ? "image_url.detail" : "detail"
  if (!isDetail(inner.detail)) return invalidIn(path, field, mustBeOneOf(details))
  return imagePart(inner.url, path, inner.detail === "original" ? "high" : inner.detail)
}

/** A part of `isTextType`. */
export const readText = (part: JsonObject, path: Path): TextPart => ({
  type: "text",
  text: readString(part, "text", path)
})

export type ReadPart<A> = (part: JsonObject, path: Path) => A

/** A part of a user's message. `known` and `details`: the types and the values of `detail` that its dialect documents. */
export const userPartReader =
  (known: string, details: ReadonlyArray<string>): ReadPart<TextPart | ImagePart> =>
  (part, path) => {
    if (isTextType(part.type)) return readText(part, path)
    return isImageType(part.type) ? readImage(part, path, details) : invalidType(path, part.type, known)
  }

/** A part of an assistant's message: a refusal, or what else `readTextOnly` takes. */
export const assistantPartReader =
  (readTextOnly: ReadPart<TextPart>): ReadPart<TextPart> =>
  (part, path) =>
    part.type === "refusal" ? { type: "text", text: readString(part, "refusal", path) } : readTextOnly(part, path)

/** A text, or an array of parts. */
export const readParts = <A>(content: unknown, path: Path, readPart: ReadPart<A>): string | ReadonlyArray<A> =>
  isString(content) ? content : readEach(content, path, readPart, "must be a string or an array of content parts")
