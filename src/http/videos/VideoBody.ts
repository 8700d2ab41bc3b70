import { Either } from "effect"
import type { InvalidRequest } from "../../domain/Failure.ts"
import type { VideoAsk } from "../../domain/Video.ts"
import {
  field,
  isAbsent,
  isArray,
  isObject,
  isOne,
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

const n = field("n", isOne, "1")

const wholeNumber = /^-?\d{1,400}$/

/** Lengths that no model has are moved to one that it has, however far they are off. */
const within = (seconds: number): number =>
  Math.min(Math.max(seconds, Number.MIN_SAFE_INTEGER), Number.MAX_SAFE_INTEGER)

const readSeconds = (body: JsonObject, name: "seconds" | "duration"): Read<number | undefined> => {
  const value = body[name]
  if (isAbsent(value)) return undefined
  if (isString(value) ? wholeNumber.test(value) : Number.isInteger(value)) return within(Number(value))
  return refuseAt(name, name, "must be an integer")
}

const readBody = (body: unknown): Read<VideoAsk> => {
  if (!isObject(body)) return refuse(null, "The body must be a JSON object.")
  const model = readText(body, "model")
  if (refused(model)) return model
  const prompt = readPrompt(body)
  if (refused(prompt)) return prompt
  const image = readReferences("image", body.image)
  if (refused(image)) return image
  const inputReference = readReferences("input_reference", body.input_reference)
  if (refused(inputReference)) return inputReference
  const seconds = readSeconds(body, "seconds")
  if (refused(seconds)) return seconds
  const duration = readSeconds(body, "duration")
  if (refused(duration)) return duration
  const problem = n.check(body)
  if (problem !== undefined) return problem
  return {
    model,
    prompt,
    seconds: seconds ?? duration,
    references: image.length > 0 ? image : inputReference
  }
}

/**
 * Reads the body of a video request, already parsed. The first thing wrong is the one reported, in an alias that is
 * overruled too; unknown fields are passed over.
 */
export const decodeVideoBody = (body: unknown): Either.Either<VideoAsk, InvalidRequest> => {
  const read = readBody(body)
  return refused(read) ? Either.left(read) : Either.right(read)
}

const asList = (value: unknown): ReadonlyArray<unknown> => {
  if (isAbsent(value)) return []
  return isArray(value) ? value : [value]
}

/** The body that a form stands for: what is no text in JSON is none here, and files are bytes. */
export const videoForm = (parts: ReadonlyArray<Part>): JsonObject => {
  const { "input_reference[file_id]": file_id, "input_reference[image_url]": image_url, ...body } = formObject(parts)
  const named = isAbsent(file_id) && isAbsent(image_url) ? [] : [{ file_id, image_url }]
  return {
    ...body,
    n: body.n === "1" ? 1 : body.n,
    input_reference: [...asList(body.input_reference), ...named]
  }
}
