import { Data } from "effect"
import type { CapPeriod, CapSpend, Scope } from "./ApiKey.ts"
import type { Surface } from "./Model.ts"
import type { NanoUsd } from "./Money.ts"
import type { Role } from "./Operator.ts"

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
/** An unknown path beside one of the API. */
export class MisspeltPath extends Data.TaggedError("MisspeltPath")<{ readonly meant: string }> {}
/** A path of the API, with another method than it has. */
export class UnknownMethod extends Data.TaggedError("UnknownMethod")<{
  readonly path: string
  readonly methods: ReadonlyArray<string>
}> {}
export class MissingApiKey extends Data.TaggedError("MissingApiKey")<{}> {}
export class InvalidApiKey extends Data.TaggedError("InvalidApiKey")<{}> {}
/** The key itself is valid. */
export class OrganizationSuspended extends Data.TaggedError("OrganizationSuspended")<{}> {}
export class RateLimited extends Data.TaggedError("RateLimited")<{
  /** Requests per minute. */
  readonly limit: number
}> {}
export class InsufficientScope extends Data.TaggedError("InsufficientScope")<{ readonly scope: Scope }> {}
export class ModelNotFound extends Data.TaggedError("ModelNotFound")<{
  readonly model: string
  /** Where the model was to be used; undefined: it was only looked up. */
  readonly surface: Surface | undefined
  /** The model of that name on another surface. */
  readonly elsewhere?: { readonly id: string; readonly surface: Surface } | undefined
  /** Ids that may be meant. */
  readonly suggestions?: ReadonlyArray<string> | undefined
}> {}
/** A known model that the key may not use. */
export class ModelNotAllowed extends Data.TaggedError("ModelNotAllowed")<{ readonly model: string }> {}
export class VideoNotFound extends Data.TaggedError("VideoNotFound")<{}> {}
export class VideoNotFinished extends Data.TaggedError("VideoNotFinished")<{}> {}
export class RequestNotFound extends Data.TaggedError("RequestNotFound")<{}> {}
export class InsufficientCredits extends Data.TaggedError("InsufficientCredits")<{
  /** Undefined before the request is read. */
  readonly needed: NanoUsd | undefined
  readonly available: bigint
  /** The request would run with a lower cap: `needed` is for the lowest. */
  readonly isLeast?: boolean | undefined
}> {}
export class TokensLimited extends Data.TaggedError("TokensLimited")<{
  readonly limit: number
  readonly retryAfterSeconds: number
}> {}
export class ConcurrencyLimited extends Data.TaggedError("ConcurrencyLimited")<{ readonly limit: number }> {}
export class SpendLimitReached extends Data.TaggedError("SpendLimitReached")<{
  /** Undefined: that of the key. */
  readonly of?: "key" | "organization" | undefined
  readonly period: CapPeriod
  readonly spend?: CapSpend | undefined
}> {}

/** A payment of its organization is disputed. */
export class PaymentDisputed extends Data.TaggedError("PaymentDisputed")<{}> {}

export class IdempotencyConflict extends Data.TaggedError("IdempotencyConflict")<{}> {}

/** What clients of the agents' dialects act on. */
export type ReasonCode = "context_length_exceeded"

export class UpstreamRejected extends Data.TaggedError("UpstreamRejected")<{
  readonly param: string | null
  /** What the host said, cleaned: for dialects whose clients recover by it. */
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

/** Operators', by the admin API: neither signed in nor with a token. */
export class NotSignedIn extends Data.TaggedError("NotSignedIn")<{ readonly message: string }> {}
export class InsufficientRole extends Data.TaggedError("InsufficientRole")<{ readonly needed: Role }> {}
/** A page of another site asked in an operator's name. */
export class ForeignOrigin extends Data.TaggedError("ForeignOrigin")<{}> {}
export class SignInLimited extends Data.TaggedError("SignInLimited")<{ readonly retryAfterSeconds: number }> {}
/** The members of an organization made too many changes in a minute. */
export class ChangesLimited extends Data.TaggedError("ChangesLimited")<{
  readonly limit: number
  readonly retryAfterSeconds: number
}> {}
export class NotFound extends Data.TaggedError("NotFound")<{ readonly message: string }> {}
/** What there is forbids the change. */
export class Conflict extends Data.TaggedError("Conflict")<{
  readonly message: string
  readonly param: string | null
}> {}

export class Aborted extends Data.TaggedError("Aborted")<{}> {}

/** Any failure class of this file. */
export type Failure = InstanceType<typeof import("./Failure.ts")[keyof typeof import("./Failure.ts")]>
