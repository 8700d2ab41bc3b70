import { Either } from "effect"
import type { ImageAsk } from "../../src/domain/Image.ts"
import { variantFor } from "../../src/domain/ImageRules.ts"
import type { ImageModel } from "../../src/domain/Model.ts"
import { NanoUsd } from "../../src/domain/Money.ts"
import { refused } from "../../src/http/body/Fields.ts"
import { readForm } from "../../src/http/body/Multipart.ts"
import { decodeImageBody, imageForm } from "../../src/http/images/ImageBody.ts"
import { formOf, formType } from "./Forms.ts"
import { assertAgreement, remember } from "./Published.ts"

export const base = { model: "m", prompt: "a cat" }
/** The smallest thing that is decoded at all. */
export const gif = "R0lGODlhAQABAAAAACw="
export const gifBytes = Buffer.from(gif, "base64")

const variant = (resolution: "1K" | "2K" | "4K") => ({ resolution, price: NanoUsd(1n), official: undefined })

/** A model that can do all that some model can. */
const able: ImageModel = {
  id: "m",
  surface: "image",
  created: 0,
  routes: [],
  variants: [variant("1K"), variant("2K"), variant("4K")],
  edit: true
}

/** Decodes a body, and proves that the published schema says the same of it. */
const decode = (body: unknown, needsReference: boolean) => {
  const decoded = decodeImageBody(body, { needsReference })
  const judged = Either.flatMap(decoded, (ask) => variantFor(able, ask))
  const json = needsReference ? "ImageEditRequest" : "ImageGenerationRequest"
  const message = Either.isLeft(judged) ? judged.left.message : undefined
  assertAgreement({ json, form: "ImageEditForm" }, body, message)
  return decoded
}

const verdict = (result: ReturnType<typeof decodeImageBody>) =>
  Either.isLeft(result) ? [result.left._tag, result.left.param, result.left.message] : "accepted"

/** What a body that must be accepted is read as. */
export const taken = (body: unknown): ImageAsk =>
  Either.getOrThrowWith(decode(body, false), ({ message }) => new Error(message))

/** Tag, param and message of the refusal of a generation, or of an edit. */
export const refusal = (body: unknown) => verdict(decode(body, false))
export const editRefusal = (body: unknown) => verdict(decode(body, true))

/** The body that a form of these parts stands for. */
export const bodyOf = (parts: ReadonlyArray<Uint8Array>, boundary?: string) => {
  const read = readForm(formType(boundary), formOf(parts, boundary))
  if (refused(read)) throw new Error(read.message)
  return remember(imageForm(read), read)
}
