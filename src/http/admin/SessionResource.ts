import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpServerRequest, OpenApi } from "@effect/platform"
import { Effect, Redacted, Schema } from "effect"
import packageJson from "../../../package.json" with { type: "json" }
import { InvalidRequest, NotSignedIn } from "../../domain/Failure.ts"
import { Role } from "../../domain/Organization.ts"
import { Operators, type Session, SignInLimiter, sessionHours } from "../../services/admin/Operators.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { PaymentTerms } from "../../services/payments/PaymentProvider.ts"
import { body, optionalField } from "../../services/resources/ResourceInput.ts"
import { TextOrNull, UnixSeconds, Usd } from "../../services/resources/ResourceRecord.ts"
import { RequestContext } from "../admission/RequestContext.ts"
import { json, respond } from "../HttpAnswer.ts"
import { adminApiOf, BadRequest, Forbidden, LoopbackAccess, TooManyAttempts, Unauthenticated } from "./AdminAccess.ts"
import { AdminOptions, isForMembersOnly, requireOwnOrigin, sessionCookie, sessionOf } from "./OperatorAuthentication.ts"

export const SessionRecord = Schema.Struct({
  operator: Schema.Struct({ id: Schema.String, name: Schema.String, role: Role }),
  organization: Schema.optional(Schema.Struct({ id: Schema.String, name: TextOrNull })).annotations({
    description: "The member's organization. Absent for operators of the gateway."
  }),
  payments: Schema.NullOr(Schema.Struct({ minimum_usd: Usd, maximum_usd: Usd })).annotations({
    description: "The minimum and maximum of one payment. Null if payments are not configured."
  }),
  public_url: TextOrNull.annotations({
    description: "The address of the gateway for customers. Null if `PUBLIC_URL` is not set."
  }),
  expires_at: UnixSeconds,
  /** Whether the sandbox serves models without a credential. */
  sandbox: Schema.Boolean,
  version: Schema.String
}).annotations({ identifier: "Session" })

const Credential = body({
  link: optionalField("link", Schema.NonEmptyString, "must be a string", "The secret of a one-time link."),
  token: optionalField("token", Schema.NonEmptyString, "must be a string", "An operator's token.")
})

const openEndpoint = HttpApiEndpoint.post("open", "/session")
  .setPayload(Credential)
  .addSuccess(SessionRecord)
  .addError(Unauthenticated)
  .addError(BadRequest)
  .addError(TooManyAttempts)
  .annotate(OpenApi.Summary, "Sign in and set a session cookie that is valid for 12 hours")

const showEndpoint = HttpApiEndpoint.get("show", "/session")
  .addSuccess(SessionRecord)
  .addError(Unauthenticated)
  .annotate(OpenApi.Summary, "Show the signed-in operator")

const closeEndpoint = HttpApiEndpoint.del("close", "/session").annotate(OpenApi.Summary, "Sign out and end the session")

export const Sessions = HttpApiGroup.make("session")
  .add(openEndpoint)
  .add(showEndpoint)
  .add(closeEndpoint)
  .addError(Forbidden)
  .middleware(LoopbackAccess)

const maxAgeSeconds = sessionHours * 3600

export const SessionHandlers = HttpApiBuilder.group(
  adminApiOf(Sessions),
  "session",
  Effect.fnUntraced(function* (handlers) {
    const operators = yield* Operators
    const limiter = yield* SignInLimiter
    const catalog = yield* Catalog
    const options = yield* AdminOptions
    const { maximum, minimum } = yield* PaymentTerms
    const { version } = packageJson
    const isSecure = options.publicUrl.startsWith("https:")

    // Without a path, the cookie applies to the API's path behind any proxy prefix.
    const cookie = (secret: string, maxAge: number) =>
      `${sessionCookie}=${secret}; HttpOnly; SameSite=Strict; Max-Age=${maxAge}${isSecure ? "; Secure" : ""}`
    const payments = options.hasPayments === true ? { minimum_usd: minimum, maximum_usd: maximum } : null
    const recordOf = ({ expires_at, operator: { id, name, org, org_name, role } }: Session) =>
      Schema.encodeSync(SessionRecord)({
        operator: { id, name, role },
        ...(org !== null && { organization: { id: org, name: org_name } }),
        payments,
        public_url: options.hasPublicUrl === true ? options.publicUrl : null,
        expires_at,
        sandbox: catalog.current.sandbox,
        version
      })

    return handlers
      .handle("open", ({ payload: { link, token } }) =>
        Effect.gen(function* () {
          const { headers } = yield* HttpServerRequest.HttpServerRequest
          // Without this check, another site could sign the browser in to an account of that site's choice.
          if (headers["origin"] !== undefined) yield* Effect.provideService(requireOwnOrigin, AdminOptions, options)
          if ((link === undefined) === (token === undefined)) {
            return yield* new InvalidRequest({ message: "Send either `link` or `token`.", param: null })
          }
          const { address } = yield* RequestContext
          const admission = { isForMembersOnly: yield* isForMembersOnly(options) }
          const newSession = yield* link === undefined
            ? operators.openByToken(Redacted.make(token?.trim() ?? ""), admission)
            : operators.openByLink(Redacted.make(link), admission)
          if (newSession === undefined) {
            yield* limiter.fail(address)
            const message =
              link === undefined ? "The operator's token is not valid." : "The link was already used or has expired."
            return yield* new NotSignedIn({ message })
          }
          const responseHeaders = { "set-cookie": cookie(Redacted.value(newSession.secret), maxAgeSeconds) }
          return respond(json(200, recordOf(newSession), responseHeaders))
        })
      )
      .handleRaw("show", ({ request }) =>
        Effect.gen(function* () {
          const secret = sessionOf(request)
          const session = secret && (yield* operators.session(secret))
          const isElsewhere = session?.operator.org === null && (yield* isForMembersOnly(options))
          if (session === undefined || isElsewhere) return yield* new NotSignedIn({ message: "You are not signed in." })
          return respond(json(200, recordOf(session)))
        })
      )
      .handleRaw("close", ({ request }) =>
        Effect.gen(function* () {
          yield* Effect.provideService(requireOwnOrigin, AdminOptions, options)
          const secret = sessionOf(request)
          if (secret !== undefined) yield* operators.close(secret)
          return respond({ status: 204, headers: { "set-cookie": cookie("", 0) }, body: "" })
        })
      )
  })
)
