import { HttpRouter, HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Context, Effect, Layer, Option, Predicate, Redacted } from "effect"
import { ForeignOrigin, InsufficientRole, InvalidRequest, NotSignedIn, UnknownEndpoint } from "../../domain/Failure.ts"
import { isAtLeast, type Role } from "../../domain/Organization.ts"
import { isOperatorToken, type Operator, Operators, SignInLimiter, scopeOf } from "../../services/admin/Operators.ts"
import { keyFrom } from "../../services/idempotency/Idempotency.ts"
import { presentedKey } from "../admission/Admission.ts"
import { isFromLoopback, type OwnNames, requireLoopback } from "../admission/Loopback.ts"
import { RequestContext } from "../admission/RequestContext.ts"
import type { DeclaredEndpoint } from "../schema/Endpoints.ts"
import { idempotencyKey } from "../schema/Headers.ts"
import {
  LoopbackAccess,
  memberAccessOf,
  OwnerAccess,
  OwnerOrMemberRead,
  OwnerOrMemberWrite,
  ReadAccess,
  receiveAdminBody,
  receiveCredential,
  requireMemberParameters,
  restrictAnswer,
  WriteAccess
} from "./AdminAccess.ts"

export const sessionCookie = "gateway_session"

export class AdminOptions extends Context.Tag("gateway/http/AdminOptions")<
  AdminOptions,
  OwnNames & {
    /** Whether operators may sign in from other machines. */
    readonly isConsolePublic: boolean
    /** Whether members may sign in from other machines. */
    readonly areMembersPublic: boolean
    readonly hasPayments?: boolean | undefined
    /** Whether the operator has set `publicUrl`. */
    readonly hasPublicUrl?: boolean | undefined
  }
>() {}

/** Returns true if only members may sign in from the request's machine, because the console is not public there. */
export const isForMembersOnly = ({ isConsolePublic, areMembersPublic, ...ownOrigins }: typeof AdminOptions.Service) =>
  Effect.map(isFromLoopback(ownOrigins), (isLocal) => areMembersPublic && !isConsolePublic && !isLocal)

const isPublic = ({ isConsolePublic, areMembersPublic }: typeof AdminOptions.Service) =>
  isConsolePublic || areMembersPublic

export const sessionOf = ({ cookies }: HttpServerRequest.HttpServerRequest): Redacted.Redacted | undefined => {
  const secret = cookies[sessionCookie]
  return secret === undefined || secret === "" ? undefined : Redacted.make(secret)
}

/**
 * If the request has a session, ignores a token that is not an operator's, because a single sign-on proxy may add its own
 * token to a browser's requests.
 */
const tokenOf = (request: HttpServerRequest.HttpServerRequest) => {
  const presentedToken = presentedKey(request.headers)
  return sessionOf(request) === undefined ? presentedToken : Option.filter(presentedToken, isOperatorToken)
}

const isReadMethod = (method: string) => method === "GET" || method === "HEAD"

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : "")

/** Fails with ForeignOrigin if a page of another origin sent the request. Browsers send the origin with each write. */
export const requireOwnOrigin = Effect.gen(function* () {
  const { publicUrl } = yield* AdminOptions
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { host = "", origin, "sec-fetch-site": site } = headers
  const ownOrigins = [originOf(publicUrl), `http://${host}`, `https://${host}`]
  const isOwn = origin === undefined ? site === "same-origin" : ownOrigins.includes(origin)
  if (!isOwn) return yield* new ForeignOrigin()
})

const nameOf = ({ method, path }: { readonly method: string; readonly path: string }) => `${method} ${path}`

/** Returns the check of a member's request. An endpoint that is not open to members returns 404. */
const makeMemberRestriction = (endpoints: ReadonlyArray<DeclaredEndpoint>) => {
  const memberAccesses = new Map(endpoints.map((endpoint) => [nameOf(endpoint), memberAccessOf(endpoint)]))
  return Effect.gen(function* () {
    const { route } = yield* HttpRouter.RouteContext
    const access = memberAccesses.get(nameOf(route))
    if (access === undefined) return yield* new UnknownEndpoint()
    yield* requireMemberParameters(access)
    yield* restrictAnswer(access)
  })
}

