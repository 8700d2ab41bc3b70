import { HttpApiBuilder, HttpApiEndpoint, HttpApiGroup, HttpServerRequest, OpenApi } from "@effect/platform"
import { Effect, Redacted, Schema } from "effect"
import packageJson from "../../../package.json" with { type: "json" }
import { InvalidRequest, NotSignedIn } from "../../domain/Failure.ts"
import { Role } from "../../domain/Operator.ts"
import { Operators, type Session, sessionHours } from "../../services/admin/Operators.ts"
import { SignInLimiter } from "../../services/admin/SignInLimiter.ts"
import { Catalog } from "../../services/catalog/Catalog.ts"
import { PaymentTerms } from "../../services/payments/PaymentProvider.ts"
import { body, optionalField } from "../../services/resources/BodyFields.ts"
import { TextOrNull, UnixSeconds, Usd } from "../../services/resources/Record.ts"
import { json, respond } from "../Answer.ts"
import { RequestContext } from "../admission/RequestContext.ts"
import { adminApiOf, BadRequest, Forbidden, LoopbackAccess, TooManyAttempts, Unauthenticated } from "./Access.ts"
import { AdminOptions, isForMembersOnly, requireOwnOrigin, sessionCookie, sessionOf } from "./OperatorAuthentication.ts"

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

    // Without a path it is for the address of the API, wherever a proxy has put it.
    const cookie = (secret: string, maxAge: number) =>
      `${sessionCookie}=${secret}; HttpOnly; SameSite=Strict; Max-Age=${maxAge}${isSecure ? "; Secure" : ""}`
    const payments = options.takesPayments === true ? { minimum_usd: minimum, maximum_usd: maximum } : null
    const recordOf = ({ expires_at, operator: { id, name, org, org_name, role } }: Session) =>
      Schema.encodeSync(SessionRecord)({
        operator: { id, name, role },
        ...(org !== null && { organization: { id: org, name: org_name } }),
        payments,
        expires_at,
        sandbox: catalog.current.sandbox,
        version
      })

    return handlers
      .handle("open", ({ payload: { link, token } }) =>
        Effect.gen(function* () {
          const { headers } = yield* HttpServerRequest.HttpServerRequest
          // Otherwise another site could sign a browser in to an account of its own.
          if (headers["origin"] !== undefined) yield* Effect.provideService(requireOwnOrigin, AdminOptions, options)
          if ((link === undefined) === (token === undefined)) {
            return yield* new InvalidRequest({ message: "Send either `link` or `token`.", param: null })
          }
          const { address } = yield* RequestContext
          const admission = { membersOnly: yield* isForMembersOnly(options) }
          const opened = yield* link === undefined
            ? operators.openByToken(Redacted.make(token?.trim() ?? ""), admission)
            : operators.openByLink(Redacted.make(link), admission)
          if (opened === undefined) {
            yield* limiter.fail(address)
            const message =
              link === undefined ? "The operator's token is not valid." : "The link was used before, or has expired."
            return yield* new NotSignedIn({ message })
          }
          const headersOut = { "set-cookie": cookie(Redacted.value(opened.secret), maxAgeSeconds) }
          return respond(json(200, recordOf(opened), headersOut))
        })
      )
      .handleRaw("show", ({ request }) =>
        Effect.gen(function* () {
          const secret = sessionOf(request)
          const found = secret && (yield* operators.session(secret))
          const isElsewhere = found?.operator.org === null && (yield* isForMembersOnly(options))
          if (found === undefined || isElsewhere) return yield* new NotSignedIn({ message: "Nobody is signed in." })
          return respond(json(200, recordOf(found)))
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
