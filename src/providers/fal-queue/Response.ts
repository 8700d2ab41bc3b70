import { Either, Predicate } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { ProviderFailure } from "../../services/routing/Provider.ts"
import { amendFailure, protocolFailure } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, asList, asText, parsePruned } from "../client/Json.ts"
import { isSuccess } from "../client/UpstreamResponse.ts"
import { type Handle, isInside, readId, rebase } from "../jobs/Handle.ts"
import { isFailed, type Media, type Progress, type Reported } from "../jobs/Progress.ts"
import { decodeFailure, isEarly, isOutcome } from "./Failure.ts"

const namespaces = new Set(["workflows", "comfy"])

/** As fal's own client does: paths below an app's name are not part of the address. */
const usualPath = (model: string, id: string): string => {
  const words = model.split("/")
  return `/${words.slice(0, namespaces.has(words[0] ?? "") ? 3 : 2).join("/")}/requests/${encodeURIComponent(id)}`
}

export const decodeHandle = (account: ProviderAccount, body: unknown, model: string): Handle | undefined => {
  const { cancel_url, request_id, response_url, status_url } = asFields(body)
  const id = readId(request_id)
  if (id === undefined) return undefined
  const own = usualPath(model, id)
  if (!isInside(account, own)) return undefined
  return {
    id,
    status: rebase(account, status_url) ?? `${own}/status`,
    result: rebase(account, response_url) ?? own,
    cancel: rebase(account, cancel_url) ?? `${own}/cancel`
  }
}

export const decodeProgress = (account: ProviderAccount, response: UpstreamResponse): Reported | undefined => {
  const { error, status } = asFields(parsePruned(response.body))
  if (typeof status !== "string") return undefined
  const hasFailed = isFailed(status) || (status === "COMPLETED" && Boolean(error))
  if (!hasFailed && status === "COMPLETED") return { state: "completed" }
  if (status === "IN_QUEUE") return { state: "queued" }
  if (status === "IN_PROGRESS") return { state: "in_progress" }
  if (!hasFailed) return { state: "unknown", status }
  const failure = decodeFailure(account, response, 0)
  return { state: "failed", failure: amendFailure(failure, { detail: `${status}: ${failure.detail}` }) }
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
  const failWith = (failure: ProviderFailure) => Either.right({ state: "failed", failure } as const)
  if (!isSuccess(response)) {
    if (isEarly(response)) return Either.right({ state: "in_progress" })
    return isOutcome(response, refusal) ? failWith(refusal) : Either.left(refusal)
  }
  const { status } = response
  const body = parsePruned(response.body)
  if (body === undefined) return Either.left(protocolFailure(account, status, "no JSON"))
  const fields = asFields(body)
  if (asList(fields.has_nsfw_concepts).includes(true)) {
    return failWith(new ProviderFailure({ class: "moderation", status, detail: "has_nsfw_concepts" }))
  }
  const media = decodeMedia(body)
  if (media !== undefined) return Either.right({ state: "done", media })
  const isPending = fields.status === "IN_QUEUE" || fields.status === "IN_PROGRESS"
  return isPending ? Either.right({ state: "in_progress" }) : failWith(refusal)
}

export const isCompleted = (body: unknown): boolean => Predicate.isRecord(body) && body.status === "ALREADY_COMPLETED"
