import type { IncomingMessage } from "node:http"
import { HttpApiError, type HttpApp, HttpServerError, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Cause, Effect, Exit, Option } from "effect"
import type { Caller } from "../../domain/ApiKey.ts"
import {
  Aborted,
  AddressBlocked,
  type Failure,
  InvalidRequest,
  MisspeltPath,
  UnknownEndpoint,
  UnknownMethod
} from "../../domain/Failure.ts"
import { editDistance } from "../../domain/Wording.ts"
import { Auth } from "../../services/access/Auth.ts"
import { Instance } from "../../services/instance/Instance.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import { HeartbeatLost } from "../../services/sql/Outage.ts"
import { requestIdHeader, traceHeader } from "../AnswerHeaders.ts"
import { explainUnparsedBody } from "../admin/AdminAccess.ts"
import {
  type Admission,
  type Endpoint,
  type EndpointBase,
  findScopeRefusal,
  makeAdmissions,
  presentedKey,
  presentedSecret,
  type Visit
} from "../admission/Admission.ts"
import { makeRateUnits } from "../admission/RateUnits.ts"
import { type Arrival, makeContextReader, RequestContext } from "../admission/RequestContext.ts"
import { type HandlerResult, makeConclude } from "../admission/RequestOutcome.ts"
import { provideBody } from "../body/BodyReader.ts"
import { makeBodyReceiver } from "../body/BodyReceiver.ts"
import type { Exchange } from "../connections/ConnectionLimits.ts"
import * as Answer from "../HttpAnswer.ts"
import { apiPrefix } from "../schema/Endpoints.ts"
import { CurrentCaller } from "../schema/Headers.ts"
import {
  findServed,
  hasInvalidEscape,
  isOutsideApi,
  type PublishedPath,
  pathOf,
  publishedPaths,
  type ServedPath
} from "./PathTable.ts"

/** Longer paths get no suggestion, because computing it costs CPU and anyone may send them. */
const maxPathLength = 200
const maxSegments = 10
const maxEdits = 2

const prefix = apiPrefix.slice(1)

/** The published paths with their segments below `/v1`. */
const publishedSegments = publishedPaths.map((path) => ({
  ...path,
  segments: path.template.toLowerCase().split("/").slice(2)
}))
type Published = (typeof publishedSegments)[number]

const isParameter = (segment: string): boolean => segment.startsWith("{")

const hasParameter = ({ segments }: Published): boolean => segments.some(isParameter)

/** Returns the edit distance of two segments, or more than `maxEdits` if too far: `images` allows one, `completions` two. */
const segmentDistance = (input: string, published: string): number => {
  if (isParameter(published)) return 0
  const maxDistance = published.length < 4 ? 0 : published.length < 9 ? 1 : maxEdits
  const distance = editDistance(maxDistance, input, published)
  return distance > maxDistance ? maxEdits + 1 : distance
}

const distance = (input: ReadonlyArray<string>, { segments }: Published): number =>
  input.length === segments.length
    ? input.reduce((sum, segment, index) => sum + segmentDistance(segment, segments[index] ?? ""), 0)
    : maxEdits + 1

const findSimilar = (input: ReadonlyArray<string>): Published | undefined =>
  [0, 1, 2].flatMap((mistakes) => publishedSegments.filter((path) => distance(input, path) === mistakes))[0]

const isPrefixOrSuffix = (input: string, { segments }: Published): boolean => {
  const path = segments.join("/")
  return path.startsWith(`${input}/`) || path.endsWith(`/${input}`)
}

/** Finds the path that starts or ends with the input, such as `/completions`, unless several do. */
const findByPart = (input: ReadonlyArray<string>): Published | undefined => {
  const part = input.join("/")
  const [match, ...otherMatches] =
    part === "" ? [] : publishedSegments.filter((path) => !hasParameter(path) && isPrefixOrSuffix(part, path))
  return otherMatches.length === 0 ? match : undefined
}

/** Finds the intended path for an input without `/v1`, with another prefix, or with typing mistakes. */
const findIntendedPath = (path: string): PublishedPath | undefined => {
  const segments = path.toLowerCase().split("/").slice(1)
  if (segments.length > maxSegments) return undefined
  const tails = segments.map((_, index) => segments.slice(index)).filter(([first]) => first !== prefix)
  const exactMatches = tails.flatMap((tail) => publishedSegments.filter((candidate) => distance(tail, candidate) === 0))
  const [input = []] = tails
  return exactMatches[0] ?? findSimilar(input) ?? findByPart(input)
}

