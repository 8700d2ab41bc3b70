import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "@effect/platform"
import { Schema } from "effect"
import { Role } from "../../../domain/Operator.ts"
import { body, optionalField } from "../../../services/resources/BodyFields.ts"
import { TextOrNull, UnixSeconds, Usd } from "../../../services/resources/Record.ts"
import { BadRequest, Forbidden, LoopbackAccess, TooManyAttempts, Unauthenticated } from "../Access.ts"

export const SessionRecord = Schema.Struct({
  operator: Schema.Struct({ id: Schema.String, name: Schema.String, role: Role }),
  organization: Schema.optional(Schema.Struct({ id: Schema.String, name: TextOrNull })).annotations({
    description: "Whose member it is; left out for operators of the gateway."
  }),
  payments: Schema.NullOr(Schema.Struct({ minimum_usd: Usd, maximum_usd: Usd })).annotations({
    description: "The least and the most that one payment can be; null where payments are not set up."
  }),
  expires_at: UnixSeconds,
  /** Whether models without a credential are answered by the sandbox. */
  sandbox: Schema.Boolean,
  version: Schema.String
}).annotations({ identifier: "Session" })

const Credential = body({
  link: optionalField("link", Schema.NonEmptyString, "must be a text", "The secret of a one-time link."),
  token: optionalField("token", Schema.NonEmptyString, "must be a text", "An operator's token.")
})

const open = HttpApiEndpoint.post("open", "/session")
  .setPayload(Credential)
  .addSuccess(SessionRecord)
  .addError(Unauthenticated)
  .addError(BadRequest)
  .addError(TooManyAttempts)
  .annotate(OpenApi.Summary, "Sign in: sets the cookie of a session of 12 hours")

const show = HttpApiEndpoint.get("show", "/session")
  .addSuccess(SessionRecord)
  .addError(Unauthenticated)
  .annotate(OpenApi.Summary, "Who is signed in")

const close = HttpApiEndpoint.del("close", "/session").annotate(OpenApi.Summary, "Sign out: ends the session")

export const Sessions = HttpApiGroup.make("session")
  .add(open)
  .add(show)
  .add(close)
  .addError(Forbidden)
  .middleware(LoopbackAccess)
