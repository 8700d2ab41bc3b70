import { Either } from "effect"
import type { VideoAsk } from "../../src/domain/Video.ts"
import { refused } from "../../src/http/body/Fields.ts"
import { readForm } from "../../src/http/body/Multipart.ts"
import { decodeVideoBody, videoForm } from "../../src/http/videos/VideoBody.ts"
import { formOf, formType } from "./Forms.ts"
import { assertAgreement, remember } from "./Published.ts"

/** Decodes a body, and proves that the published schema says the same of it. */
const decode = (body: unknown) => {
  const decoded = decodeVideoBody(body)
  const message = Either.isLeft(decoded) ? decoded.left.message : undefined
  assertAgreement({ json: "VideoCreateRequest", form: "VideoCreateForm" }, body, message)
  return decoded
}

/** What a body that must be accepted is read as. */
export const taken = (body: unknown): VideoAsk =>
  Either.getOrThrowWith(decode(body), ({ message }) => new Error(message))

/** Tag, param and message of the refusal of a body. */
export const refusal = (body: unknown) => {
  const read = decode(body)
  return Either.isLeft(read) ? [read.left._tag, read.left.param, read.left.message] : "accepted"
}

/** The body that a form of these bytes stands for. */
export const bodyOfForm = (type: string, form: Buffer) => {
  const read = readForm(type, form)
  if (refused(read)) throw new Error(read.message)
  return remember(videoForm(read), read)
}

/** The body that a form of these parts stands for. */
export const bodyOf = (parts: ReadonlyArray<Uint8Array>, boundary?: string) =>
  bodyOfForm(formType(boundary), formOf(parts, boundary))
