import {
  Aborted,
  AddressBlocked,
  AllProvidersFailed,
  BodyTooLarge,
  BodyTooSlow,
  ContentRejected,
  GatewayBusy,
  IdempotencyConflict,
  InsufficientCredits,
  InsufficientScope,
  InvalidRequest,
  ModelNotFound,
  NoHealthyProvider,
  RateLimited,
  SettleFailed,
  SpendLimitReached,
  TimedOut,
  UpstreamAuthFailed,
  UpstreamFailed,
  UpstreamRejected,
  VideoNotFound
} from "../../domain/Failure.ts"
import { onWire } from "./OnWire.ts"

export const BadRequest = onWire(400, InvalidRequest, BodyTooSlow, UpstreamRejected, ContentRejected).annotations({
  description: "The request is wrong, or was refused by moderation or by the provider."
})
export const PaymentRequired = onWire(402, InsufficientCredits, SpendLimitReached).annotations({
  description: "The balance cannot cover the request, or the key's spending cap is exhausted."
})
export const Blocked = onWire(403, AddressBlocked).annotations({ description: "The client's address is blocked." })
export const Forbidden = onWire(403, InsufficientScope, AddressBlocked).annotations({
  description: "The key may not use this surface, or the client's address is blocked."
})
export const NoSuchModel = onWire(404, ModelNotFound).annotations({
  description: "The model does not exist or belongs to another surface."
})
export const NoSuchVideo = onWire(404, VideoNotFound).annotations({
  description: "The organization has no such video."
})
export const NotCompleted = onWire(400, InvalidRequest).annotations({ description: "The video is not completed." })
export const Conflict = onWire(409, IdempotencyConflict).annotations({
  description: "A request with the same `Idempotency-Key` is still in flight."
})
export const TooLarge = onWire(413, BodyTooLarge).annotations({ description: "The body is too large." })
export const TooManyRequests = onWire(429, RateLimited).annotations({ description: "The key's request rate is spent." })
export const Internal = onWire(500, SettleFailed).annotations({ description: "The gateway failed." })
export const BadGateway = onWire(502, UpstreamFailed, UpstreamAuthFailed).annotations({
  description: "The provider returned an error."
})
export const Unavailable = onWire(503, AllProvidersFailed, NoHealthyProvider, Aborted, GatewayBusy).annotations({
  description: "No provider could serve the request, or the gateway is busy."
})
export const OutOfTime = onWire(504, TimedOut).annotations({ description: "The request exceeded the allowed time." })