/** Returns the failure for a path or method that no endpoint has. If possible, it suggests a published path. */
const unknownPath = (target: string): UnknownEndpoint | MisspeltPath | UnknownMethod => {
  const path = pathOf(target)
  if (path.length > maxPathLength || hasInvalidEscape(target) || isOutsideApi(path)) return new UnknownEndpoint()
  const publishedPath = publishedPaths.find(({ pattern }) => pattern.test(path))
  if (publishedPath !== undefined)
    return new UnknownMethod({ path: publishedPath.template, methods: publishedPath.methods })
  const intendedPath = findIntendedPath(path)
  return intendedPath === undefined ? new UnknownEndpoint() : new MisspeltPath({ suggestion: intendedPath.template })
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

/** Converts the platform's failures and defects to the gateway's failures. */
const explainPlatform = (cause: Cause.Cause<unknown>): Cause.Cause<unknown> => {
  const unparsed = Option.flatMap(Cause.dieOption(cause), explainUnparsedBody)
  return Option.isSome(unparsed) ? Cause.fail(unparsed.value) : Cause.map(cause, explainError)
}

export interface PipelineOptions {
  readonly trustedProxies: number
  readonly defaultRpm: number
  readonly hasPayments?: boolean | undefined
}

const untracedSurfaces: ReadonlySet<string> = new Set(["system", "media", "none"])

/** Treats an address as not blocked if the database is unavailable, because probes must get a response even then. */
const falseOnTimeout = (isBlocked: Effect.Effect<boolean>) =>
  isBlocked.pipe(
    Effect.interruptible,
    Effect.timeoutTo({ duration: "500 millis", onSuccess: (blocked) => blocked, onTimeout: () => false }),
    Effect.catchAllDefect(() => Effect.succeed(false))
  )

interface ServedVisit extends Visit {
  readonly endpoint: ServedPath
  readonly caller: Caller | undefined
}

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
      hasPayments: options.hasPayments === true
    }
  })
type Services = Effect.Effect.Success<ReturnType<typeof makeServices>>

/** Determines the request's id, client address and trace, and sets the response headers for them. */
const begin = ({ readArrival }: Services, { request, response }: Exchange, endpoint: EndpointBase): Arrival => {
  const arrival = readArrival(request, untracedSurfaces.has(endpoint.surface) ? undefined : endpoint)
  if (arrival.trace !== undefined) response.setHeader(traceHeader, arrival.trace.traceparent)
  if (endpoint.idHeader !== undefined) response.setHeader(endpoint.idHeader, arrival.requestId)
  return arrival
}

const checkBlockList = Effect.fnUntraced(function* (isBlocked: Effect.Effect<boolean>) {
  if (yield* isBlocked) return yield* new AddressBlocked()
})

/** Returns the caller. A cached key needs no database call. The cache is not used while any address is blocked. */
const authenticate = ({ auth }: Services, { headers }: IncomingMessage, { address }: Arrival) => {
  const secret = presentedSecret(headers)
  const cachedCaller = secret === undefined ? undefined : auth.findCached(secret)
  return cachedCaller === undefined
    ? Effect.zipRight(checkBlockList(auth.isBlocked(address)), auth.authenticate(presentedKey(headers)))
    : Effect.succeed(cachedCaller)
}

/**
 * Runs a request: `enter` authenticates the caller, `handle` makes the response, `conclude` reports and logs the request, and
 * `respond` sends the response. The caller must make this uninterruptible except for marked parts, because every request must
 * be concluded with a response.
 */
const receive = <V extends Visit, A extends HandlerResult, B, R>(
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
    const conclude = (exit: Exit.Exit<A, unknown>) =>
      services.conclude(visit ?? { ...exchange, endpoint, arrival }, exit)
    const leave = () => {
      // The request leaves before its response is sent, so a stop does not wait for a client that reads slowly.
      visit?.leave?.()
      arrival.trace?.end()
    }
    return Effect.flatMap(enter(arrival), (enteredVisit) => handle((visit = enteredVisit))).pipe(
      Effect.matchCauseEffect({
        onFailure: (cause) => conclude(Exit.failCause(cause)),
        onSuccess: (answer) => conclude(Exit.succeed(answer))
      }),
      Effect.matchCauseEffect({
        onFailure: (cause) => {
          leave()
          return Effect.failCause(cause)
        },
        onSuccess: (answer) => {
          leave()
          return respond(answer)
        }
      })
    )
  })

/** Returns the header that tells clients not to reuse a connection, because a stopping process will close it. */
const closeHeader = ({ inFlight }: Services) => (inFlight.isStopping() ? { connection: "close" } : undefined)

