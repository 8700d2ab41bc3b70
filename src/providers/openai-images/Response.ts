import { Effect, Predicate } from "effect"
import type { ImageRoute } from "../../domain/Model.ts"
import { fromBase64 } from "../../services/media/Base64.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import { hasFailedStatus, protocolFailure } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asCount, asFields, asRecords, asText, type Fields } from "../client/Json.ts"

/** A picture, or where it is. */
interface Found {
  readonly picture: Uint8Array | string
  readonly revisedPrompt: string | undefined
}

type Decoded = Effect.Effect<Found, ProviderFailure>

const dataUrl = /^data:[^,]{0,200};base64,/i

/** The tokens of the reference images, which the host bills in addition to the output. */
export const countInputImages = ({ usage }: Fields): number =>
  asCount(asFields(asFields(usage).input_tokens_details).image_tokens)

/** `fail` reads an error. */
export const makeDecoder = (
  { provider }: ImageRoute,
  { status }: UpstreamResponse,
  fail: (error: unknown) => Effect.Effect<never, ProviderFailure>
) => {
  /** Quotes nothing of the response. */
  const protocolError = (what: string) => protocolFailure(provider, status, what)
  const moderation = () => new ProviderFailure({ class: "moderation", status, detail: "moderated" })

  const decodeBytes = (text: string, revisedPrompt: string | undefined): Decoded => {
    const picture = fromBase64(text.replace(dataUrl, ""))
    if (picture === undefined) return protocolError("a picture that is no base64")
    return picture.length === 0 ? protocolError("an empty picture") : Effect.succeed({ picture, revisedPrompt })
  }

  const decodeItem = (item: Fields): Decoded | undefined => {
    if (item.error) return fail({ error: item.error })
    if (item.respect_moderation === false) return moderation()
    const revisedPrompt = asText(item.revised_prompt) || undefined
    const text = asText(item.b64_json)
    const url = asText(item.url)
    if (text !== "") return decodeBytes(text, revisedPrompt)
    if (url === "") return undefined
    return dataUrl.test(url) ? decodeBytes(url, revisedPrompt) : Effect.succeed({ picture: url, revisedPrompt })
  }

  return (body: unknown): Decoded => {
    if (!Predicate.isRecord(body)) return protocolError("an answer that is no JSON object")
    const { code, data, error, message, respect_moderation } = body
    if (error) return fail({ error })
    if (!Array.isArray(data) && code !== undefined) return fail({ code, message })
    if (hasFailedStatus(body)) return fail({ base_resp: body.base_resp })
    if (Array.isArray(data) && respect_moderation === false) return moderation()
    for (const item of asRecords(data)) {
      const found = decodeItem(item)
      if (found !== undefined) return found
    }
    return protocolError("an answer without a picture")
  }
}
