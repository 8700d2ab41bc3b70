import { decodeVideoBody, videoForm } from "../../../src/http/videos/VideoBody.ts"
import { formOf, formType } from "../body/Forms.ts"
import { agreeing, formBodies } from "../openapi/Published.ts"

export const base = { model: "m", prompt: "a cat" }

export const { refusal, taken: decodeBody } = agreeing(
  { json: "VideoCreateRequest", form: "VideoCreateForm" },
  decodeVideoBody
)

/** Returns the body that a form of these bytes decodes to. */
export const bodyOfForm = formBodies(videoForm)

/** Returns the body that a form with these parts decodes to. */
export const bodyOf = (parts: ReadonlyArray<Uint8Array>, boundary?: string) =>
  bodyOfForm(formType(boundary), formOf(parts, boundary))
