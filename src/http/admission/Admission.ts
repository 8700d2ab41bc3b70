import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect, Layer, Option, Redacted } from "effect"
import { type Caller, hasScope, mayUseModel, scopeOf } from "../../domain/ApiKey.ts"
import {
  type Failure,
  InsufficientCredits,
  InsufficientScope,
  MissingApiKey,
  ModelNotAllowed,
  PaymentDisputed,
  SpendLimitReached
} from "../../domain/Failure.ts"
import { reachedCap } from "../../domain/Hold.ts"
import type { Model, Surface } from "../../domain/Model.ts"
import { availableOf } from "../../domain/Organization.ts"
import { Idempotency } from "../../services/idempotency/Idempotency.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import { RequestRecord, type RequestSummary } from "../../services/requests/RequestRecord.ts"
import { ClientDeparture } from "../../services/runtime/Deadlines.ts"
import { InFlight, type ReserveMemory } from "../../services/runtime/InFlight.ts"
import type { AnsweredRequest } from "../../services/telemetry/RequestLines.ts"
import { type AnswerHeaders, requestIdHeader } from "../AnswerHeaders.ts"
import type { BodyCutOff, BodyReceiver, BodySource } from "../body/BodyReceiver.ts"
import type { Exchange } from "../connections/ConnectionLimits.ts"
import type { FieldNames } from "../errors/ErrorMessages.ts"
import type { AlreadySent, Answer, EncodeError } from "../HttpAnswer.ts"
import { Authenticated, CurrentCaller } from "../schema/Headers.ts"
import { type Arrival, idempotencyKeyOf, tagOf } from "./RequestContext.ts"

/** How an endpoint's requests are counted, and how its errors are encoded. */
export interface EndpointBase extends Pick<AnsweredRequest, "path" | "surface"> {
  /** The default is the envelope of `/v1/chat/completions`. */
  readonly encodeError?: EncodeError | undefined
  /** The dialect's names for chat fields that it names differently. */
  readonly fieldNames?: FieldNames | undefined
  /** A further response header with the request id, such as that of the Messages API. */
  readonly idHeader?: string | undefined
}

export interface Endpoint extends EndpointBase {
  readonly path: string
  readonly surface: Surface
  /** Whether the handler checks the key's scope. The pipeline cannot if only the body determines the scope. */
  readonly checksScope?: boolean | undefined
  /** Whether one SQL statement takes the rate unit of a small request and places its hold. */
  readonly admitsWithHold: boolean
  /** Whether a request is received although other holds reserve the whole balance, because its hold may be reduced. */
  readonly canReduceHold?: boolean | undefined
  readonly handle: (admission: Admission) => Effect.Effect<Answer | AlreadySent, Failure | BodyCutOff>
}

/** The state of a request while it is handled. */
export interface Visit extends Exchange {
  readonly endpoint: EndpointBase
  readonly arrival: Arrival
  /** Undefined if the request does not generate, and before its caller is authenticated. */
  readonly record?: RequestRecord
  /** Frees the memory of the body and what `reserveMemory` added. */
  readonly release?: () => void
  /** Ends the request's entry in `InFlight`. */
  readonly leave?: () => void
}

/** The input of a handler: a generating request and its authenticated caller. */
export interface Admission extends Visit, BodySource {
  readonly endpoint: Endpoint
  readonly record: RequestRecord
  readonly departure: ClientDeparture
  /** Reserves memory that is freed with the body. */
  readonly reserveMemory: ReserveMemory
  /** Returns the response headers that are already known, such as rate limits. */
  readonly headers: () => Readonly<Record<string, string>>
  /** `receive` runs this check itself before it reads a large body. */
  readonly checkFunds: Effect.Effect<void, InsufficientCredits | SpendLimitReached | PaymentDisputed>
}

export const headersOf = ({ cap, rate, requestId, tokens }: RequestSummary): AnswerHeaders => ({
  [requestIdHeader]: requestId,
  ...(rate !== undefined && {
    "x-ratelimit-limit": String(rate.limit),
    "x-ratelimit-remaining": String(rate.remaining)
  }),
  ...(tokens !== undefined && {
    "x-ratelimit-limit-tokens": String(tokens.limit),
    "x-ratelimit-remaining-tokens": String(tokens.remaining),
    "x-ratelimit-reset-tokens": `${tokens.resetSeconds}s`
  }),
  ...(cap !== undefined && { "x-gateway-max-output-tokens": String(cap) })
})

