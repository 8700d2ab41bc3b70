import type { ProviderAccount } from "../../domain/Model.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import { type Classification, classify as classifyConvention } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { moderationMessage } from "../client/HostWords.ts"
import { asFields, asRecords, asText, parsePruned } from "../client/Json.ts"
import { toLoggable } from "../client/Upstream.ts"

/** Models have no code for refused content, only their own words. */
const moderated =
  /\bnsfw\b|(?<!case[- ])\bsensitive\b|\bE005\b|content (was |has been )?flagged|moderation|safety (system|filter|polic|guideline)|(content|usage) polic|responsible ai|risk control/i

export const predictionFailure = (account: ProviderAccount, status: number, error: string): ProviderFailure =>
  new ProviderFailure({
    class: moderated.test(error) || moderationMessage.test(error) ? "moderation" : "retry",
    status,
    detail: toLoggable(account, `the prediction failed: ${error}`)
  })

interface Refusal {
  readonly text: string
  readonly fields: ReadonlyArray<string>
}

const readRefusal = ({ body }: UpstreamResponse): Refusal => {
  const { detail, invalid_fields, title } = asFields(parsePruned(body))
  const text = [asText(title), asText(detail)].join(" ").trim()
  const listed = asRecords(invalid_fields).map(({ field }) => asText(field))
  return { text, fields: [...listed, ...(text.match(/\binput\.[\w.]+/g) ?? [])].flatMap((path) => path.split(".")) }
}

const imageField = /^([a-z]+_)*(image|images|image_input)(_\d+)?$/
/** Fields about pictures that hold none. */
const imageCount = /(max|number_of|num)_images$/

const resets = /resets in ~?(\d+(?:\.\d+)?)\s?s\b/i

const classify = (response: UpstreamResponse, { fields, text }: Refusal, nowMillis: number): Classification => {
  const usual = classifyConvention(response, nowMillis, "image")
  if (usual.class === "limit") {
    const [, seconds] = resets.exec(text) ?? []
    const inText = seconds === undefined ? undefined : Number(seconds)
    return { ...usual, retryAfterSeconds: usual.retryAfterSeconds ?? inText }
  }
  if (usual.class !== "request") return usual
  if (moderated.test(text)) return { ...usual, class: "moderation" }
  // An unknown model, or one that this account may not run.
  if (/version does not exist|not permitted/i.test(text)) return { ...usual, class: "retry" }
  const image = fields.some((field) => imageField.test(field) && !imageCount.test(field))
  return image ? { ...usual, param: "image" } : usual
}

export const decodeFailure = (
  account: ProviderAccount,
  response: UpstreamResponse,
  nowMillis: number
): ProviderFailure => {
  const refusal = readRefusal(response)
  return new ProviderFailure({
    ...classify(response, refusal, nowMillis),
    status: response.status,
    detail: toLoggable(account, `${response.status} ${refusal.text || response.body}`)
  })
}
