import { HttpApiSchema } from "@effect/platform"
import { ParseResult, Schema, Struct } from "effect"
import { describedField } from "../../domain/Constraints.ts"
import * as Failures from "../../domain/Failure.ts"
import { unusableReference } from "../../domain/Media.ts"
import { redactQuotations } from "../../domain/Quotations.ts"
import type { ReportedError } from "../../services/requests/RequestEntry.ts"
import {
  type EndpointKind,
  type ErrorHeaders,
  type ErrorRow,
  ErrorType,
  type FailureOf,
  type Tag,
  typeOfStatus
} from "./ErrorRow.ts"
import { errorTable, type StatusOf, type TableCode, type TagAt } from "./ErrorTable.ts"
/** All error codes: those of the table, and those that a dialect forwards from a provider. */
export const errorCodes: ReadonlyArray<TableCode | Failures.ReasonCode> = [
  ...new Set([
    ...Object.values(errorTable).flatMap((row) => ("code" in row ? [row.code] : [])),
    "context_length_exceeded" as const
  ])
]
const ErrorCode = Schema.Literal(...errorCodes)

export const Hint = describedField(Schema.String, "How to fix it: an amount, a limit, a path or a model.")

export const Envelope = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String.annotations({ description: "A human-readable message." }),
    type: ErrorType,
    param: Schema.NullOr(Schema.String).annotations({ description: "The invalid request field, or null." }),
    code: Schema.NullOr(ErrorCode).annotations({
      description: "A machine-readable code, which is more precise than the status."
    }),
    hint: Hint
  })
}).annotations({ identifier: "Error", description: "Every error of the API." })
export type Envelope = typeof Envelope.Type

const failures = Object.values(Failures)

export const isFailure = (error: unknown): error is Failures.Failure => failures.some((type) => error instanceof type)

export interface WireError {
  readonly status: number
  readonly body: Envelope
  /** The provider's redacted message, which some dialects forward. */
  readonly reason?: string | undefined
  readonly reasonCode?: Failures.ReasonCode | undefined
  readonly headers?: ErrorHeaders
}

const rows: { readonly [T in Tag]: ErrorRow<FailureOf<T>> & { readonly code?: TableCode } } = errorTable

const encode = <T extends Tag>(tag: T, failure: FailureOf<T>): WireError => {
  const { code = null, headers, hint, message, param = null, status, type = typeOfStatus[status] } = rows[tag]
  const hintText = typeof hint === "function" ? hint(failure) : hint
  return {
    status,
    body: {
      error: {
        message: typeof message === "function" ? message(failure) : message,
        type,
        param: typeof param === "function" ? param(failure) : param,
        code,
        ...(hintText === undefined ? undefined : { hint: hintText })
      }
    },
    ...(headers === undefined ? undefined : { headers: typeof headers === "function" ? headers(failure) : headers })
  }
}

export const toWire = (failure: Failures.Failure): WireError => {
  const wire = encode(failure._tag, failure)
  if (failure._tag !== "UpstreamRejected") return wire
  const { reason, reasonCode } = failure
  return {
    ...wire,
    ...(reason === undefined ? undefined : { reason }),
    ...(reasonCode === undefined ? undefined : { reasonCode })
  }
}

/** The error while the database is unavailable. It has `retry-after`, because a later retry may succeed. */
export const outageError = toWire(new Failures.SettleFailed())

export const internalError: WireError = { status: outageError.status, body: outageError.body }

const upstreamError = toWire(new Failures.UpstreamFailed())
const timedOut = toWire(new Failures.TimedOut())

export const encodeBrokenStream = (failure: Failures.Failure): Envelope => {
  if (failure._tag === "SettleFailed") return internalError.body
  return failure._tag === "TimedOut" ? timedOut.body : upstreamError.body
}

/** Chat fields that a dialect names differently, with its names. */
export type FieldNames = Readonly<Record<string, string>>

/** Replaces an error's message by the provider's reason, or its hint if the message about a reference image must stay. */
const withReason = (error: NamedError, reason: string): NamedError =>
  error.message === unusableReference ? { ...error, hint: reason } : { ...error, message: reason }

interface NamedError {
  readonly message: string
  readonly hint?: string | undefined
  readonly param: string | null
}

