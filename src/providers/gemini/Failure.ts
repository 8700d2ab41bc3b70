import type { ProviderAccount } from "../../domain/Model.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import { amendFailure, decodeFailure as decodeConvention, readHostError } from "../client/Classification.ts"
import type { UpstreamResponse } from "../client/Exchange.ts"
import { asFields, asRecords, asText, type Fields, parseJson } from "../client/Json.ts"

/** What the host says of fields that only the gateway, or the route's options, can have put there. */
const ownFields = /thinking[ _]?(level|budget|config)|thinking (is|mode)|unknown name|cannot find field/i
const moderated = /responsible ai|sensitive words/i
const depleted = /credits are depleted|spend(ing)? (cap|limit)/i
const inMessages = /ending with a model turn|function (call|response) turn|function response parts/i
const picture = /\bimages?\b|mime ?type/i
const seconds = /^(\d{1,9}(?:\.\d{1,9})?)s$/

/** Of the host's `RetryInfo`, which has the delay as `7.5s`. */
const readRetryDelay = (body: unknown): number | undefined => {
  const { error } = asFields(Array.isArray(body) ? body[0] : body)
  for (const { retryDelay } of asRecords(asFields(error).details)) {
    const digits = seconds.exec(asText(retryDelay))?.[1]
    if (digits !== undefined) return Number(digits)
  }
  return undefined
}

const classify = (known: FailureClass, message: string): FailureClass => {
  if (known === "limit" && depleted.test(message)) return "account"
  if (known !== "request") return known
  if (moderated.test(message)) return "moderation"
  return ownFields.test(message) ? "retry" : known
}

/** The failure that a response means; `imageParam` is the field that carries pictures on this surface. */
export const decodeFailure = (
  account: ProviderAccount,
  response: UpstreamResponse,
  nowMillis: number,
  imageParam: "messages" | "image" = "messages"
): ProviderFailure => {
  const failure = decodeConvention(account, response, nowMillis, imageParam)
  const body = parseJson(response.body)
  const message = readHostError(body)?.message ?? ""
  const kind = classify(failure.class, message)
  const param = picture.test(message) ? imageParam : inMessages.test(message) ? "messages" : undefined
  return amendFailure(failure, {
    class: kind,
    retryAfterSeconds: failure.retryAfterSeconds ?? readRetryDelay(body),
    param: kind === "request" ? param : undefined
  })
}

export const isFiltered = (reason: string): boolean =>
  /^(IMAGE_)?(SAFETY|PROHIBITED_CONTENT)$|^(BLOCKLIST|SPII|MODEL_ARMOR|JAILBREAK)$/.test(reason)

export const moderationFailure = (status: number, reason: unknown): ProviderFailure =>
  new ProviderFailure({ class: "moderation", status, detail: `moderated: ${String(reason).slice(0, 100)}` })

export const blockIn = ({ promptFeedback }: Fields): string | undefined =>
  asText(asFields(promptFeedback).blockReason) || undefined
