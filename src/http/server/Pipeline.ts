import type { IncomingMessage } from "node:http"
import { HttpApiError, type HttpApp, HttpServerError, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Cause, Effect, Option } from "effect"
import type { Caller } from "../../domain/ApiKey.ts"
import { Aborted, AddressBlocked, type Failure, InvalidRequest } from "../../domain/Failure.ts"
import { Auth } from "../../services/access/Auth.ts"
import { Instance } from "../../services/instance/Instance.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import { HeartbeatLost } from "../../services/sql/Outage.ts"
import * as Answer from "../Answer.ts"
import { unreadBody } from "../admin/AdminBody.ts"
import { type Admission, type Endpoint, type EndpointBase, makeAdmissions, type Visit } from "../admission/Admission.ts"
import { presentedKey, presentedSecret } from "../admission/CallerAuthentication.ts"
import { findScopeRefusal } from "../admission/ModelAccess.ts"
import { type Answered, makeConclude } from "../admission/Outcome.ts"
import { makeRateUnits } from "../admission/RateUnits.ts"
import { type Arrival, makeContextReader, RequestContext } from "../admission/RequestContext.ts"
import { makeBodyReceiver } from "../body/BodyReceiver.ts"
import { provideBody } from "../body/RequestBody.ts"
import type { Exchange } from "../connections/Connections.ts"
import { CurrentCaller } from "../schema/Headers.ts"
import { findServed, type ServedPath } from "./PathTable.ts"
import { unknownPath } from "./UnknownPath.ts"

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

export interface PipelineOptions {
  readonly trustedProxies: number
  readonly defaultRpm: number
  readonly takesPayments?: boolean | undefined
}

const untraced: ReadonlySet<string> = new Set(["system", "media", "none"])

/** Health is answered even while the database is away. */
const unlessUnknown = (isBlocked: Effect.Effect<boolean>) =>
  isBlocked.pipe(
    Effect.interruptible,
    Effect.timeoutTo({ duration: "500 millis", onSuccess: (isKnown) => isKnown, onTimeout: () => false }),
    Effect.catchAllDefect(() => Effect.succeed(false))
  )

interface ServedVisit extends Visit {
  readonly endpoint: ServedPath
  readonly caller: Caller | undefined
}

/** What the steps of a request need. */
const makeServices = (options: PipelineOptions) =>
  Effect.gen(function* () {
    const receiver = yield* makeBodyReceiver
    return {
      auth: yield* Auth,
      inFlight: yield* InFlight,
      instance: yield* Instance,
      receiver,
      readArrival: yield* makeContextReader(options),
      openAdmission: yield* makeAdmissions({ ...options, receiver }),
      rates: yield* makeRateUnits,
      conclude: yield* makeConclude,
      takesPayments: options.takesPayments === true
    }
  })
type Services = Effect.Effect.Success<ReturnType<typeof makeServices>>

/** Its id, its client's address, its trace. */
const begin = ({ readArrival }: Services, { request, response }: Exchange, endpoint: EndpointBase): Arrival => {
  const arrival = readArrival(request, untraced.has(endpoint.surface) ? undefined : endpoint)
  if (arrival.trace !== undefined) response.setHeader("traceresponse", arrival.trace.traceparent)
  if (endpoint.idHeader !== undefined) response.setHeader(endpoint.idHeader, arrival.requestId)
  return arrival
}

const checkBlockList = Effect.fnUntraced(function* (isBlocked: Effect.Effect<boolean>) {
  if (yield* isBlocked) return yield* new AddressBlocked()
})

/** The owner of the key. One that is known and fresh waits for nothing while no address is blocked. */
const authenticate = ({ auth }: Services, { headers }: IncomingMessage, { address }: Arrival) => {
  const secret = presentedSecret(headers)
  const recalled = secret === undefined ? undefined : auth.recall(secret)
  return recalled === undefined
    ? Effect.zipRight(checkBlockList(auth.isBlocked(address)), auth.authenticate(presentedKey(headers)))
    : Effect.succeed(recalled)
}

/**
 * The front door: begin, authenticate, handle, conclude, answer. `enter` identifies the caller, `handle` makes the answer, and
 * `respond` answers with it. To be run where nothing is interrupted but what says so: whatever becomes of the others, the
 * request is concluded, with an answer that says so.
 */
const receive = <V extends Visit, A extends Answered, B, R>(
  services: Services,
  exchange: Exchange,
  endpoint: EndpointBase,
  enter: (arrival: Arrival) => Effect.Effect<V, Failure>,
  handle: (visit: V) => Effect.Effect<A, unknown, R>,
  respond: (answer: A | Answer.Answer) => Effect.Effect<B>
): Effect.Effect<B, never, R> =>
  Effect.suspend(() => {
    const arrival = begin(services, exchange, endpoint)
    let visit: V | undefined
    return enter(arrival).pipe(
      Effect.flatMap((entered) => handle((visit = entered))),
      Effect.exit,
      Effect.flatMap((exit) => services.conclude(visit ?? { ...exchange, endpoint, arrival }, exit)),
      Effect.exit,
      Effect.flatMap((exit) => {
        // A stop does not wait for a client that reads slowly.
        visit?.leave?.()
        arrival.trace?.end()
        return exit
      }),
      Effect.flatMap(respond)
    )
  })