/** Renames the fields in an error for a dialect. `reason` is the provider's message, which clients parse to recover. */
export const renameField = (error: NamedError, names: FieldNames, reason?: string): NamedError => {
  const { hint, message, param } = reason === undefined ? error : withReason(error, reason)
  const name = param === null ? undefined : names[param]
  const rename = (text: string) => (name === undefined ? text : text.replaceAll(`\`${param}\``, `\`${name}\``))
  return {
    message: rename(message),
    param: name ?? param,
    ...(hint === undefined ? undefined : { hint: rename(hint) })
  }
}

/**
 * Returns the error for the request log, as the client gets it. It includes the provider's reason only for dialects with
 * their own field names, because only these forward it.
 */
export const loggedError = (
  { body, reason }: Pick<WireError, "body" | "reason">,
  names: FieldNames | undefined
): ReportedError =>
  names === undefined
    ? body.error
    : renameField(body.error, names, reason === undefined ? undefined : redactQuotations(reason))

/** Returns the response schema of failures, which must all have the same status. */
const responseOf = <T extends Tag>(description: string, tags: readonly [T, ...ReadonlyArray<T>]) => {
  const isExpected = (value: unknown): value is FailureOf<T> =>
    isFailure(value) && tags.some((tag) => tag === value._tag)
  return Schema.transformOrFail(Envelope, Schema.declare(isExpected), {
    strict: true,
    decode: (wire, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, wire, "failures are only encoded")),
    encode: (_, __, ___, failure) => ParseResult.succeed(toWire(failure).body)
  }).annotations({
    ...HttpApiSchema.annotations({ status: errorTable[tags[0]].status }),
    description,
    jsonSchema: { failures: tags }
  })
}

/** Returns the response schema of failures that only this endpoint has. */
export const response = <const Tags extends readonly [Tag, ...ReadonlyArray<Tag>]>(
  description: string,
  ...tags: Tags
) => responseOf<Tags[number]>(description, tags)

/** Returns the response schemas of all failures that the table lists for a kind of endpoint. */
export const responsesAt = <Kind extends EndpointKind>(
  kind: Kind,
  descriptions: Readonly<Record<StatusOf<TagAt<Kind>>, string>>
) => {
  const isOfKind = (tag: Tag): tag is TagAt<Kind> => errorTable[tag].endpointKinds.some((one) => one === kind)
  const tags = Struct.keys(errorTable).filter(isOfKind)
  return Schema.Union(
    ...Object.entries<string>(descriptions).map(([status, description]) => {
      const [first, ...rest] = tags.filter((tag) => errorTable[tag].status === Number(status))
      if (first === undefined) throw new Error(`No failure of ${kind} has the status ${status}`)
      return responseOf(description, [first, ...rest])
    })
  )
}

const tooLargeDescription = "The body is too large."
const failedDescription = "The gateway failed."

export const TooLarge = response(tooLargeDescription, "BodyTooLarge")
export const Internal = response(failedDescription, "SettleFailed")

const countingDescriptions = {
  400: "The request is invalid, or moderation or the provider rejected it.",
  402: "The balance cannot cover the request, the spending cap of the key or of its organization is exhausted, or a payment is disputed.",
  403: "The key may not use this endpoint type or this model, or the client's address is blocked.",
  404: "The model does not exist or belongs to another endpoint type.",
  413: tooLargeDescription,
  429: "The key has reached its limit of requests per minute.",
  500: failedDescription,
  503: "No provider could serve the request, or the gateway is busy."
}

export const CountTokensErrors = responsesAt("counting", countingDescriptions)

export const GenerationErrors = responsesAt("generation", {
  ...countingDescriptions,
  429: "The key has reached its limit of requests per minute, tokens per minute or parallel requests.",
  502: "The provider returned an error.",
  504: "The request exceeded the allowed time."
})

export const ReadErrors = responsesAt("read", { 403: "The client's address is blocked.", 500: failedDescription })

export const ModelErrors = responsesAt("model", {
  403: "The key may not use the model, or the client's address is blocked.",
  404: "The model does not exist.",
  500: failedDescription
})

export const InvalidQuery = response("A parameter is invalid.", "InvalidRequest")
export const NoSuchPath = response("There is no such path.", "UnknownEndpoint")
export const Conflict = response("A request with the same `Idempotency-Key` is still in flight.", "IdempotencyConflict")
