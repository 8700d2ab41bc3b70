import { Predicate } from "effect"
import type { ProviderAccount } from "../../domain/Model.ts"
import { type FailureClass, ProviderFailure } from "../../services/routing/Provider.ts"
import { parse, refusal } from "../client/Classification.ts"
import type { UpstreamAnswer } from "../client/Exchange.ts"
import { loggable } from "../client/Upstream.ts"

interface AnthropicError {
  readonly type: string
  /** Names the cause more precisely than the type, where the host gives it. */
  readonly code: string
  readonly message: string
}

const string = (value: unknown): string => (typeof value === "string" ? value : "")

const errorOf = (body: string): AnthropicError | undefined => {
  const outer = parse(body)
  if (!Predicate.isRecord(outer) || !Predicate.isRecord(outer.error)) return undefined
  const { details, message, type } = outer.error
  const code = Predicate.isRecord(details) ? string(details.error_code) : ""
  return { type: string(type), code, message: string(message) }
}

/** The operator's account by its codes, whatever the status: money, a hold, keys and settings of the organization. */
const accountCode =
  /spend_limit_reached$|^organization_(on_hold|type_not_supported)$|^parent_organization_required$|billing|^cmek_|^claude_code_|^sandbox_egress_restricted$/

/**
 * A 400 may speak to the operator: `Your credit balance is too low…`, `You have reached your specified API usage
 * limits…`, `This organization has been disabled.` Only its first words count: further on stands what the customer sent.
 */
const toOperator =
  /^(your (credit|organization|workspace|account|api key|plan)|you have (reached|exceeded|run out)|this (organization|workspace|account|api key))\b/i

const imageFault = /\bimage\.source\b|^could not process image|^unable to download the file|^(the )?image\b/i

interface OwnVerdict {
  readonly class: FailureClass
  readonly param?: string
}

const verdictOf = (status: number | undefined, { code, message, type }: AnthropicError): OwnVerdict | undefined => {
  if (type === "billing_error" || accountCode.test(code)) return { class: "account" }
  if (type !== "invalid_request_error") return undefined
  if (toOperator.test(message)) return { class: "account" }
  if (/^output blocked by content filter/i.test(message)) return { class: "moderation" }
  return status === 400 && imageFault.test(message) ? { class: "request", param: "messages" } : undefined
}

/** The failure that an answer means, by its body before its status. */
export const failureOf = (account: ProviderAccount, answer: UpstreamAnswer, nowMillis: number): ProviderFailure => {
  const failure = refusal(account, answer, nowMillis)
  const error = errorOf(answer.body)
  if (error === undefined) return failure
  const { class: kind, detail, param, retryAfterSeconds, status } = failure
  return new ProviderFailure({
    ...(verdictOf(status, error) ?? { class: kind, param }),
    status,
    retryAfterSeconds,
    detail: loggable(account, `${error.code} ${detail}`)
  })
}

/** Whether the host refuses how thinking was asked for, which is the route's choice and never the customer's. */
export const refusesThinking = (answer: UpstreamAnswer): boolean => {
  if (answer.status !== 400) return false
  const error = errorOf(answer.body)
  return error?.type === "invalid_request_error" && /\bthinking\b/i.test(error.message)
}
