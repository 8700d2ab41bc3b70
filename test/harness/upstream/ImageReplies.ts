import { pixel } from "../../clients/SandboxChat.ts"
import * as Upstream from "./FakeUpstream.ts"

/** A whole picture. */
export const painting = Buffer.from(pixel, "base64")

/** A whole picture of another kind. */
export const gif = Buffer.from("R0lGODlhAQABAIAAAAUEBAAAACwAAAAAAQABAAACAkQBADs=", "base64")

/** A provider's whole answer with a picture in it, full of what must not reach a client. */
export const painted = (bytes: Uint8Array = painting, more: object = {}) => ({
  created: 1,
  background: "hush",
  model: "vendor/hush-1",
  data: [{ b64_json: Buffer.from(bytes).toString("base64"), ...more }],
  usage: { input_tokens: 9, output_tokens: 272, total_tokens: 281 }
})

export const paints = (bytes?: Uint8Array, more?: object): Upstream.Reply => Upstream.json(200, painted(bytes, more))

export const generations = "/v1/images/generations"
export const edits = "/v1/images/edits"

export const asked = (model: string, more: object = {}) => ({ model, prompt: "a cat", ...more })
