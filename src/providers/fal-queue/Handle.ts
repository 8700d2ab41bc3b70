import { Predicate } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { type Handle, isInside, rebased } from "../jobs/Handle.ts"

const namespaces = new Set(["workflows", "comfy"])

/** Where fal's own client looks for a job: an app's paths below its name are not part of the address. */
const usual = (model: string, id: string): string => {
  const words = model.split("/")
  return `/${words.slice(0, namespaces.has(words[0] ?? "") ? 3 : 2).join("/")}/requests/${encodeURIComponent(id)}`
}

/** What a submit's answer says of its job; undefined where it names none. */
export const handleIn = (account: ProviderAccount, model: string, body: unknown): Handle | undefined => {
  if (!Predicate.isRecord(body)) return undefined
  const { cancel_url, request_id, response_url, status_url } = body
  if (typeof request_id !== "string" || request_id === "") return undefined
  const own = usual(model, request_id)
  if (!isInside(account, own)) return undefined
  return {
    id: request_id,
    status: rebased(account, status_url) ?? `${own}/status`,
    result: rebased(account, response_url) ?? own,
    cancel: rebased(account, cancel_url) ?? `${own}/cancel`
  }
}
