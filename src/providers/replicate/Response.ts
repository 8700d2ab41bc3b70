import type { ProviderAccount } from "../../domain/Model.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, asText, parsePruned } from "../client/Json.ts"
import { type Handle, isInside, readId, rebase } from "../jobs/Handle.ts"
import { isFailed, type Progress, type Reported } from "../jobs/Progress.ts"
import { predictionFailure } from "./Failure.ts"

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
