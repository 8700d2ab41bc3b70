import type { IncomingMessage } from "node:http"
import { HttpApiError, type HttpApp, HttpServerError, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Cause, Chunk, Effect, Option } from "effect"
import type { Caller } from "../../domain/ApiKey.ts"
import {
  Aborted,
  AddressBlocked,
  type Failure,
  type InsufficientScope,
  InvalidRequest,
  MisspeltPath,
  RateLimited,
  UnknownEndpoint,
  UnknownMethod
} from "../../domain/Failure.ts"
import { distanceWithin } from "../../domain/Nearest.ts"
import { Auth } from "../../services/access/Auth.ts"
import { RateLimiter } from "../../services/access/RateLimiter.ts"
import { TokenLimiter } from "../../services/access/TokenLimiter.ts"
import { Instance } from "../../services/instance/Instance.ts"
import type { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { ensuringSync, flatMapEager, isValue } from "../../services/runtime/Fibers.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import { HeartbeatLost, NoAnswer } from "../../services/sql/Outage.ts"
import * as Answer from "../Answer.ts"
import { unreadBody } from "../admin/AdminBody.ts"
import { explain, makeAdmission, makeReports, type Outcome } from "../admission/AdmittedRequest.ts"
import { presentedKey, presentedSecret } from "../admission/CallerAuthentication.ts"
import type { Endpoint, EndpointBase } from "../admission/Endpoint.ts"
import { requireScope } from "../admission/ModelAccess.ts"
import { makeContextReader, RequestContext } from "../admission/RequestContext.ts"
import { makeBodyReceiver, smallBody } from "../body/BodyReceiver.ts"
import { provideBody } from "../body/RequestBody.ts"
import type { Exchange } from "../connections/Connections.ts"
import { apiPrefix } from "../schema/Endpoints.ts"
import { CurrentCaller } from "../schema/Headers.ts"
import { findServed, isBesideApi, type PublishedPath, publishedPaths, type ServedPath } from "./PathTable.ts"
import { isMisspelt, pathOf } from "./RequestPath.ts"

/** Strangers may send any path: a longer one is compared with nothing. */
const longestPath = 200
const mostSegments = 10
const mostMistakes = 2

const prefix = apiPrefix.slice(1)

/** Below `/v1`, which all have. */
const published = publishedPaths.map((path) => ({ ...path, segments: path.shown.toLowerCase().split("/").slice(2) }))
type Published = (typeof published)[number]

const isParameter = (segment: string): boolean => segment.startsWith("{")

const hasParameter = ({ segments }: Published): boolean => segments.some(isParameter)

/** `images` may have one mistake, `completions` two. */
const segmentDistance = (given: string, meant: string): number => {
  if (isParameter(meant)) return 0
  const most = meant.length < 4 ? 0 : meant.length < 9 ? 1 : mostMistakes
  const distance = distanceWithin(most, given, meant)
  return distance > most ? mostMistakes + 1 : distance
}

const distance = (given: ReadonlyArray<string>, { segments }: Published): number =>
  given.length === segments.length
    ? given.reduce((sum, segment, index) => sum + segmentDistance(segment, segments[index] ?? ""), 0)
    : mostMistakes + 1

const findNear = (given: ReadonlyArray<string>): Published | undefined =>
  [0, 1, 2].flatMap((mistakes) => published.filter((path) => distance(given, path) === mistakes))[0]

const isPartOf = (given: string, { segments }: Published): boolean => {
  const path = segments.join("/")
  return path.startsWith(`${given}/`) || path.endsWith(`/${given}`)
}

/** Such as `/completions`, where no other path begins or ends like that. */
const findWhole = (given: ReadonlyArray<string>): Published | undefined => {
  const part = given.join("/")
  const [whole, ...others] = part === "" ? [] : published.filter((path) => !hasParameter(path) && isPartOf(part, path))
  return others.length === 0 ? whole : undefined
}

/** What is meant by a path without `/v1`, with something else before it, or with mistakes. */
const findMeant = (path: string): PublishedPath | undefined => {
  const segments = path.toLowerCase().split("/").slice(1)
  if (segments.length > mostSegments) return undefined
  const tails = segments.map((_, index) => segments.slice(index)).filter(([first]) => first !== prefix)
  const exact = tails.flatMap((tail) => published.filter((one) => distance(tail, one) === 0))
  const [given = []] = tails
  return exact[0] ?? findNear(given) ?? findWhole(given)
}

/** Says what is near, of what everyone may know. */
const unknownPath = (target: string): UnknownEndpoint | MisspeltPath | UnknownMethod => {
  const path = pathOf(target)
  if (path.length > longestPath || isMisspelt(target) || isBesideApi(path)) return new UnknownEndpoint()
  const same = publishedPaths.find(({ pattern }) => pattern.test(path))
  if (same !== undefined) return new UnknownMethod({ path: same.shown, methods: same.methods })
  const meant = findMeant(path)
  return meant === undefined ? new UnknownEndpoint() : new MisspeltPath({ meant: meant.shown })
}

const explainDecoding = (error: HttpApiError.HttpApiDecodeError): InvalidRequest => {
  const [
    {
      message,
      path: [param]
    }
  ] = [...error.issues, { message: error.message, path: [] }]
  return param === undefined
    ? new InvalidRequest({ message: "The body must be a JSON object.", param: null })
    : new InvalidRequest({ message, param: param.toString() })
}

const explainError = (error: unknown): unknown => {
  if (error instanceof HttpServerError.RouteNotFound) return unknownPath(error.request.url)
  return error instanceof HttpApiError.HttpApiDecodeError ? explainDecoding(error) : error
}

/** Turns what the platform fails or dies with into the failures of the gateway. */
const explainPlatform = (cause: Cause.Cause<unknown>): Cause.Cause<unknown> => {
  const unread = Option.flatMap(Cause.dieOption(cause), unreadBody)
  return Option.isSome(unread) ? Cause.fail(unread.value) : Cause.map(cause, explainError)
}

/** The unit of its key's rate that a generating request takes, whatever becomes of it. */
const makeRateUnits = Effect.gen(function* () {
  const limiter = yield* RateLimiter
  const tokenLimiter = yield* TokenLimiter

  /** What its key has left of its tokens; a hold says more. */
  const showTokens = ({ caller, tokens }: RequestRecord): Effect.Effect<void> =>
    tokens === undefined
      ? Effect.void
      : Effect.map(tokenLimiter.peek(caller.key, tokens.limit), (allowance) => {
          tokens.allowance ??= allowance
        })

  const take = (record: RequestRecord): Effect.Effect<void, RateLimited> => {
    const { caller, rate } = record
    return Effect.flatMap(limiter.take(caller.key, rate.limit), (allowance) => {
      rate.allowance = allowance
      return flatMapEager(showTokens(record), () =>
        allowance.admitted ? Effect.void : new RateLimited({ limit: rate.limit })
      )
    })
  }

  /** For the answer's headers. */
  const show = (record: RequestRecord): Effect.Effect<void> => {
    const { caller, rate } = record
    return Effect.flatMap(limiter.peek(caller.key, rate.limit), (allowance) => {
      rate.allowance = allowance
      return showTokens(record)
    })
  }

  /** Where a request fails before its hold has taken the unit. */
  const takeLate = <E>(record: RequestRecord, cause: Cause.Cause<E>): Effect.Effect<never, E | RateLimited> => {
    const failed = Effect.failCause(cause)
    if (record.rate.allowance !== undefined || Cause.isInterruptedOnly(cause)) return failed
    if (Option.isSome(Cause.failureOption(cause))) return Effect.zipRight(take(record), failed)
    // It may have been taken all the same, or the database is away: a client must not wait again.
    if (Chunk.some(Cause.defects(cause), (defect) => defect instanceof NoAnswer)) return failed
    return take(record).pipe(
      Effect.interruptible,
      Effect.timeoutOption("500 millis"),
      Effect.catchAllDefect(() => Effect.void),
      Effect.zipRight(failed)
    )
  }

  return { take, show, takeLate }
})

export interface PipelineOptions {
  readonly trustedProxies: number
  readonly defaultRpm: number
  readonly takesPayments?: boolean | undefined
}

type Context = typeof RequestContext.Service

interface Matched<E extends EndpointBase> extends Exchange {
  readonly endpoint: E
}

/** The steps in which what generates differs from all else. */
interface Way<E extends EndpointBase, Client, A, B, R> {
  readonly enter: (matched: Matched<E>, context: Context) => Effect.Effect<Client, Failure>
  readonly handle: (matched: Matched<E>, context: Context, client: Client) => Effect.Effect<A, unknown, R>
  readonly answer: (matched: Matched<E>, context: Context, answer: A) => Effect.Effect<B>
  readonly refuse: (matched: Matched<E>, context: Context, cause: Cause.Cause<unknown>) => Effect.Effect<B>
}

const untraced: ReadonlySet<string> = new Set(["system", "media", "none"])

const isSmall = ({ complete, readableLength }: IncomingMessage): boolean => complete && readableLength <= smallBody

/** Health is answered even while the database is away. */
const unlessUnknown = (isBlocked: Effect.Effect<boolean>) =>
  isBlocked.pipe(
    Effect.interruptible,
    Effect.timeoutTo({ duration: "500 millis", onSuccess: (isKnown) => isKnown, onTimeout: () => false }),
    Effect.catchAllDefect(() => Effect.succeed(false))
  )

/**
 * Every request takes the same steps, which stand here in their order: block list, path, key, rate, scope, handler,
 * answer, report. `walk` runs them.
 */
export const makePipeline = Effect.fnUntraced(function* (options: PipelineOptions) {
  const auth = yield* Auth
  const inFlight = yield* InFlight
  const instance = yield* Instance
  const readContext = yield* makeContextReader(options)
  const receiver = yield* makeBodyReceiver
  const beginAdmission = yield* makeAdmission({ ...options, receiver })
  const rates = yield* makeRateUnits
  const { conclude, refuse, reportAnswer } = yield* makeReports

  /** Its id, its client's address, its trace. */
  const begin = ({ endpoint, request, response }: Matched<EndpointBase>): Context => {
    const context = readContext(request, untraced.has(endpoint.surface) ? undefined : endpoint)
    if (context.trace !== undefined) response.setHeader("traceresponse", context.trace.span.traceparent)
    if (endpoint.idHeader !== undefined) response.setHeader(endpoint.idHeader, context.requestId)
    return context
  }

  const checkBlockList = (address: string, isForMachines = false): Effect.Effect<void, AddressBlocked> => {
    const isBlocked = auth.isBlocked(address)
    return Effect.flatMap(isForMachines ? unlessUnknown(isBlocked) : isBlocked, (blocked) =>
      blocked ? new AddressBlocked() : Effect.void
    )
  }

  const checkPath = ({ endpoint, request: { url = "" } }: Matched<ServedPath>): Effect.Effect<undefined, Failure> =>
    endpoint.isServed && (options.takesPayments === true || !endpoint.isOfPayments)
      ? Effect.succeed(undefined)
      : unknownPath(url)

  const recallKey = ({ headers }: IncomingMessage): Caller | undefined => {
    const secret = presentedSecret(headers)
    return secret === undefined ? undefined : auth.recall(secret)
  }

  /** A customer's key, which waits for nothing if it is known and fresh while no address is blocked. */
  const enterWithKey = ({ request }: Matched<EndpointBase>, { address }: Context): Effect.Effect<Caller, Failure> => {
    const recalled = recallKey(request)
    return recalled === undefined
      ? Effect.flatMap(checkBlockList(address), () => auth.authenticate(presentedKey(request.headers)))
      : Effect.succeed(recalled)
  }

  const enter = (matched: Matched<ServedPath>, context: Context): Effect.Effect<Caller | undefined, Failure> =>
    matched.endpoint.needsKey
      ? enterWithKey(matched, context)
      : Effect.zipRight(checkBlockList(context.address, matched.endpoint.isForMachines), checkPath(matched))

  const checkScope = ({ checksScope, surface }: Endpoint, caller: Caller): Effect.Effect<void, InsufficientScope> =>
    checksScope === true ? Effect.void : requireScope(caller, surface)

  const checkRateAndScope = (
    { endpoint, request }: Matched<Endpoint>,
    record: RequestRecord
  ): Effect.Effect<void, Failure> => {
    if (!instance.isAdmitting()) return Effect.die(new HeartbeatLost())
    if (inFlight.isDraining()) return Effect.zipRight(rates.show(record), new Aborted())
    const scope = checkScope(endpoint, record.caller)
    if (!isValue(scope)) return Effect.zipRight(rates.take(record), scope)
    return endpoint.admitsWithHold && isSmall(request) ? scope : rates.take(record)
  }

  /** Goes on when the client leaves: begun work is paid for and logged. */
  const generate = (matched: Matched<Endpoint>, context: Context, caller: Caller) => {
    const { endpoint, request, response } = matched
    const admitted = beginAdmission(endpoint, request, response, context, caller)
    const { record } = admitted
    const finish = (outcome: Outcome) => {
      admitted.release()
      return flatMapEager(conclude(endpoint, request, record, outcome), () => Effect.succeed(outcome.answer))
    }
    return inFlight.track(
      Effect.matchCauseEffect(
        Effect.suspend(() => flatMapEager(checkRateAndScope(matched, record), () => endpoint.answer(admitted))),
        {
          onFailure: (cause) =>
            rates.takeLate(record, cause).pipe(
              Effect.catchAllCause((late) => explain(late, endpoint, record, response)),
              Effect.flatMap(finish)
            ),
          onSuccess: (answer) => finish({ answer, code: null })
        }
      ),
      record
    )
  }

  /** A client that reuses the connection would find it closed. */
  const closing = () => (inFlight.isStopping() ? { connection: "close" } : undefined)

  const send = ({ response }: Exchange, answer: Answer.Answer | undefined): Effect.Effect<void> => {
    if (answer === undefined) return Effect.void
    const headers = closing()
    return Answer.send(response, headers ? { ...answer, headers: { ...answer.headers, ...headers } } : answer)
  }

  const generating: Way<Endpoint, Caller, Answer.Answer | undefined, void, never> = {
    enter: enterWithKey,
    handle: generate,
    answer: (matched, _, answer) => send(matched, answer),
    refuse: (matched, context, cause) =>
      Effect.flatMap(refuse(matched.endpoint, matched.request, context, cause), (answer) => send(matched, answer))
  }

  const respond = (
    { endpoint: { surface } }: Matched<ServedPath>,
    { requestId }: Context,
    answer: HttpServerResponse.HttpServerResponse
  ) =>
    HttpServerResponse.setHeaders(answer, {
      "x-request-id": requestId,
      ...closing(),
      ...(surface === "admin" && { "cache-control": "no-store" })
    })

  /** By the platform's router, and ended when the client leaves. */
  const serving = <E, R>(
    app: HttpApp.Default<E, R>
  ): Way<
    ServedPath,
    Caller | undefined,
    HttpServerResponse.HttpServerResponse,
    HttpServerResponse.HttpServerResponse,
    R | HttpServerRequest.HttpServerRequest
  > => ({
    enter,
    handle: ({ endpoint, request }, context, caller) =>
      (caller === undefined ? app : Effect.provideService(app, CurrentCaller, caller)).pipe(
        Effect.mapErrorCause(explainPlatform),
        Effect.provideService(RequestContext, context),
        provideBody(receiver.body(request, endpoint.surface, Effect.void))
      ),
    answer: (matched, context, answer) => {
      const { endpoint, request, response } = matched
      const status = response.headersSent ? response.statusCode : answer.status
      reportAnswer(endpoint, request, context, { status, code: null })
      return Effect.succeed(respond(matched, context, answer))
    },
    refuse: (matched, context, cause) => {
      const { endpoint, request } = matched
      if (Cause.isInterruptedOnly(cause)) {
        reportAnswer(endpoint, request, context, { status: 499, code: "client_closed" })
        return Effect.interrupt
      }
      return Effect.map(refuse(endpoint, request, context, cause), (answer) =>
        respond(matched, context, Answer.respond(answer))
      )
    }
  })

  const walk = <E extends EndpointBase, Client, A, B, R>(
    way: Way<E, Client, A, B, R>,
    matched: Matched<E>
  ): Effect.Effect<B, never, R> =>
    Effect.suspend(() => {
      const context = begin(matched)
      const { trace } = context
      const walked = Effect.matchCauseEffect(
        flatMapEager(way.enter(matched, context), (client) => way.handle(matched, context, client)),
        {
          onFailure: (cause) => way.refuse(matched, context, cause),
          onSuccess: (answer) => way.answer(matched, context, answer)
        }
      )
      return trace === undefined ? walked : ensuringSync(walked, () => trace.end())
    })

  return {
    /** To be run uninterruptibly. */
    generate: (matched: Matched<Endpoint>) => walk(generating, matched),
    /** With what the platform's router makes of the request. */
    serve: <E, R>(app: HttpApp.Default<E, R>) => {
      const way = serving(app)
      return Effect.flatMap(HttpServerRequest.HttpServerRequest, (served) => {
        const request = NodeHttpServerRequest.toIncomingMessage(served)
        const response = NodeHttpServerRequest.toServerResponse(served)
        return walk(way, { endpoint: findServed(request), request, response })
      })
    }
  }
})
