import { Schema } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { jsonChunks } from "../../services/media/Base64.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import {
  type Classification,
  classify as classifyDefault,
  type DecodeFailure,
  moderationMessage
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, asRecords, asText, parsePruned } from "../client/JsonFields.ts"
import { makeOptions, optional, withDefault } from "../client/RouteOptions.ts"
import { bearer, toLoggable } from "../client/Upstream.ts"
import {
  commonOptions,
  type Handle,
  InputFields,
  isBelowBaseUrl,
  isFailed,
  type JobFormat,
  type JobOptions,
  makeJobProvider,
  type Progress,
  type ReportedProgress,
  readId,
  toAccountPath
} from "../jobs/JobAdapter.ts"

/** Models have no code for refused content. Their messages differ. */
const moderationPattern =
  /\bnsfw\b|(?<!case[- ])\bsensitive\b|\bE005\b|content (was |has been )?flagged|moderation|safety (system|filter|polic|guideline)|(content|usage) polic|responsible ai|risk control/i

export const predictionFailure = (account: ProviderAccount, status: number, error: string): ProviderFailure =>
  new ProviderFailure({
    class: moderationPattern.test(error) || moderationMessage.test(error) ? "moderation" : "retry",
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
  const invalidFields = asRecords(invalid_fields).map(({ field }) => asText(field))
  return {
    text,
    fields: [...invalidFields, ...(text.match(/\binput\.[\w.]+/g) ?? [])].flatMap((path) => path.split("."))
  }
}

const imageField = /^([a-z]+_)*(image|images|image_input)(_\d+)?$/
/** Fields that count images and contain none. */
const imageCount = /(max|number_of|num)_images$/

const resetPattern = /resets in ~?(\d+(?:\.\d+)?)\s?s\b/i

const classify = (response: UpstreamResponse, { fields, text }: Refusal, nowMillis: number): Classification => {
  const classification = classifyDefault(response, nowMillis, "image")
  if (classification.class === "limit") {
    const [, seconds] = resetPattern.exec(text) ?? []
    const secondsInText = seconds === undefined ? undefined : Number(seconds)
    return { ...classification, retryAfterSeconds: classification.retryAfterSeconds ?? secondsInText }
  }
  if (classification.class !== "request") return classification
  if (moderationPattern.test(text)) return { ...classification, class: "moderation" }
  // The model is unknown, or this account may not run it.
  if (/version does not exist|not permitted/i.test(text)) return { ...classification, class: "retry" }
  const concernsImage = fields.some((field) => imageField.test(field) && !imageCount.test(field))
  return concernsImage ? { ...classification, param: "image" } : classification
}

export const decodeFailure: DecodeFailure = (account, response, nowMillis) => {
  const refusal = readRefusal(response)
  return new ProviderFailure({
    ...classify(response, refusal, nowMillis),
    status: response.status,
    detail: toLoggable(account, `${response.status} ${refusal.text || response.body}`)
  })
}

export const decodeHandle = (account: ProviderAccount, body: unknown): Handle | undefined => {
  const { id: sentId, urls } = asFields(body)
  const id = readId(sentId)
  if (id === undefined) return undefined
  const path = `/v1/predictions/${encodeURIComponent(id)}`
  if (!isBelowBaseUrl(account, path)) return undefined
  const { cancel, get } = asFields(urls)
  const status = toAccountPath(account, get) ?? path
  return { id, status, result: status, cancel: toAccountPath(account, cancel) ?? `${path}/cancel` }
}

const errorText = (error: unknown): string => (typeof error === "string" ? error : JSON.stringify(error ?? null))

const progressBar = /^\s*(\d{1,3})%\s*\|.*\|\s*\d+\/\d+/

/** Reads the last progress bar, like the vendor's client. */
const percentIn = (logs: string): number | undefined => {
  const bar = logs.split(/[\r\n]+/).findLast((line) => progressBar.test(line))
  return bar === undefined ? undefined : Number.parseInt(bar, 10)
}

/** Returns undefined if there is no status. Reads only the first of several outputs. */
export const decodeProgress = (
  account: ProviderAccount,
  response: Pick<UpstreamResponse, "body" | "status">
): ReportedProgress | undefined => {
  const { error, logs, output, status } = asFields(parsePruned(response.body))
  if (typeof status !== "string") return undefined
  const failWith = (detail: string): Progress => {
    return { state: "failed", failure: predictionFailure(account, response.status, detail) }
  }
  switch (status) {
    case "succeeded": {
      const url = asText(Array.isArray(output) ? output[0] : output)
      return url === ""
        ? failWith(error ? errorText(error) : "the job succeeded without an output")
        : { state: "done", media: { url, revisedPrompt: undefined } }
    }
    case "failed":
      return failWith(errorText(error))
    case "starting":
    case "queued":
      return { state: "queued" }
    case "processing":
      return { state: "in_progress", percent: percentIn(asText(logs)) }
    default:
      return isFailed(status) ? failWith(error ? errorText(error) : status) : { state: "unknown", status }
  }
}

const Options = Schema.Struct({
  ...commonOptions,
  image_list: optional(Schema.Boolean),
  input: withDefault(InputFields, {})
})

/** A guess that is right for most models. `image_list` overrides it. */
const isListByDefault = (field: string): boolean => field.endsWith("s") || field === "image_input"

export const options = makeOptions(Options, ({ image_list, input, ...common }): JobOptions => {
  return { ...common, fixedFields: input, isList: (field) => image_list ?? isListByDefault(field) }
})

/** `cancel-after` limits the cost of a job whose response is lost. */
const imageHeaders = { prefer: "wait=30", "cancel-after": "5m" }
const videoHeaders = { prefer: "respond-async" }

export const format: JobFormat = {
  name: "Replicate",
  optionsDecoder: options,
  imageField: "image_input",
  videoImageField: "image",
  authorization: bearer,
  encode: ({ input, model }, placeholder, isAwaited) => {
    const headers = isAwaited ? imageHeaders : videoHeaders
    // An official model is `owner/name`, a community model `owner/name:version`.
    const [name = "", version] = model.split(":")
    return version === undefined
      ? { path: `/v1/models/${name}/predictions`, headers, body: jsonChunks({ input }, placeholder) }
      : { path: "/v1/predictions", headers, body: jsonChunks({ version, input }, placeholder) }
  },
  decodeHandle,
  decodeProgress,
  decodeFailure,
  cancelMethod: "POST"
}

export const make = makeJobProvider("replicate", format)
