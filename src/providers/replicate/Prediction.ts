import { Predicate } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { type Handle, isInside, rebased } from "../jobs/Handle.ts"
import type { Progress } from "../jobs/Progress.ts"
import { failed } from "./Failure.ts"

/** A good answer about a prediction, read as JSON. */
export interface Told {
  readonly status: number
  readonly body: unknown
}

/** What an answer says of its prediction; undefined where it names none. */
export const handleIn = (account: ProviderAccount, { body }: Told): Handle | undefined => {
  if (!Predicate.isRecord(body) || typeof body.id !== "string" || body.id === "") return undefined
  const own = `/v1/predictions/${encodeURIComponent(body.id)}`
  if (!isInside(account, own)) return undefined
  const urls = Predicate.isRecord(body.urls) ? body.urls : {}
  const status = rebased(account, urls.get) ?? own
  return { id: body.id, status, result: status, cancel: rebased(account, urls.cancel) ?? `${own}/cancel` }
}

const errorText = (error: unknown): string => (typeof error === "string" ? error : JSON.stringify(error ?? null))

/** The URL of the first thing that a model gave: one, or a list. */
const urlIn = (output: unknown): string | undefined => {
  const first: unknown = Array.isArray(output) ? output[0] : output
  return typeof first === "string" && first !== "" ? first : undefined
}

/** Where a prediction stands; undefined where the answer does not say. */
export const progressIn = (account: ProviderAccount, { body, status }: Told): Progress | undefined => {
  if (!Predicate.isRecord(body) || typeof body.status !== "string") return undefined
  switch (body.status) {
    case "succeeded": {
      const url = urlIn(body.output)
      return url === undefined
        ? { state: "failed", failure: failed(account, status, "it succeeded without an output") }
        : { state: "done", media: { url, revisedPrompt: undefined } }
    }
    case "failed":
      return { state: "failed", failure: failed(account, status, errorText(body.error)) }
    case "canceled":
    case "aborted":
      return { state: "failed", failure: failed(account, status, body.status) }
    case "processing":
      return { state: "in_progress" }
    default:
      return { state: "queued" }
  }
}