const makeAuthenticate = Effect.fnUntraced(function* (endpoints: ReadonlyArray<DeclaredEndpoint>) {
  const restrictToMembers = makeMemberRestriction(endpoints)
  const operators = yield* Operators
  const limiter = yield* SignInLimiter
  const options = yield* AdminOptions

  const canSignIn = ({ org }: Operator) =>
    org === null ? Effect.map(isForMembersOnly(options), (onlyMembers) => !onlyMembers) : Effect.succeed(true)

  const byToken = (token: Redacted.Redacted, address: string) =>
    Effect.gen(function* () {
      const operator = yield* operators.byToken(token)
      if (operator !== undefined && (yield* canSignIn(operator)))
        return { operator, via: "api", revalidate: operators.byToken(token) } as const
      yield* limiter.fail(address)
      return yield* new NotSignedIn({ message: "The operator's token is not valid." })
    })

  const bySession = (secret: Redacted.Redacted | undefined, method: string) =>
    Effect.gen(function* () {
      if (secret === undefined) {
        return yield* new NotSignedIn({ message: "Sign in, or send an operator's token." })
      }
      if (!isReadMethod(method)) yield* requireOwnOrigin
      const session = yield* operators.session(secret)
      if (session === undefined || !(yield* canSignIn(session.operator))) {
        return yield* new NotSignedIn({ message: "The session has expired. Sign in again." })
      }
      return { operator: session.operator, via: "console", revalidate: operators.session(secret) } as const
    })

  return (neededByOperators: Role, neededByMembers = neededByOperators) =>
    Effect.gen(function* () {
      yield* requireLoopback(isPublic(options), options)
      const request = yield* HttpServerRequest.HttpServerRequest
      const { address } = yield* RequestContext
      // The database rejects NUL, which would make the request fail with 500.
      if (request.url.includes("%00")) {
        return yield* new InvalidRequest({ message: "The URL must not contain the NUL character.", param: null })
      }
      const { revalidate, operator, via } = yield* Option.match(tokenOf(request), {
        onSome: (token) => byToken(token, address),
        onNone: () => bySession(sessionOf(request), request.method)
      })
      const isMember = operator.org !== null
      if (isMember) yield* restrictToMembers
      const needed = isMember ? neededByMembers : neededByOperators
      if (!isAtLeast(operator.role, needed)) return yield* new InsufficientRole({ needed })
      yield* receiveAdminBody
      const { id, name, role } = operator
      return { revalidate, actor: { name, via, role, operator: id, scope: scopeOf(operator) } }
    }).pipe(Effect.provideService(AdminOptions, options))
})

/** Destroys the connection of a long response when its token or session expires. A normal end would look complete. */
const disconnectOnExpiry = (revalidate: Effect.Effect<unknown>) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    revalidate.pipe(
      Effect.catchAllDefect(() => Effect.succeed("unknown")),
      Effect.delay("2 seconds"),
      Effect.repeat({ while: Predicate.isNotUndefined }),
      Effect.zipRight(Effect.sync(() => NodeHttpServerRequest.toServerResponse(request).destroy())),
      Effect.forkScoped
    )
  )

const readIdempotencyKey = Effect.flatMap(
  HttpServerRequest.HttpServerRequest,
  ({ headers: { [idempotencyKey]: key } }) => (key === undefined ? Effect.succeed(undefined) : keyFrom(key))
)

type NeededRoles = readonly [ofOperators: Role, ofMembers?: Role]

/** Provides the middleware that authenticates the callers of `endpoints`. */
export const accessLayer = (endpoints: ReadonlyArray<DeclaredEndpoint>) => {
  const makeWriteAccess = (...needed: NeededRoles) =>
    Effect.map(makeAuthenticate(endpoints), (authenticate) =>
      Effect.gen(function* () {
        const { actor } = yield* authenticate(...needed)
        return { ...actor, idempotencyKey: yield* readIdempotencyKey }
      })
    )
  const makeReadAccess = (...needed: NeededRoles) =>
    Effect.map(makeAuthenticate(endpoints), (authenticate) =>
      Effect.gen(function* () {
        const { actor, revalidate } = yield* authenticate(...needed)
        yield* disconnectOnExpiry(revalidate)
        return { ...actor, idempotencyKey: undefined }
      })
    )
  const loopbackAccess = Effect.map(AdminOptions, (options) =>
    Effect.zipRight(requireLoopback(isPublic(options), options), receiveCredential)
  )
  return Layer.mergeAll(
    Layer.effect(LoopbackAccess, loopbackAccess),
    Layer.effect(ReadAccess, makeReadAccess("read")),
    Layer.effect(WriteAccess, makeWriteAccess("write")),
    Layer.effect(OwnerAccess, makeWriteAccess("owner")),
    Layer.effect(OwnerOrMemberRead, makeReadAccess("owner", "read")),
    Layer.effect(OwnerOrMemberWrite, makeWriteAccess("owner", "write"))
  )
}
