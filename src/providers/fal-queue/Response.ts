import { Either, Predicate } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import { protocolFailure } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, asList, asText, parseJson } from "../client/Json.ts"
import { isSuccess } from "../client/UpstreamResponse.ts"
import { type Handle, isInside, rebase } from "../jobs/Handle.ts"
import type { Media, Progress } from "../jobs/JobAdapter.ts"
import { isEarly, isOutcome } from "./Failure.ts"

const namespaces = new Set(["workflows", "comfy"])

/** As fal's own client does: paths below an app's name are not part of the address. */
const usualPath = (model: string, id: string): string => {
  const words = model.split("/")
  return `/${words.slice(0, namespaces.has(words[0] ?? "") ? 3 : 2).join("/")}/requests/${encodeURIComponent(id)}`
}

export const decodeHandle = (account: ProviderAccount, body: unknown, model: string): Handle | undefined => {
  const { cancel_url, request_id, response_url, status_url } = asFields(body)
  const id = asText(request_id)
  const own = usualPath(model, id)
  if (id === "" || !isInside(account, own)) return undefined
  return {
    id,
    status: rebase(account, status_url) ?? `${own}/status`,
    result: rebase(account, response_url) ?? own,
    cancel: rebase(account, cancel_url) ?? `${own}/cancel`
  }
}

export const decodeProgress = (_: ProviderAccount, { body }: UpstreamResponse): Progress | "completed" | undefined => {
  const { status } = asFields(parseJson(body))
  if (typeof status !== "string") return undefined
  return status === "COMPLETED" ? "completed" : { state: status === "IN_PROGRESS" ? "in_progress" : "queued" }
}

const decodeMedia = (body: unknown): Media | undefined => {
  const { image, images, revised_prompt, video, videos } = asFields(body)
  const candidates = [video, asList(videos)[0], asList(images)[0], image]
  const url = candidates.map((candidate) => asText(asFields(candidate).url)).find((found) => found !== "")
  return url === undefined
    ? undefined
    : { url, revisedPrompt: typeof revised_prompt === "string" ? revised_prompt : undefined }
}

export const decodeResult = (
  account: ProviderAccount,
  response: UpstreamResponse,
  refusal: ProviderFailure
): Either.Either<Progress, ProviderFailure> => {
  const failed = (failure: ProviderFailure) => Either.right({ state: "failed", failure } as const)
  if (!isSuccess(response)) {
    if (isEarly(response)) return Either.right({ state: "in_progress" })
    return isOutcome(response, refusal) ? failed(refusal) : Either.left(refusal)
  }
  const { status } = response
  const body = parseJson(response.body)
  if (body === undefined) return Either.left(protocolFailure(account, status, "no JSON"))
  const fields = asFields(body)
  if (asList(fields.has_nsfw_concepts).includes(true)) {
    return failed(new ProviderFailure({ class: "moderation", status, detail: "has_nsfw_concepts" }))
  }
  const media = decodeMedia(body)
  if (media !== undefined) return Either.right({ state: "done", media })
  const isPending = fields.status === "IN_QUEUE" || fields.status === "IN_PROGRESS"
  return isPending ? Either.right({ state: "in_progress" }) : failed(refusal)
}

export const isCompleted = (body: unknown): boolean => Predicate.isRecord(body) && body.status === "ALREADY_COMPLETED"
