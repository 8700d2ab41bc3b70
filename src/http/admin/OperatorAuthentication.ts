import { HttpRouter, HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Context, Effect, Layer, Option, Predicate, Redacted } from "effect"
import { ForeignOrigin, InsufficientRole, InvalidRequest, NotSignedIn, UnknownEndpoint } from "../../domain/Failure.ts"
import { isAtLeast, type Role } from "../../domain/Operator.ts"
import { type Operator, scopeOf } from "../../services/admin/Operator.ts"
import { isOperatorToken, Operators } from "../../services/admin/Operators.ts"
import { SignInLimiter } from "../../services/admin/SignInLimiter.ts"
import { keyFrom } from "../../services/idempotency/Fingerprint.ts"
import { presentedKey } from "../admission/CallerAuthentication.ts"
import { isFromLoopback, type OwnNames, requireLoopback } from "../admission/Loopback.ts"
import { RequestContext } from "../admission/RequestContext.ts"
import type { DeclaredEndpoint } from "../schema/Endpoints.ts"
import { idempotencyKey } from "../schema/Headers.ts"
import { LoopbackAccess, OwnerAccess, ReadAccess, WriteAccess } from "./Access.ts"
import { receiveAdminBody, receiveCredential } from "./AdminBody.ts"
import { memberAccessOf, requireOwnParameters, restrictAnswer } from "./Members.ts"

export const sessionCookie = "gateway_session"

export class AdminOptions extends Context.Tag("gateway/http/AdminOptions")<
  AdminOptions,
  OwnNames & {
    readonly consolePublic: boolean
    /** Members are let in from anywhere, and operators only where `consolePublic` does. */
    readonly membersPublic: boolean
    readonly takesPayments?: boolean | undefined
  }
>() {}

/** Whether a request comes from where only members are let in; operators are then as unknown as anybody. */
export const isForMembersOnly = ({ consolePublic, membersPublic, ...own }: typeof AdminOptions.Service) =>
  Effect.map(isFromLoopback(own), (isLocal) => membersPublic && !consolePublic && !isLocal)

const isPublic = ({ consolePublic, membersPublic }: typeof AdminOptions.Service) => consolePublic || membersPublic

export const sessionOf = ({ cookies }: HttpServerRequest.HttpServerRequest): Redacted.Redacted | undefined => {
  const secret = cookies[sessionCookie]
  return secret === undefined || secret === "" ? undefined : Redacted.make(secret)
}

/**
 * A proxy with single sign-on may put a token of its own on each request that a browser sends. The session counts then, and
 * not that token.
 */
const tokenOf = (request: HttpServerRequest.HttpServerRequest) => {
  const presented = presentedKey(request.headers)
  return sessionOf(request) === undefined ? presented : Option.filter(presented, isOperatorToken)
}

const isSafe = (method: string) => method === "GET" || method === "HEAD"

const originOf = (url: string): string => (URL.canParse(url) ? new URL(url).origin : "")

/** Browsers send the origin of the page with each write; its host is that of the address it was sent to. */
export const requireOwnOrigin = Effect.gen(function* () {
  const { publicUrl } = yield* AdminOptions
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const { host = "", origin, "sec-fetch-site": site } = headers
  const own = [originOf(publicUrl), `http://${host}`, `https://${host}`]
  const isOwn = origin === undefined ? site === "same-origin" : own.includes(origin)
  if (!isOwn) return yield* new ForeignOrigin()
})

const nameOf = ({ method, path }: { readonly method: string; readonly path: string }) => `${method} ${path}`

/** An endpoint that does not say what members see of it does not exist for them. */
const restrictingToMembers = (endpoints: ReadonlyArray<DeclaredEndpoint>) => {
  const accesses = new Map(endpoints.map((endpoint) => [nameOf(endpoint), memberAccessOf(endpoint)]))
  return Effect.gen(function* () {
    const { route } = yield* HttpRouter.RouteContext
    const access = accesses.get(nameOf(route))
    if (access === undefined) return yield* new UnknownEndpoint()
    yield* requireOwnParameters(access)
    yield* restrictAnswer(access)
  })
}

