import type { Part, TextPart } from "../../domain/Chat.ts"
import { isArray, isObject, isString, type JsonObject } from "../body/Guards.ts"
import { refuseAt } from "../body/Refusals.ts"
import { isImageType, isTextType, readImage, readTextField, wrongType } from "./ContentParts.ts"
import { isRefusal, type Result, readEach } from "./Result.ts"

export const wrongInput = (path: string, problem: string) => refuseAt("input", path, problem)
export const wrongIn = (path: string, field: string, problem: string) => wrongInput(`${path}.${field}`, problem)

const readText = (part: JsonObject, path: string): Result<TextPart> => {
  const text = readTextField(part, () => path)
  return isRefusal(text) ? text : { type: "text", text }
}

export const readTextOnly = (part: JsonObject, path: string): Result<TextPart> =>
  isTextType(part.type) ? readText(part, path) : wrongType(() => path, part.type, "input_text")

export const readAssistantPart = (part: JsonObject, path: string): Result<TextPart> => {
  if (part.type !== "refusal") return readTextOnly(part, path)
  return isString(part.refusal) ? { type: "text", text: part.refusal } : wrongIn(path, "refusal", "must be a string")
}

export const readUserPart = (part: JsonObject, path: string): Result<Part> => {
  if (isTextType(part.type)) return readText(part, path)
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
  if (!isArray(content)) return wrongInput(path, "must be a string or an array of content parts")
  return readEach(content, (part, index) => {
    const at = `${path}[${index}]`
    return isObject(part) ? readPart(part, at) : wrongInput(at, "must be an object")
  })
}
