import { Schema } from "effect"
import type { Failure } from "../../domain/Failure.ts"
import type { Surface } from "../../domain/Model.ts"
import type { AnswerHeaders } from "../AnswerHeaders.ts"

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

/** The default type of an error by its status. */
export const typeOfStatus = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "insufficient_quota",
  403: "permission_error",
  404: "not_found_error",
  409: "invalid_request_error",
  413: "invalid_request_error",
  429: "rate_limit_error",
  500: "api_error",
  502: "api_error",
  503: "service_unavailable",
  504: "api_error"
} as const satisfies Record<number, ErrorType>
type ErrorStatus = keyof typeof typeOfStatus

/** A kind of endpoints with common failures. `key`: all that require a key. `operator`: the admin API. */
export type EndpointKind = "key" | "generation" | "counting" | "read" | "model" | "operator" | "adminChange"

export type Tag = Failure["_tag"]
export type FailureOf<T extends Tag> = Extract<Failure, { readonly _tag: T }>

/** The headers of an error. */
export type ErrorHeaders = AnswerHeaders & { readonly connection?: "close" }

/** A row of the table in docs/errors.md. */
interface DocumentedError<F> {
  /** The failure whose message the row shows. The default is the example. */
  readonly failure?: () => F
  /** Shown instead of a message that depends on the request. */
  readonly message?: string
  /** The cause, what to do, and the response headers. */
  readonly action: string
}

/** Describes an error. Its envelope, the API documents and docs/errors.md are derived from this row. */
export interface ErrorRow<F> {
  readonly status: ErrorStatus
  readonly type?: ErrorType
  /** The default is null. */
  readonly code?: string
  readonly message: string | ((failure: F) => string)
  readonly param?: string | ((failure: F) => string | null)
  /** How to fix the request, if there is something to add to the message. */
  readonly hint?: string | ((failure: F) => string | undefined)
  readonly headers?: ErrorHeaders | ((failure: F) => ErrorHeaders)
  /** The kinds whose endpoints all have this failure. Empty if single endpoints declare it. */
  readonly endpointKinds: ReadonlyArray<EndpointKind>
  /** The example in the API documents. */
  readonly example: (surface: Surface) => F
  /** The rows in docs/errors.md. Absent for errors that customers cannot get. */
  readonly docs?: DocumentedError<F> | ReadonlyArray<DocumentedError<F>>
}
