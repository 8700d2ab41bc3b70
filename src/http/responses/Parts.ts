import type { ImagePart, Part, TextPart } from "../../domain/Chat.ts"
import { isAbsent, isArray, isFilled, isObject, isOneOf, isString, type JsonObject } from "../body/Guards.ts"
import { refuseAt } from "../body/Refusals.ts"
import { isReference, refuseImage } from "../chat/ChatMessages.ts"
import { type Result, readEach } from "../chat/Result.ts"

export const wrongInput = (path: string, problem: string) => refuseAt("input", path, problem)
export const wrongIn = (path: string, field: string, problem: string) => wrongInput(`${path}.${field}`, problem)

const isText = isOneOf("input_text", "output_text", "text")
const isDetail = isOneOf("auto", "low", "high", "original")

const readText = (part: JsonObject, path: string): Result<TextPart> =>
  isString(part.text) ? { type: "text", text: part.text } : wrongIn(path, "text", "must be a string")

export const readTextOnly = (part: JsonObject, path: string): Result<TextPart> =>
  isText(part.type) ? readText(part, path) : wrongIn(path, "type", "must be input_text")

export const readAssistantPart = (part: JsonObject, path: string): Result<TextPart> => {
  if (part.type !== "refusal") return readTextOnly(part, path)
  return isString(part.refusal) ? { type: "text", text: part.refusal } : wrongIn(path, "refusal", "must be a string")
}

const readImage = ({ detail, file_id, image_url: url }: JsonObject, path: string): Result<ImagePart> => {
  if (!isAbsent(file_id)) return wrongIn(path, "file_id", "is not supported: send the picture in `image_url`")
  if (!isFilled(url)) return wrongIn(path, "image_url", "is required and must be a string")
  if (!isReference(url)) return refuseImage("input", path)
  if (isAbsent(detail)) return { type: "image_url", image_url: { url } }
  if (!isDetail(detail)) return wrongIn(path, "detail", "must be one of auto, low, high, original")
  return { type: "image_url", image_url: { url, detail: detail === "original" ? "high" : detail } }
}

export const readUserPart = (part: JsonObject, path: string): Result<Part> => {
  if (isText(part.type)) return readText(part, path)
  return part.type === "input_image"
    ? readImage(part, path)
    : wrongIn(path, "type", "must be one of input_text, input_image")
}

export const readParts = <A>(
  content: unknown,
  path: string,
  readPart: (part: JsonObject, path: string) => Result<A>
): Result<string | ReadonlyArray<A>> => {
  if (isString(content)) return content
  if (!isArray(content)) return wrongInput(path, "must be a string or an array of content parts")
  return readEach(content, (part, index) => {
    const at = `${path}[${index}]`
    return isObject(part) ? readPart(part, at) : wrongInput(at, "must be an object")
  })
}
