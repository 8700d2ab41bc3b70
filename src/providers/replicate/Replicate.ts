import { Schema } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { jsonChunks } from "../../services/media/Chunks.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import {
  type Classification,
  classify as classifyConvention,
  type DecodeFailure,
  moderationMessage
} from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, asRecords, asText, parsePruned } from "../client/Json.ts"
import { makeOptions, optional, withDefault } from "../client/RouteOptions.ts"
import { bearer, toLoggable } from "../client/Upstream.ts"
import {
  type Handle,
  isFailed,
  isInside,
  type JobFormat,
  makeJobProvider,
  type Progress,
  type Reported,
  readId,
  rebase
} from "../jobs/JobAdapter.ts"
import { commonOptions, InputFields, type JobOptions } from "../jobs/JobInput.ts"

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

export const decodeFailure: DecodeFailure = (account, response, nowMillis) => {
  const refusal = readRefusal(response)
  return new ProviderFailure({
    ...classify(response, refusal, nowMillis),
    status: response.status,
    detail: toLoggable(account, `${response.status} ${refusal.text || response.body}`)
  })
}

export const decodeHandle = (account: ProviderAccount, body: unknown): Handle | undefined => {
  const { id: given, urls } = asFields(body)
  const id = readId(given)
  if (id === undefined) return undefined
  const own = `/v1/predictions/${encodeURIComponent(id)}`
  if (!isInside(account, own)) return undefined
  const { cancel, get } = asFields(urls)
  const status = rebase(account, get) ?? own
  return { id, status, result: status, cancel: rebase(account, cancel) ?? `${own}/cancel` }
}

const errorText = (error: unknown): string => (typeof error === "string" ? error : JSON.stringify(error ?? null))

const progressBar = /^\s*(\d{1,3})%\s*\|.*\|\s*\d+\/\d+/

/** Reads the newest progress bar, as the vendor's client does. */
const percentIn = (logs: string): number | undefined => {
  const bar = logs.split(/[\r\n]+/).findLast((line) => progressBar.test(line))
  return bar === undefined ? undefined : Number.parseInt(bar, 10)
}

/** Undefined where the response does not say; the first of several outputs counts. */
export const decodeProgress = (
  account: ProviderAccount,
  response: Pick<UpstreamResponse, "body" | "status">
): Reported | undefined => {
  const { error, logs, output, status } = asFields(parsePruned(response.body))
  if (typeof status !== "string") return undefined
  const failWith = (what: string): Progress => {
    return { state: "failed", failure: predictionFailure(account, response.status, what) }
  }
  switch (status) {
    case "succeeded": {
      const url = asText(Array.isArray(output) ? output[0] : output)
      return url === ""
        ? failWith(error ? errorText(error) : "it succeeded without an output")
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

/** True of most models; `image_list` is for the others. */
const isUsuallyList = (field: string): boolean => field.endsWith("s") || field === "image_input"

export const options = makeOptions(Options, ({ image_list, input, ...given }): JobOptions => {
  return { ...given, fixed: input, isList: (field) => image_list ?? isUsuallyList(field) }
})

/** A picture whose response is lost must not run, and be paid for, much longer. */
const pictureHeaders = { prefer: "wait=30", "cancel-after": "5m" }
const clipHeaders = { prefer: "respond-async" }

export const format: JobFormat = {
  name: "Replicate",
  options,
  pictureField: "image_input",
  clipField: "image",
  authorization: bearer,
  encode: ({ input, model }, mark, isAwaited) => {
    const headers = isAwaited ? pictureHeaders : clipHeaders
    // `owner/name`, or a community model's `owner/name:version`.
    const [name = "", version] = model.split(":")
    return version === undefined
      ? { path: `/v1/models/${name}/predictions`, headers, body: jsonChunks({ input }, mark) }
      : { path: "/v1/predictions", headers, body: jsonChunks({ version, input }, mark) }
  },
  decodeHandle,
  decodeProgress,
  decodeFailure,
  cancelMethod: "POST"
}

export const make = makeJobProvider("replicate", format)