/** A client that reuses the connection would find it closed. */
const closing = ({ inFlight }: Services) => (inFlight.isStopping() ? { connection: "close" } : undefined)

/** Refuses what this process must not begin, and takes the unit of the key's rate. */
const admit = ({ inFlight, instance, rates }: Services, admission: Admission): Effect.Effect<void, Failure> => {
  const { endpoint, record } = admission
  if (!instance.isAdmitting()) return Effect.die(new HeartbeatLost())
  if (inFlight.isDraining()) return Effect.zipRight(rates.show(admission), new Aborted())
  const refusal = endpoint.checksScope ? undefined : findScopeRefusal(record.facts.caller, endpoint.surface)
  return rates.takeAtArrival(admission, refusal)
}

const send = (services: Services, { response }: Exchange, answer: Answer.Answer | undefined): Effect.Effect<void> => {
  if (answer === undefined || response.headersSent) return Effect.void
  const headers = closing(services)
  return Answer.send(response, headers ? { ...answer, headers: { ...answer.headers, ...headers } } : answer)
}

/** Else its client would wait for ever. */
const abandon = ({ response }: Exchange, cause: Cause.Cause<never>) =>
  Effect.zipRight(
    Cause.isInterruptedOnly(cause) ? Effect.void : Effect.logError("An answer could not be sent", cause),
    Effect.sync(() => response.destroy())
  )

/**
 * What generates, by its own handler. It goes on when the client leaves: begun work is paid for and logged. A stop interrupts
 * only what waits for a body, a picture or a provider, and says so there: no answer is lost after its charge, and each
 * request is answered.
 */
const generate = (services: Services, exchange: Exchange, endpoint: Endpoint): Effect.Effect<void> => {
  const { openAdmission, rates } = services
  const enter = (arrival: Arrival) =>
    Effect.map(authenticate(services, exchange.request, arrival), (caller) =>
      openAdmission(exchange, endpoint, arrival, caller)
    )
  const handle = (admission: Admission) =>
    Effect.flatMap(admit(services, admission), () => endpoint.handle(admission)).pipe(
      Effect.catchAllCause((cause) => rates.takeAtFailure(admission, cause))
    )
  const respond = (answer: Answer.Answer | undefined) => send(services, exchange, answer)
  return receive<Admission, Answer.Answer | undefined, void, never>(
    services,
    exchange,
    endpoint,
    enter,
    handle,
    respond
  ).pipe(
    Effect.catchAllCause((cause) => abandon(exchange, cause)),
    Effect.uninterruptible
  )
}

const enterServed = Effect.fnUntraced(function* (
  services: Services,
  exchange: Exchange,
  endpoint: ServedPath,
  arrival: Arrival
) {
  const { auth, takesPayments } = services
  const { request } = exchange
  const visit = { ...exchange, endpoint, arrival }
  if (endpoint.needsKey) return { ...visit, caller: yield* authenticate(services, request, arrival) }
  const isBlocked = auth.isBlocked(arrival.address)
  yield* checkBlockList(endpoint.isForMachines ? unlessUnknown(isBlocked) : isBlocked)
  if (!endpoint.isServed || (endpoint.isOfPayments && !takesPayments)) return yield* unknownPath(request.url ?? "")
  return { ...visit, caller: undefined }
})

/** All else, by the platform's router, whose handlers end when the client leaves. */
const serve = <E, R>(services: Services, app: HttpApp.Default<E, R>) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (served) =>
    Effect.uninterruptibleMask((restore) => {
      const request = NodeHttpServerRequest.toIncomingMessage(served)
      const exchange = { request, response: NodeHttpServerRequest.toServerResponse(served) }
      const endpoint = findServed(request)
      const enter = (arrival: Arrival) => restore(enterServed(services, exchange, endpoint, arrival))
      const handle = ({ arrival, caller }: ServedVisit) =>
        restore(caller === undefined ? app : Effect.provideService(app, CurrentCaller, caller)).pipe(
          Effect.mapErrorCause(explainPlatform),
          Effect.map(HttpServerResponse.setHeader("x-request-id", arrival.requestId)),
          Effect.provideService(RequestContext, arrival),
          provideBody(services.receiver.body(request, endpoint.surface, Effect.void))
        )
      const respond = (answer: HttpServerResponse.HttpServerResponse | Answer.Answer) =>
        Effect.succeed(
          HttpServerResponse.setHeaders(HttpServerResponse.isServerResponse(answer) ? answer : Answer.respond(answer), {
            ...closing(services),
            ...(endpoint.surface === "admin" && { "cache-control": "no-store" })
          })
        )
      return receive(services, exchange, endpoint, enter, handle, respond)
    })
  )

export const makePipeline = (options: PipelineOptions) =>
  Effect.map(makeServices(options), (services) => ({
    generate: (exchange: Exchange, endpoint: Endpoint) => generate(services, exchange, endpoint),
    /** With what the platform's router makes of the request. */
    serve: <E, R>(app: HttpApp.Default<E, R>) => serve(services, app)
  }))
