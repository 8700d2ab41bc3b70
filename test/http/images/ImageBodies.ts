import { chooseVariant, type ImageParams } from "../../../src/domain/Image.ts"
import type { ImageModel } from "../../../src/domain/Model.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { decodeImageBody, imageForm } from "../../../src/http/images/ImageBody.ts"
import { accountOf, imageRouteOf } from "../../providers/jobs/Hosts.ts"
import { formOf, formType } from "../body/Forms.ts"
import { agreeing, formBodies } from "../openapi/Published.ts"

export const base = { model: "m", prompt: "a cat" }
export const gif = "R0lGODlhAQABAAAAACw="
export const gifBytes = Buffer.from(gif, "base64")

const variant = (resolution: "1K" | "2K" | "4K") => ({
  resolution,
  shape: undefined,
  price: NanoUsd(1n),
  official: undefined
})

/** A model with every capability. */
const capableModel: ImageModel = {
  id: "m",
  surface: "image",
  created: 0,
  routes: [imageRouteOf({ provider: accountOf("fake", "https://a.test"), model: "m", editModel: "m" })],
  variants: [variant("1K"), variant("2K"), variant("4K")],
  edit: true,
  maxReferences: 8
}

const agreementFor = (json: string, needsReference: boolean) =>
  agreeing(
    { json, form: "ImageEditForm" },
    (body) => decodeImageBody(body, { needsReference }),
    (params: ImageParams) => chooseVariant(capableModel, params)
  )

export const { refusal, taken: decodeBody } = agreementFor("ImageGenerationRequest", false)
export const { refusal: editRefusal } = agreementFor("ImageEditRequest", true)

const bodyOfForm = formBodies(imageForm)

/** Returns the body that a form with these parts decodes to. */
export const bodyOf = (parts: ReadonlyArray<Uint8Array>, boundary?: string) =>
  bodyOfForm(formType(boundary), formOf(parts, boundary))
