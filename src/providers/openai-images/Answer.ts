import { Data, Predicate } from "effect"
import { fromBase64 } from "../../services/media/Base64.ts"

/** What an answer holds: the picture or where it is, an error, or nothing that this wire knows. */
export type Read = Data.TaggedEnum<{
  Bytes: { readonly bytes: Uint8Array; readonly revisedPrompt: string | undefined }
  Url: { readonly url: string; readonly revisedPrompt: string | undefined }
  /** A JSON text in the shape of an error answer. */
  Error: { readonly body: string }
  Moderated: {}
  /** Says what is wrong, without a word of the answer. */
  Broken: { readonly what: string }
}>
export const Read = Data.taggedEnum<Read>()

const fromText = (text: string, revisedPrompt: string | undefined): Read => {
  const bytes = fromBase64(text)
  if (bytes === undefined) return Read.Broken({ what: "a picture that is no base64" })
  return bytes.length === 0 ? Read.Broken({ what: "an empty picture" }) : Read.Bytes({ bytes, revisedPrompt })
}

const filled = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined)

const missing = "an answer without a picture"
const dataUrl = /^data:[^,]{0,200};base64,/i

const ofItem = (item: Record<PropertyKey, unknown>): Read | undefined => {
  if (item.error) return Read.Error({ body: JSON.stringify({ error: item.error }) })
  if (item.respect_moderation === false) return Read.Moderated()
  const revisedPrompt = filled(item.revised_prompt)
  const text = filled(item.b64_json)
  if (text !== undefined) return fromText(text.replace(dataUrl, ""), revisedPrompt)
  const url = filled(item.url)
  if (url === undefined) return undefined
  return dataUrl.test(url) ? fromText(url.replace(dataUrl, ""), revisedPrompt) : Read.Url({ url, revisedPrompt })
}

/** Reads the body of a good answer, already parsed. */
export const read = (body: unknown): Read => {
  if (!Predicate.isRecord(body)) return Read.Broken({ what: "an answer that is no JSON object" })
  if (body.error) return Read.Error({ body: JSON.stringify({ error: body.error }) })
  if (!Array.isArray(body.data)) {
    const { code, message } = body
    return code === undefined ? Read.Broken({ what: missing }) : Read.Error({ body: JSON.stringify({ code, message }) })
  }
  if (body.respect_moderation === false) return Read.Moderated()
  for (const item of body.data) {
    const found = Predicate.isRecord(item) ? ofItem(item) : undefined
    if (found !== undefined) return found
  }
  return Read.Broken({ what: missing })
}
