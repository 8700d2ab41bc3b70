import { decodeVideoBody, videoForm } from "../../../src/http/videos/VideoBody.ts"
import { formOf, formType } from "../body/Forms.ts"
import { agreeing, formBodies } from "../openapi/Published.ts"

export const base = { model: "m", prompt: "a cat" }

export const { refusal, taken } = agreeing({ json: "VideoCreateRequest", form: "VideoCreateForm" }, decodeVideoBody)

/** The body that a form of these bytes stands for. */
export const bodyOfForm = formBodies(videoForm)

/** The body that a form of these parts stands for. */
export const bodyOf = (parts: ReadonlyArray<Uint8Array>, boundary?: string) =>
  bodyOfForm(formType(boundary), formOf(parts, boundary))
