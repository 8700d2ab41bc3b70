import { Clock, Effect, Predicate } from "effect"
import type { ProviderAccount, RouteBase } from "../../domain/Model.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import { hostError, parse, refusal } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"

type ImageParam = "messages" | "image"

/** What the host says of fields that only the gateway, or the route's options, can have put there. */
const ownFields = /thinking[ _]?(level|budget|config)|thinking (is|mode)|unknown name|cannot find field/i
const moderated = /responsible ai|sensitive words/i
const depleted = /credits are depleted|spend(ing)? (cap|limit)/i
const inMessages = /ending with a model turn|function (call|response) turn|function response parts/i
const picture = /\bimages?\b|mime ?type/i
const seconds = /^(\d{1,9}(?:\.\d{1,9})?)s$/

const detailsIn = (body: unknown): ReadonlyArray<Record<PropertyKey, unknown>> => {
  const outer: unknown = Array.isArray(body) ? body[0] : body
  const error = Predicate.isRecord(outer) ? outer.error : undefined
  return Predicate.isRecord(error) && Array.isArray(error.details) ? error.details.filter(Predicate.isRecord) : []
}

/** Of the host's `RetryInfo`, which has the delay as `7.5s`. */
const retryDelay = (body: unknown): number | undefined => {
  for (const { retryDelay } of detailsIn(body)) {
    const digits = typeof retryDelay === "string" ? seconds.exec(retryDelay)?.[1] : undefined
    if (digits !== undefined) return Number(digits)
  }
  return undefined
}

const classOf = (known: FailureClass, message: string): FailureClass => {
  if (known === "limit" && depleted.test(message)) return "account"
  if (known !== "request") return known
  if (moderated.test(message)) return "moderation"
  return ownFields.test(message) ? "retry" : known
}

/** The failure that an answer means; `imageParam` is the field that carries pictures on this surface. */
export const failureOf = (
  account: ProviderAccount,
  answer: UpstreamAnswer,
  nowMillis: number,
  imageParam: ImageParam
): ProviderFailure => {
  const failure = refusal(account, answer, nowMillis, imageParam)
  const body = parse(answer.body)
  const message = hostError(body)?.message ?? ""
  const kind = classOf(failure.class, message)
  const param = picture.test(message) ? imageParam : inMessages.test(message) ? "messages" : undefined
  return new ProviderFailure({
    class: kind,
    status: failure.status,
    retryAfterSeconds: failure.retryAfterSeconds ?? retryDelay(body),
    param: kind === "request" ? param : undefined,
    detail: failure.detail
  })
}

export const refused = (
  { provider }: RouteBase,
  answer: UpstreamAnswer,
  imageParam: ImageParam
): Effect.Effect<never, ProviderFailure> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => Effect.fail(failureOf(provider, answer, now, imageParam)))

/** Reasons by which the host says that it shows no more of what it made, or none of it. */
export const isFiltered = (reason: string): boolean =>
  /^(IMAGE_)?(SAFETY|PROHIBITED_CONTENT)$|^(BLOCKLIST|SPII|MODEL_ARMOR|JAILBREAK)$/.test(reason)

export const moderation = (status: number, reason: unknown): ProviderFailure =>
  new ProviderFailure({ class: "moderation", status, detail: `moderated: ${String(reason).slice(0, 100)}` })

/** Why a prompt was refused as a whole. */
export const blockIn = (body: Record<PropertyKey, unknown>): string | undefined => {
  const feedback = Predicate.isRecord(body.promptFeedback) ? body.promptFeedback : {}
  return typeof feedback.blockReason === "string" && feedback.blockReason !== "" ? feedback.blockReason : undefined
}
