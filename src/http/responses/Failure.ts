import type { EncodeError } from "../Answer.ts"
import type { Envelope } from "../errors/ErrorMessages.ts"

/** The names that this dialect has for the fields of a chat. */
const fields: Readonly<Record<string, string>> = {
  messages: "input",
  max_tokens: "max_output_tokens",
  reasoning_effort: "reasoning",
  response_format: "text",
  web_search: "tools"
}

/** Says why the provider refused a request: agents recover by it. */
export const encodeError: EncodeError = ({ body: { error }, reason, reasonCode }) => {
  const { code, message, param, type } = error
  const field = fields[param ?? ""] ?? param
  const renamed = param === null || field === null ? message : message.replaceAll(`\`${param}\``, `\`${field}\``)
  return {
    error: {
      message: reason ?? renamed,
      type,
      param: field,
      code: reasonCode ?? code
    }
  }
}

/** The codes by which clients of this dialect decide: all others are repeated. */
export const failureCode = ({ error: { code, type } }: Envelope): string => {
  if (type === "insufficient_quota" || type === "rate_limit_error") return code ?? type
  return type === "invalid_request_error" || type === "content_policy_violation" ? "invalid_prompt" : "server_error"
}
