import { HttpApi, type HttpApiEndpoint, type HttpApiGroup, HttpApiMiddleware } from "@effect/platform"
import { Schema } from "effect"
import {
  Aborted,
  AddressBlocked,
  BodyTooSlow,
  ChangesLimited,
  Conflict,
  ForeignOrigin,
  GatewayBusy,
  InsufficientRole,
  InvalidRequest,
  NotFound,
  NotSignedIn,
  SignInLimited,
  UnknownEndpoint
} from "../../domain/Failure.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { Internal, onWire, TooLarge } from "../errors/Schemas.ts"

export const BadRequest = onWire(400, InvalidRequest, BodyTooSlow).annotations({
  description: "The request is wrong."
})
export const Unauthenticated = onWire(401, NotSignedIn).annotations({
  description: "Neither a session nor a token of an operator, or one that has ended."
})
export const Forbidden = onWire(403, InsufficientRole, ForeignOrigin, AddressBlocked).annotations({
  description: "The operator's role does not allow it, or a page of another site asked."
})
export const NoSuch = onWire(404, NotFound, UnknownEndpoint).annotations({
  description: "There is no such thing; or the gateway lets only its own machine in."
})
const Conflicting = onWire(409, Conflict).annotations({ description: "What there is forbids the change." })
export const TooManyAttempts = onWire(429, SignInLimited).annotations({
  description: "Too many failed attempts to sign in."
})

const TooManyChanges = onWire(429, ChangesLimited).annotations({
  description: "The organization's members made too many changes in a minute."
})

const NoRoom = onWire(503, GatewayBusy, Aborted).annotations({
  description: "Too many large bodies arrive at once, or the gateway is stopping."
})

export const AccessErrors = Schema.Union(
  BadRequest,
  Unauthenticated,
  Forbidden,
  TooManyAttempts,
  NoSuch,
  TooLarge,
  NoRoom
)

const Busy = onWire(503, GatewayBusy).annotations({
  description: "Too many reports are asked for at once, or one takes too long."
})
export const ReadErrors = Schema.Union(BadRequest, NoSuch, Internal)
export const ReportErrors = Schema.Union(ReadErrors, Busy)
export const ChangeErrors = Schema.Union(BadRequest, NoSuch, Conflicting, TooManyChanges, Internal)

const options = { provides: CurrentActor, failure: AccessErrors } as const

export class ReadAccess extends HttpApiMiddleware.Tag<ReadAccess>()("gateway/http/ReadAccess", options) {}
export class WriteAccess extends HttpApiMiddleware.Tag<WriteAccess>()("gateway/http/WriteAccess", options) {}
export class OwnerAccess extends HttpApiMiddleware.Tag<OwnerAccess>()("gateway/http/OwnerAccess", options) {}

/** Before its body is read, a request from elsewhere finds nothing here. */
export class LoopbackAccess extends HttpApiMiddleware.Tag<LoopbackAccess>()("gateway/http/LoopbackAccess", {
  failure: Schema.Union(BadRequest, NoSuch, TooLarge, NoRoom)
}) {}

/** The admin API as far as it has one group: its handlers need no other. */
export const adminApiOf = <Id extends string, Endpoints extends HttpApiEndpoint.HttpApiEndpoint.Any, E, R>(
  group: HttpApiGroup.HttpApiGroup<Id, Endpoints, E, R>
) => HttpApi.make("admin").add(group).prefix("/admin/v1")
