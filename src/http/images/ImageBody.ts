import { Either } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import type { ImageAsk } from "../../domain/Image.ts"
import {
  field,
  isAbsent,
  isEmpty,
  isFilled,
  isObject,
  isOne,
  isOneOf,
  isString,
  type JsonObject,
  type Read,
  readPrompt,
  readText,
  refuse,
  refuseAt,
  refused
} from "../body/Fields.ts"
import { formObject, type Part } from "../body/Multipart.ts"
import { readReferences } from "../body/ReferenceFields.ts"

const longestEcho = 32

const isFalse = (value: unknown): value is false => value === false

const n = field("n", isOne, "1")
const responseFormat = field("response_format", isOneOf("url", "b64_json"), "url or b64_json")
const stream = field("stream", isFalse, "false: images are not streamed")

const plainFields = [n, responseFormat, stream]

/** Fields of other services that would change what is drawn. */
const checkForeign = ({ images, mask }: JsonObject): InvalidRequest | undefined => {
  if (!isEmpty(mask)) return refuseAt("mask", "mask", "is not supported: describe the edit in `prompt`")
  return isEmpty(images) ? undefined : refuseAt("images", "images", "is not supported: use `image`")
}

const checkFields = (body: JsonObject): InvalidRequest | undefined => {
  for (const plain of plainFields) {
    const problem = plain.check(body)
    if (problem !== undefined) return problem
  }
  return undefined
}

const isHd = (quality: unknown): boolean => isString(quality) && quality.toLowerCase() === "hd"

const readResolution = ({ quality, resolution: asked }: JsonObject): Read<string | undefined> => {
  if (isAbsent(asked)) return isHd(quality) ? "4K" : undefined
  if (!isFilled(asked)) return refuseAt("resolution", "resolution", "must be one of 1K, 2K, 4K")
  return asked.slice(0, longestEcho).toUpperCase()
}

const readBody = (body: unknown, needsReference: boolean): Read<ImageAsk> => {
  if (!isObject(body)) return refuse(null, "The body must be a JSON object.")
  const model = readText(body, "model")
  if (refused(model)) return model
  const prompt = readPrompt(body)
  if (refused(prompt)) return prompt
  const other = checkForeign(body)
  if (other !== undefined) return other
  const references = readReferences("image", body.image)
  if (refused(references)) return references
  if (needsReference && references.length === 0) return refuseAt("image", "image", "is required")
  const problem = checkFields(body)
  if (problem !== undefined) return problem
  const resolution = readResolution(body)
  if (refused(resolution)) return resolution
  return { model, prompt, references, resolution, responseFormat: responseFormat.of(body) ?? "url" }
}

/**
 * Reads the body of an image request, already parsed. The first thing wrong is the one reported; unknown fields are
 * passed over. References come as URLs or as the bytes that they encode, of whatever those may be.
 */
export const decodeImageBody = (
  body: unknown,
  options: { readonly needsReference: boolean }
): Either.Either<ImageAsk, InvalidRequest> => {
  const read = readBody(body, options.needsReference)
  return refused(read) ? Either.left(read) : Either.right(read)
}

const spoken: ReadonlyMap<unknown, unknown> = new Map<unknown, unknown>([
  ["1", 1],
  ["false", false]
])

/** The body that a form stands for: what is no text in JSON is none here, and files are bytes. */
export const imageForm = (parts: ReadonlyArray<Part>): JsonObject => {
  const body = formObject(parts)
  const said = (value: unknown) => spoken.get(value) ?? value
  return { ...body, n: said(body.n), stream: said(body.stream) }
}