const makeAuthenticate = Effect.fnUntraced(function* (endpoints: ReadonlyArray<DeclaredEndpoint>) {
  const restrictToMembers = restrictingToMembers(endpoints)
  const operators = yield* Operators
  const limiter = yield* SignInLimiter
  const options = yield* AdminOptions

  const isLetIn = ({ org }: Operator) =>
    org === null ? Effect.map(isForMembersOnly(options), (membersOnly) => !membersOnly) : Effect.succeed(true)

  const byToken = (token: Redacted.Redacted, address: string) =>
    Effect.gen(function* () {
      const operator = yield* operators.byToken(token)
      if (operator !== undefined && (yield* isLetIn(operator)))
        return { operator, via: "api", again: operators.byToken(token) } as const
      yield* limiter.fail(address)
      return yield* new NotSignedIn({ message: "The operator's token is not valid." })
    })

  const bySession = (secret: Redacted.Redacted | undefined, method: string) =>
    Effect.gen(function* () {
      if (secret === undefined) {
        return yield* new NotSignedIn({ message: "Sign in, or send an operator's token." })
      }
      if (!isSafe(method)) yield* requireOwnOrigin
      const found = yield* operators.session(secret)
      if (found === undefined || !(yield* isLetIn(found.operator))) {
        return yield* new NotSignedIn({ message: "The session has ended: sign in again." })
      }
      return { operator: found.operator, via: "console", again: operators.session(secret) } as const
    })

  return (needed: Role) =>
    Effect.gen(function* () {
      yield* requireLoopback(isPublic(options), options)
      const request = yield* HttpServerRequest.HttpServerRequest
      const { address } = yield* RequestContext
      // No text of the database has it.
      if (request.url.includes("%00")) {
        return yield* new InvalidRequest({ message: "The address must not contain the character NUL.", param: null })
      }
      const { again, operator, via } = yield* Option.match(tokenOf(request), {
        onSome: (token) => byToken(token, address),
        onNone: () => bySession(sessionOf(request), request.method)
      })
      if (operator.org !== null) yield* restrictToMembers
      if (!isAtLeast(operator.role, needed)) return yield* new InsufficientRole({ needed })
      yield* receiveAdminBody
      const { id, name, role } = operator
      return { again, actor: { name, via, role, operator: id, scope: scopeOf(operator) } }
    }).pipe(Effect.provideService(AdminOptions, options))
})

/** A long answer ends with the token or the session of who reads it: an end would pass for the whole. */
const breakOffWith = (again: Effect.Effect<unknown>) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
    again.pipe(
      Effect.catchAllDefect(() => Effect.succeed("not known")),
      Effect.delay("2 seconds"),
      Effect.repeat({ while: Predicate.isNotUndefined }),
      Effect.zipRight(Effect.sync(() => NodeHttpServerRequest.toServerResponse(request).destroy())),
      Effect.forkScoped
    )
  )

const readKey = Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers: { [idempotencyKey]: sent } }) =>
  sent === undefined ? Effect.succeed(undefined) : keyFrom(sent)
)

/** Lets in whoever may call one of `endpoints`. */
export const accessLayer = (endpoints: ReadonlyArray<DeclaredEndpoint>) => {
  const writing = (needed: Role) =>
    Effect.map(makeAuthenticate(endpoints), (authenticate) =>
      Effect.gen(function* () {
        const { actor } = yield* authenticate(needed)
        return { ...actor, idempotencyKey: yield* readKey }
      })
    )
  const reading = Effect.map(makeAuthenticate(endpoints), (authenticate) =>
    Effect.gen(function* () {
      const { actor, again } = yield* authenticate("read")
      yield* breakOffWith(again)
      return { ...actor, idempotencyKey: undefined }
    })
  )
  const loopback = Effect.map(AdminOptions, (options) =>
    Effect.zipRight(requireLoopback(isPublic(options), options), receiveCredential)
  )
  return Layer.mergeAll(
    Layer.effect(LoopbackAccess, loopback),
    Layer.effect(ReadAccess, reading),
    Layer.effect(WriteAccess, writing("write")),
    Layer.effect(OwnerAccess, writing("owner"))
  )
}