/** Fails if this process must not begin the request. Otherwise, takes a unit of the key's rate limit if it is due. */
const admit = ({ inFlight, instance, rates }: Services, admission: Admission): Effect.Effect<void, Failure> => {
  const { endpoint, record } = admission
  if (!instance.isAdmitting()) return Effect.die(new HeartbeatLost())
  if (inFlight.isDraining()) return Effect.zipRight(rates.recordLimits(admission), new Aborted())
  const refusal = endpoint.checksScope ? undefined : findScopeRefusal(record.facts.caller, endpoint.surface)
  return rates.takeAtArrival(admission, refusal)
}

const send = (
  services: Services,
  { response }: Exchange,
  answer: Answer.Answer | Answer.AlreadySent
): Effect.Effect<void> => {
  if (answer === Answer.alreadySent || response.headersSent) return Effect.void
  const headers = closeHeader(services)
  return Answer.send(response, headers ? { ...answer, headers: { ...answer.headers, ...headers } } : answer)
}

/** Destroys the connection of a response that could not be sent, because the client would wait forever. */
const destroyResponse = ({ response }: Exchange, cause: Cause.Cause<never>) =>
  Effect.zipRight(
    Cause.isInterruptedOnly(cause) ? Effect.void : Effect.logError("Could not send a response", cause),
    Effect.sync(() => response.destroy())
  )

/**
 * Runs a generating request with its own handler. It continues when the client disconnects, because begun work is charged and
 * logged. A stop interrupts only waits for a body, an image or a provider, which are marked as interruptible. Each request
 * therefore gets a response, and no charged response is lost.
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
  const respond = (answer: Answer.Answer | Answer.AlreadySent) => send(services, exchange, answer)
  return receive<Admission, Answer.Answer | Answer.AlreadySent, void, never>(
    services,
    exchange,
    endpoint,
    enter,
    handle,
    respond
  ).pipe(
    Effect.catchAllCause((cause) => destroyResponse(exchange, cause)),
    Effect.uninterruptible
  )
}

const enterServed = Effect.fnUntraced(function* (
  services: Services,
  exchange: Exchange,
  endpoint: ServedPath,
  arrival: Arrival
) {
  const { auth, hasPayments } = services
  const { request } = exchange
  const visit = { ...exchange, endpoint, arrival }
  if (endpoint.needsKey) return { ...visit, caller: yield* authenticate(services, request, arrival) }
  const isBlocked = auth.isBlocked(arrival.address)
  yield* checkBlockList(endpoint.isProbe ? falseOnTimeout(isBlocked) : isBlocked)
  if (!endpoint.isServed || (endpoint.requiresPayments && !hasPayments)) return yield* unknownPath(request.url ?? "")
  return { ...visit, caller: undefined }
})

/** Runs all other requests with the platform's router. Their handlers are interrupted when the client disconnects. */
const serve = <E, R>(services: Services, app: HttpApp.Default<E, R>) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (servedRequest) =>
    Effect.uninterruptibleMask((restore) => {
      const request = NodeHttpServerRequest.toIncomingMessage(servedRequest)
      const exchange = { request, response: NodeHttpServerRequest.toServerResponse(servedRequest) }
      const endpoint = findServed(request)
      const enter = (arrival: Arrival) => restore(enterServed(services, exchange, endpoint, arrival))
      const handle = ({ arrival, caller }: ServedVisit) =>
        restore(caller === undefined ? app : Effect.provideService(app, CurrentCaller, caller)).pipe(
          Effect.mapErrorCause(explainPlatform),
          Effect.map(HttpServerResponse.setHeader(requestIdHeader, arrival.requestId)),
          Effect.provideService(RequestContext, arrival),
          provideBody(services.receiver.body(request, endpoint.surface, Effect.void))
        )
      const respond = (answer: HttpServerResponse.HttpServerResponse | Answer.Answer) =>
        Effect.succeed(
          HttpServerResponse.setHeaders(HttpServerResponse.isServerResponse(answer) ? answer : Answer.respond(answer), {
            ...closeHeader(services),
            ...(endpoint.surface === "admin" && { "cache-control": "no-store" })
          })
        )
      return receive(services, exchange, endpoint, enter, handle, respond)
    })
  )

export const makePipeline = (options: PipelineOptions) =>
  Effect.map(makeServices(options), (services) => ({
    generate: (exchange: Exchange, endpoint: Endpoint) => generate(services, exchange, endpoint),
    serve: <E, R>(app: HttpApp.Default<E, R>) => serve(services, app)
  }))
