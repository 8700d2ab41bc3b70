import type { ReasonCode } from "../../domain/Failure.ts"
import type { Envelope, WireError } from "../errors/ErrorMessages.ts"

/** The names that this dialect has for the fields of a chat. */
const fields: Readonly<Record<string, string>> = {
  messages: "input",
  max_tokens: "max_output_tokens",
  reasoning_effort: "reasoning",
  response_format: "text",
  web_search: "tools"
}

/** Says why the provider refused a request: agents recover by it. */
export const responsesError = ({ body: { error }, reason, reasonCode }: Omit<WireError, "status">): Envelope => {
  const { code, message, param, type } = error
  const field = fields[param ?? ""] ?? param
  const renamed = field === param ? message : message.replaceAll(`\`${param}\``, `\`${field}\``)
  return { error: { message: reason ?? renamed, type, param: field, code: reasonCode ?? code } }
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
  return { code: failureCode(refusal), message: refusal.error.message }
}
