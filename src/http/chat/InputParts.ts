import type { Part, TextPart } from "../../domain/Chat.ts"
import { isArray, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { isImageType, isTextType, readImage, readText, wrongAt, wrongType } from "./ContentParts.ts"
import { type Result, readEach } from "./Result.ts"

export const wrongIn = (path: string, field: string, problem: string) => wrongAt(`${path}.${field}`, problem)

export const readTextOnly = (part: JsonObject, path: string): Result<TextPart> =>
  isTextType(part.type) ? readText(part, () => path) : wrongType(() => path, part.type, "input_text")

export const readAssistantPart = (part: JsonObject, path: string): Result<TextPart> => {
  if (part.type !== "refusal") return readTextOnly(part, path)
  return isString(part.refusal) ? { type: "text", text: part.refusal } : wrongIn(path, "refusal", "must be a string")
}

export const readUserPart = (part: JsonObject, path: string): Result<Part> => {
  if (isTextType(part.type)) return readText(part, () => path)
  return isImageType(part.type)
    ? readImage(part, () => path, "auto, low, high, original")
    : wrongType(() => path, part.type, "one of input_text, input_image")
}

export const readParts = <A>(
  content: unknown,
  path: string,
  readPart: (part: JsonObject, path: string) => Result<A>
): Result<string | ReadonlyArray<A>> => {
  if (isString(content)) return content
  if (!isArray(content)) return wrongAt(path, "must be a string or an array of content parts")
  return readEach(content, (part, index) => {
    const at = `${path}[${index}]`
    return isObject(part) ? readPart(part, at) : wrongAt(at, "must be an object")
  })
}
