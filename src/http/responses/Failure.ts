import type { ReasonCode } from "../../domain/Failure.ts"
import type { Envelope, WireError } from "../errors/ErrorMessages.ts"
import { type FieldNames, renameField } from "../errors/FieldNames.ts"

export const responsesFields: FieldNames = {
  messages: "input",
  max_tokens: "max_output_tokens",
  reasoning_effort: "reasoning",
  response_format: "text.format"
}

/** Says why the provider refused a request: agents recover by it. */
export const responsesError = ({ body: { error }, reason, reasonCode }: Omit<WireError, "status">): Envelope => {
  const { message, ...shown } = renameField(error, responsesFields, reason)
  return { error: { message, type: error.type, ...shown, code: reasonCode ?? error.code } }
}

/** The codes by which clients of this dialect decide: all others are repeated. */
const failureCode = ({ error: { code, type } }: Envelope): string => {
  if (type === "insufficient_quota" || type === "rate_limit_error") return code ?? type
  if (type === "invalid_request_error") return code ?? "invalid_prompt"
  return type === "content_policy_violation" ? "invalid_prompt" : "server_error"
}

/** The `error` of a response that failed. */
export const failureOf = (body: Envelope, reason?: string, reasonCode?: ReasonCode) => {
  const refusal = responsesError({ body, reason, reasonCode })
  const { hint, message } = refusal.error
  return { code: failureCode(refusal), message, ...(hint === undefined ? undefined : { hint }) }
}
