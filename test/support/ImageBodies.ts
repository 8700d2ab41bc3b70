import { Either } from "effect"
import type { ImageAsk } from "../../src/domain/Image.ts"
import { refused } from "../../src/http/Fields.ts"
import { decodeImageBody, imageForm } from "../../src/http/ImageBody.ts"
import { readForm } from "../../src/http/Multipart.ts"
import { formOf, formType } from "./Forms.ts"

export const base = { model: "m", prompt: "a cat" }
/** The smallest thing that is decoded at all. */
export const gif = "R0lGODlhAQABAAAAACw="
export const gifBytes = Buffer.from(gif, "base64")

const verdict = (result: ReturnType<typeof decodeImageBody>) =>
  Either.isLeft(result) ? [result.left._tag, result.left.param, result.left.message] : "accepted"

/** What a body that must be accepted is read as. */
export const taken = (body: unknown): ImageAsk =>
  Either.getOrThrowWith(decodeImageBody(body, { needsReference: false }), ({ message }) => new Error(message))

/** Tag, param and message of the refusal of a generation, or of an edit. */
export const refusal = (body: unknown) => verdict(decodeImageBody(body, { needsReference: false }))
export const editRefusal = (body: unknown) => verdict(decodeImageBody(body, { needsReference: true }))

/** The body that a form of these parts stands for. */
export const bodyOf = (parts: ReadonlyArray<Uint8Array>, boundary?: string) => {
  const read = readForm(formType(boundary), formOf(parts, boundary))
  if (refused(read)) throw new Error(read.message)
  return imageForm(read)
}
