import { Data } from "effect"
import type { CapPeriod, CapSpend, Scope } from "./ApiKey.ts"
import type { Surface } from "./Model.ts"
import type { NanoUsd } from "./Money.ts"
import type { Role } from "./Organization.ts"

export class InvalidRequest extends Data.TaggedError("InvalidRequest")<{
  readonly message: string
  /** How to fix the request, in one or two sentences. */
  readonly hint?: string | undefined
  readonly param: string | null
}> {}

export class BodyTooLarge extends Data.TaggedError("BodyTooLarge")<{ readonly limitBytes: number }> {}
export class BodyTooSlow extends Data.TaggedError("BodyTooSlow")<{ readonly bytesPerSecond: number }> {}
export class GatewayBusy extends Data.TaggedError("GatewayBusy")<{}> {}
export class AddressBlocked extends Data.TaggedError("AddressBlocked")<{}> {}
export class UnknownEndpoint extends Data.TaggedError("UnknownEndpoint")<{}> {}
/** An unknown path that resembles a path of the API. */
export class MisspeltPath extends Data.TaggedError("MisspeltPath")<{ readonly suggestion: string }> {}
/** A path of the API with a method that it does not support. */
export class UnknownMethod extends Data.TaggedError("UnknownMethod")<{
  readonly path: string
  readonly methods: ReadonlyArray<string>
}> {}
export class MissingApiKey extends Data.TaggedError("MissingApiKey")<{}> {}
export class InvalidApiKey extends Data.TaggedError("InvalidApiKey")<{}> {}
/** The key is valid, but its organization is suspended. */
export class OrganizationSuspended extends Data.TaggedError("OrganizationSuspended")<{}> {}
export class RateLimited extends Data.TaggedError("RateLimited")<{
  /** Requests per minute. */
  readonly limit: number
}> {}
export class InsufficientScope extends Data.TaggedError("InsufficientScope")<{ readonly scope: Scope }> {}
export class ModelNotFound extends Data.TaggedError("ModelNotFound")<{
  readonly model: string
  /** The surface of the request; undefined for a lookup. */
  readonly surface: Surface | undefined
  /** The model with that name, if it belongs to another surface. */
  readonly elsewhere?: { readonly id: string; readonly surface: Surface } | undefined
  /** Similar model ids. */
  readonly suggestions?: ReadonlyArray<string> | undefined
}> {}
/** A known model that the key may not use. */
export class ModelNotAllowed extends Data.TaggedError("ModelNotAllowed")<{ readonly model: string }> {}
export class VideoNotFound extends Data.TaggedError("VideoNotFound")<{}> {}
export class VideoNotFinished extends Data.TaggedError("VideoNotFinished")<{}> {}
export class RequestNotFound extends Data.TaggedError("RequestNotFound")<{}> {}
export class InsufficientCredits extends Data.TaggedError("InsufficientCredits")<{
  /** Undefined if the refusal came before the request was decoded. */
  readonly needed: NanoUsd | undefined
  readonly available: bigint
  /** The request could also run with a lower output cap; `needed` is the amount for the lowest one. */
  readonly isMinimum?: boolean | undefined
}> {}
export class TokensLimited extends Data.TaggedError("TokensLimited")<{
  readonly limit: number
  readonly retryAfterSeconds: number
}> {}
export class ConcurrencyLimited extends Data.TaggedError("ConcurrencyLimited")<{ readonly limit: number }> {}
export class SpendLimitReached extends Data.TaggedError("SpendLimitReached")<{
  /** Whose spending cap. Undefined: the key's. */
  readonly owner?: "key" | "organization" | undefined
  readonly period: CapPeriod
  readonly spend?: CapSpend | undefined
}> {}

/** A payment of the caller's organization is disputed. */
export class PaymentDisputed extends Data.TaggedError("PaymentDisputed")<{}> {}

export class IdempotencyConflict extends Data.TaggedError("IdempotencyConflict")<{}> {}

/** Error codes that clients of the Responses and Messages dialects handle. */
export type ReasonCode = "context_length_exceeded"

export class UpstreamRejected extends Data.TaggedError("UpstreamRejected")<{
  readonly param: string | null
  /** The provider's redacted message, for dialects whose clients use it to recover. */
  readonly reason?: string | undefined
  readonly reasonCode?: ReasonCode | undefined
}> {}
export class ContentRejected extends Data.TaggedError("ContentRejected")<{}> {}
export class UpstreamFailed extends Data.TaggedError("UpstreamFailed")<{}> {}
export class UpstreamAuthFailed extends Data.TaggedError("UpstreamAuthFailed")<{}> {}
export class AllProvidersFailed extends Data.TaggedError("AllProvidersFailed")<{
  readonly provider: string
  readonly status: number | "network"
}> {}
export class NoHealthyProvider extends Data.TaggedError("NoHealthyProvider")<{}> {}
export class TimedOut extends Data.TaggedError("TimedOut")<{}> {}

export type RoutingFailure =
  | UpstreamRejected
  | ContentRejected
  | UpstreamFailed
  | UpstreamAuthFailed
  | AllProvidersFailed
  | NoHealthyProvider
  | TimedOut

export class SettleFailed extends Data.TaggedError("SettleFailed")<{}> {}

/** The admin API received neither a session nor a token. */
export class NotSignedIn extends Data.TaggedError("NotSignedIn")<{ readonly message: string }> {}
export class InsufficientRole extends Data.TaggedError("InsufficientRole")<{ readonly needed: Role }> {}
/** Another site's page sent the request with an operator's session. */
export class ForeignOrigin extends Data.TaggedError("ForeignOrigin")<{}> {}
export class SignInLimited extends Data.TaggedError("SignInLimited")<{ readonly retryAfterSeconds: number }> {}
/** The members of an organization made too many changes in a minute. */
export class ChangesLimited extends Data.TaggedError("ChangesLimited")<{
  readonly limit: number
  readonly retryAfterSeconds: number
}> {}
export class NotFound extends Data.TaggedError("NotFound")<{ readonly message: string }> {}
/** The current state forbids the change. */
export class Conflict extends Data.TaggedError("Conflict")<{
  readonly message: string
  readonly param: string | null
}> {}

export class Aborted extends Data.TaggedError("Aborted")<{}> {}

/** Any failure class of this file. */
export type Failure = InstanceType<typeof import("./Failure.ts")[keyof typeof import("./Failure.ts")]>
