import { Data, Predicate } from "effect"
import { fromBase64 } from "../../services/media/Base64.ts"
import { asText, type Fields } from "../client/Json.ts"

export type Decoded = Data.TaggedEnum<{
  Bytes: { readonly bytes: Uint8Array; readonly revisedPrompt: string | undefined }
  Url: { readonly url: string; readonly revisedPrompt: string | undefined }
  Error: { readonly body: string }
  Moderated: {}
  /** Without a word of the response. */
  Broken: { readonly what: string }
}>
export const Decoded = Data.taggedEnum<Decoded>()

const decodeBytes = (text: string, revisedPrompt: string | undefined): Decoded => {
  const bytes = fromBase64(text.replace(dataUrl, ""))
  if (bytes === undefined) return Decoded.Broken({ what: "a picture that is no base64" })
  return bytes.length === 0 ? Decoded.Broken({ what: "an empty picture" }) : Decoded.Bytes({ bytes, revisedPrompt })
}

const missing = "an answer without a picture"
const dataUrl = /^data:[^,]{0,200};base64,/i

const decodeItem = (item: Fields): Decoded | undefined => {
  if (item.error) return Decoded.Error({ body: JSON.stringify({ error: item.error }) })
  if (item.respect_moderation === false) return Decoded.Moderated()
  const revisedPrompt = asText(item.revised_prompt) || undefined
  const text = asText(item.b64_json)
  const url = asText(item.url)
  if (text !== "") return decodeBytes(text, revisedPrompt)
  if (url === "") return undefined
  return dataUrl.test(url) ? decodeBytes(url, revisedPrompt) : Decoded.Url({ url, revisedPrompt })
}

export const decodeImage = (body: unknown): Decoded => {
  if (!Predicate.isRecord(body)) return Decoded.Broken({ what: "an answer that is no JSON object" })
  if (body.error) return Decoded.Error({ body: JSON.stringify({ error: body.error }) })
  if (!Array.isArray(body.data)) {
    const { code, message } = body
    return code === undefined
      ? Decoded.Broken({ what: missing })
      : Decoded.Error({ body: JSON.stringify({ code, message }) })
  }
  if (body.respect_moderation === false) return Decoded.Moderated()
  for (const item of body.data) {
    const found = Predicate.isRecord(item) ? decodeItem(item) : undefined
    if (found !== undefined) return found
  }
  return Decoded.Broken({ what: missing })
}
