import type { IncomingMessage } from "node:http"
import { type HttpApp, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Cause, Effect } from "effect"
import type { Caller } from "../../domain/ApiKey.ts"
import { Aborted, AddressBlocked, type Failure, type InsufficientScope } from "../../domain/Failure.ts"
import { Auth } from "../../services/access/Auth.ts"
import { Instance } from "../../services/instance/Instance.ts"
import type { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { ensuringSync, flatMapEager, isValue } from "../../services/runtime/Fibers.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import { HeartbeatLost } from "../../services/sql/Outage.ts"
import * as Answer from "../Answer.ts"
import { makeAdmission } from "../admission/AdmittedRequest.ts"
import { presentedKey, presentedSecret } from "../admission/CallerAuthentication.ts"
import type { Endpoint, EndpointBase } from "../admission/Endpoint.ts"
import { requireScope } from "../admission/ModelAccess.ts"
import { makeRateUnits } from "../admission/RateUnits.ts"
import { makeContextReader, RequestContext } from "../admission/RequestContext.ts"
import { explain, makeReports, type Outcome } from "../admission/RequestOutcome.ts"
import { makeBodyReceiver, smallBody } from "../body/BodyReceiver.ts"
import { provideBody } from "../body/RequestBody.ts"
import type { Exchange } from "../connections/Connections.ts"
import { CurrentCaller } from "../schema/Headers.ts"
import { findServed, type ServedPath } from "./PathTable.ts"
import { explainPlatform, unknownPath } from "./PlatformErrors.ts"

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
