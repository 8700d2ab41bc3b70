import { Schema } from "effect"

export const ErrorType = Schema.Literal(
  "invalid_request_error",
  "authentication_error",
  "permission_error",
  "not_found_error",
  "rate_limit_error",
  "insufficient_quota",
  "content_policy_violation",
  "api_error",
  "service_unavailable"
)
export type ErrorType = typeof ErrorType.Type

export const ErrorCode = Schema.Literal(
  "invalid_api_key",
  "insufficient_quota",
  "spend_limit_exceeded",
  "insufficient_scope",
  "access_denied",
  "model_not_found",
  "unknown_endpoint",
  "idempotency_conflict",
  "request_too_large",
  "rate_limit_exceeded",
  "internal_error",
  "upstream_error",
  "no_provider_available",
  "timeout"
)
export type ErrorCode = typeof ErrorCode.Type

export const Envelope = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String.annotations({ description: "For people." }),
    type: ErrorType,
    param: Schema.NullOr(Schema.String).annotations({ description: "The request field at fault, where there is one." }),
    code: Schema.NullOr(ErrorCode).annotations({ description: "For machines; more precise than the status." })
  })
}).annotations({ identifier: "Error", description: "Every error of the API." })
export type Envelope = typeof Envelope.Type
