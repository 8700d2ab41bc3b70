import { HttpApiSchema } from "@effect/platform"
import { ParseResult, Schema } from "effect"
import {
  Aborted,
  AddressBlocked,
  AllProvidersFailed,
  BodyTooLarge,
  BodyTooSlow,
  ConcurrencyLimited,
  ContentRejected,
  type Failure,
  GatewayBusy,
  IdempotencyConflict,
  InsufficientCredits,
  InsufficientScope,
  InvalidRequest,
  ModelNotAllowed,
  ModelNotFound,
  NoHealthyProvider,
  PaymentDisputed,
  RateLimited,
  RequestNotFound,
  SettleFailed,
  SpendLimitReached,
  TimedOut,
  TokensLimited,
  UnknownEndpoint,
  UpstreamAuthFailed,
  UpstreamFailed,
  UpstreamRejected,
  VideoNotFinished,
  VideoNotFound
} from "../../domain/Failure.ts"
import { Envelope, toWire } from "./ErrorMessages.ts"

type FailureClass = abstract new (...args: never) => Failure

export const onWire = <Classes extends ReadonlyArray<FailureClass>>(status: number, ...failures: Classes) => {
  const failure = Schema.Union(...failures.map((type) => Schema.instanceOf<Classes[number]>(type)))
  return Schema.transformOrFail(Envelope, failure, {
    strict: true,
    decode: (wire, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, wire, "failures are only encoded")),
    encode: (_, __, ___, instance) => ParseResult.succeed(toWire(instance).body)
  }).annotations({ ...HttpApiSchema.annotations({ status }), jsonSchema: { failures } })
}

const BadRequest = onWire(400, InvalidRequest, BodyTooSlow, UpstreamRejected, ContentRejected).annotations({
  description: "The request is wrong, or was refused by moderation or by the provider."
})
const PaymentRequired = onWire(402, InsufficientCredits, SpendLimitReached, PaymentDisputed).annotations({
  description:
    "The balance cannot cover the request, the spending cap of the key or of its organization is exhausted, or a payment is disputed."
})
const Blocked = onWire(403, AddressBlocked).annotations({ description: "The client's address is blocked." })
export const Forbidden = onWire(403, InsufficientScope, AddressBlocked).annotations({
  description: "The key may not use this surface, or the client's address is blocked."
})
const ForbiddenModel = onWire(403, InsufficientScope, ModelNotAllowed, AddressBlocked).annotations({
  description: "The key may not use this surface or this model, or the client's address is blocked."
})
const NoSuchModel = onWire(404, ModelNotFound).annotations({
  description: "The model does not exist or belongs to another surface."
})
const UnknownModel = onWire(404, ModelNotFound).annotations({ description: "The model does not exist." })
const ForbiddenToRead = onWire(403, ModelNotAllowed, AddressBlocked).annotations({
  description: "The key may not use the model, or the client's address is blocked."
})
export const NoSuchVideo = onWire(404, VideoNotFound).annotations({
  description: "The organization has no such video."
})
export const NotFinished = onWire(409, VideoNotFinished).annotations({
  description: "The video is neither completed nor failed."
})
export const NotCompleted = onWire(400, InvalidRequest).annotations({ description: "The video is not completed." })
export const Conflict = onWire(409, IdempotencyConflict).annotations({
  description: "A request with the same `Idempotency-Key` is still in flight."
})
export const TooLarge = onWire(413, BodyTooLarge).annotations({ description: "The body is too large." })
const TooManyRequests = onWire(429, RateLimited, TokensLimited, ConcurrencyLimited).annotations({
  description: "The key's requests or tokens of this minute are spent, or too many of its requests run at once."
})
const RateSpent = onWire(429, RateLimited).annotations({ description: "The key's request rate is spent." })
export const Internal = onWire(500, SettleFailed).annotations({ description: "The gateway failed." })
const BadGateway = onWire(502, UpstreamFailed, UpstreamAuthFailed).annotations({
  description: "The provider returned an error."
})
const Unavailable = onWire(503, AllProvidersFailed, NoHealthyProvider, Aborted, GatewayBusy).annotations({
  description: "No provider could serve the request, or the gateway is busy."
})
const OutOfTime = onWire(504, TimedOut).annotations({ description: "The request exceeded the allowed time." })

export const NoSuchPath = onWire(404, UnknownEndpoint).annotations({ description: "There is no such path." })
export const NoSuchRequest = onWire(404, RequestNotFound).annotations({
  description: "The organization has no such request."
})
export const UsageBusy = onWire(503, GatewayBusy).annotations({ description: "Too many ask for their usage at once." })
export const WrongQuery = onWire(400, InvalidRequest).annotations({
  description: "A parameter is wrong."
})

export const ReadErrors = Schema.Union(Blocked, Internal)
export const ModelErrors = Schema.Union(ForbiddenToRead, UnknownModel, Internal)

export const CountTokensErrors = Schema.Union(
  BadRequest,
  PaymentRequired,
  ForbiddenModel,
  NoSuchModel,
  TooLarge,
  RateSpent,
  Internal,
  Unavailable
)

export const GenerationErrors = Schema.Union(
  BadRequest,
  PaymentRequired,
  ForbiddenModel,
  NoSuchModel,
  TooLarge,
  TooManyRequests,
  Internal,
  BadGateway,
  Unavailable,
  OutOfTime
)