/** Returns the check of an organization's spending cap and balance. A replay passes, because it is free. */
const makeFundsCheck = Effect.gen(function* () {
  const idempotency = yield* Idempotency
  const ledger = yield* Ledger

  return Effect.fnUntraced(function* (
    { canReduceHold = false, isDisputed = false, org }: Caller,
    { canReduceHold: endpointReducesHold = false, surface }: Endpoint,
    request: IncomingMessage
  ) {
    const funds = yield* ledger.funds(org)
    const reachedLimit = reachedCap(funds)
    const endpoint = scopeOf[surface]
    const mayWait = endpointReducesHold || (canReduceHold && endpoint === "chat")
    if (!isDisputed && reachedLimit === undefined && (mayWait ? funds.balance : availableOf(funds)) > 0n) return
    const key = endpoint === "chat" ? undefined : idempotencyKeyOf(request)
    if (endpoint !== "chat" && key !== undefined && (yield* idempotency.exists({ org, endpoint, key }))) return
    if (isDisputed) return yield* new PaymentDisputed()
    return yield* reachedLimit === undefined
      ? new InsufficientCredits({ needed: undefined, available: availableOf(funds) })
      : new SpendLimitReached({ owner: "organization", ...reachedLimit })
  })
})

/** Returns the notification of the client's disconnection, which is also recorded for the log. */
const watchClient = (response: ServerResponse, record: RequestRecord): ClientDeparture => {
  const departure = new ClientDeparture()
  response.once("close", () => {
    if (response.writableEnded) return
    record.add({ type: "left" })
    departure.leave()
  })
  return departure
}

/** Returns a function that begins the record of a generating request and watches for its client's disconnection. */
export const makeAdmissions = (options: { readonly defaultRpm: number; readonly receiver: BodyReceiver }) =>
  Effect.gen(function* () {
    const inFlight = yield* InFlight
    const checkFunds = yield* makeFundsCheck

    return ({ request, response }: Exchange, endpoint: Endpoint, arrival: Arrival, caller: Caller): Admission => {
      const { address, at, id, requestId, startedAt, trace } = arrival
      const record = new RequestRecord({
        id,
        requestId,
        surface: endpoint.surface,
        caller,
        client: { address, userAgent: request.headers["user-agent"] },
        tag: tagOf(request),
        at,
        startedAt,
        rateLimit: caller.rpm ?? options.defaultRpm,
        trace
      })
      const fundsCheck = checkFunds(caller, endpoint, request)
      const body = options.receiver.body(request, caller.org, fundsCheck, inFlight.receive)
      return {
        endpoint,
        arrival,
        record,
        request,
        receive: body.receive,
        response,
        departure: watchClient(response, record),
        headers: () => headersOf(record.summary),
        reserveMemory: body.reserveMore,
        checkFunds: fundsCheck,
        release: body.release,
        leave: inFlight.enter(() => record.summary)
      }
    }
  })

type Headers = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>

const bearer = /^bearer\s+(.*)$/i

export const presentedSecret = (headers: Headers): string | undefined => {
  const { authorization, "x-api-key": apiKey } = headers
  const token = typeof authorization === "string" ? bearer.exec(authorization)?.[1] : undefined
  return (token ?? (typeof apiKey === "string" ? apiKey : undefined))?.trim()
}

export const presentedKey = (headers: Headers): Option.Option<Redacted.Redacted> => {
  const secret = presentedSecret(headers)
  return secret === undefined ? Option.none() : Option.some(Redacted.make(secret))
}

/** Provides the caller whose key the pipeline has already checked. */
export const AuthenticatedLayer = Layer.succeed(
  Authenticated,
  Effect.flatMap(Effect.serviceOption(CurrentCaller), (caller) =>
    Option.isSome(caller) ? Effect.succeed(caller.value) : new MissingApiKey()
  )
)

export const findScopeRefusal = (caller: Caller, surface: Surface): InsufficientScope | undefined => {
  const scope = scopeOf[surface]
  return hasScope(caller, scope) ? undefined : new InsufficientScope({ scope })
}

/**
 * Fails with ModelNotAllowed if the key does not allow a model of this surface. Idempotent replays are checked too, as for
 * the scope.
 */
export const requireAllowed = (
  caller: Caller,
  surface: Surface,
  model: Model | undefined
): Effect.Effect<void, ModelNotAllowed> =>
  model?.surface !== surface || mayUseModel(caller, model.id) ? Effect.void : new ModelNotAllowed({ model: model.id })
