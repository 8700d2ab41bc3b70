import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect } from "effect"
import { type Caller, scopeOf } from "../../domain/ApiKey.ts"
import { type Failure, InsufficientCredits, PaymentDisputed, SpendLimitReached } from "../../domain/Failure.ts"
import { reachedCap } from "../../domain/Hold.ts"
import type { Surface } from "../../domain/Model.ts"
import { availableOf } from "../../domain/Organization.ts"
import { Idempotency } from "../../services/idempotency/Idempotency.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import { RequestRecord, type RequestSummary } from "../../services/requests/RequestRecord.ts"
import { ClientDeparture } from "../../services/runtime/ClientDeparture.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import type { ReserveMemory } from "../../services/runtime/RequestMemory.ts"
import type { AnsweredRequest } from "../../services/telemetry/RequestLines.ts"
import type { Answer, EncodeError } from "../Answer.ts"
import type { BodyCutOff, BodyReceiver, Incoming } from "../body/BodyReceiver.ts"
import type { Exchange } from "../connections/Connections.ts"
import type { FieldNames } from "../errors/FieldNames.ts"
import { tagOf } from "./Attribution.ts"
import { type Arrival, idempotencyKeyOf } from "./RequestContext.ts"

/** What a request is counted as, and the words of its errors. */
export interface EndpointBase extends Pick<AnsweredRequest, "path" | "surface"> {
  /** Undefined: the envelope as it is. */
  readonly encodeError?: EncodeError | undefined
  /** Its names for the fields of a chat, if they differ. */
  readonly fieldNames?: FieldNames | undefined
  /** A further header for the id of a request. */
  readonly idHeader?: string | undefined
}

/** One that generates. */
export interface Endpoint extends EndpointBase {
  readonly path: string
  readonly surface: Surface
  /** It checks the scope itself, of the surface that its body names. */
  readonly checksScope?: boolean | undefined
  /** A small request takes its rate unit and its hold in one statement. */
  readonly admitsWithHold: boolean
  /** Its requests may wait until others of their organization have closed their holds. */
  readonly hasFittedHold?: boolean | undefined
  /** Undefined: the answer was sent as a stream. */
  readonly handle: (admission: Admission) => Effect.Effect<Answer | undefined, Failure | BodyCutOff>
}

/** A request, and what is known of it by now. */
export interface Visit extends Exchange {
  readonly endpoint: EndpointBase
  readonly arrival: Arrival
  /** Undefined for a request that generates nothing, and until the caller is known. */
  readonly record?: RequestRecord
  /** Frees the memory of the body, and what was reserved beside it. */
  readonly release?: () => void
  /** Ends its being in flight. */
  readonly leave?: () => void
}

/** A generating request whose caller is known: what its handler is given. */
export interface Admission extends Visit, Incoming {
  readonly endpoint: Endpoint
  readonly record: RequestRecord
  readonly departure: ClientDeparture
  /** For what is kept beside the body; freed with it. */
  readonly reserveMemory: ReserveMemory
  /** The answer's headers, as far as they are known by now. */
  readonly headers: () => Readonly<Record<string, string>>
  /** Runs by itself before a large body is received. */
  readonly checkSolvency: Effect.Effect<void, InsufficientCredits | SpendLimitReached | PaymentDisputed>
}

export const headersOf = ({ cap, rate, requestId, tokens }: RequestSummary): Record<string, string> => {
  const headers: Record<string, string> = { "x-request-id": requestId }
  if (rate !== undefined) {
    headers["x-ratelimit-limit"] = String(rate.limit)
    headers["x-ratelimit-remaining"] = String(rate.remaining)
  }
  if (tokens !== undefined) {
    headers["x-ratelimit-limit-tokens"] = String(tokens.limit)
    headers["x-ratelimit-remaining-tokens"] = String(tokens.remaining)
    headers["x-ratelimit-reset-tokens"] = `${tokens.resetSeconds}s`
  }
  if (cap !== undefined) headers["x-gateway-max-output-tokens"] = String(cap)
  return headers
}

/** Checks the organization's cap and balance; a replay passes, since it costs nothing. */
const makeSolvencyCheck = Effect.gen(function* () {
  const idempotency = yield* Idempotency
  const ledger = yield* Ledger

  return Effect.fnUntraced(function* (
    { hasFittedHold = false, isDisputed = false, org }: Caller,
    { hasFittedHold: always = false, surface }: Endpoint,
    request: IncomingMessage
  ) {
    const funds = yield* ledger.funds(org)
    const reached = reachedCap(funds)
    const endpoint = scopeOf[surface]
    const waits = always || (hasFittedHold && endpoint === "chat")
    if (!isDisputed && reached === undefined && (waits ? funds.balance : availableOf(funds)) > 0n) return
    const key = endpoint === "chat" ? undefined : idempotencyKeyOf(request)
    if (endpoint !== "chat" && key !== undefined && (yield* idempotency.isKnown({ org, endpoint, key }))) return
    if (isDisputed) return yield* new PaymentDisputed()
    return yield* reached === undefined
      ? new InsufficientCredits({ needed: undefined, available: availableOf(funds) })
      : new SpendLimitReached({ of: "organization", ...reached })
  })
})

/** Records that the client left, and wakes who waits for that. */
const watchClient = (response: ServerResponse, record: RequestRecord): ClientDeparture => {
  const departure = new ClientDeparture()
  response.once("close", () => {
    if (response.writableEnded) return
    record.add({ type: "left" })
    departure.leave()
  })
  return departure
}

/** Begins the record of a generating request, and watches its client. */
export const makeAdmissions = (options: { readonly defaultRpm: number; readonly receiver: BodyReceiver }) =>
  Effect.gen(function* () {
    const ids = yield* Ids
    const inFlight = yield* InFlight
    const checkSolvency = yield* makeSolvencyCheck

    return ({ request, response }: Exchange, endpoint: Endpoint, arrival: Arrival, caller: Caller): Admission => {
      const { address, at, requestId, startedAt, trace } = arrival
      const record = new RequestRecord({
        id: ids.uuid(),
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
      const solvency = checkSolvency(caller, endpoint, request)
      const body = options.receiver.body(request, caller.org, solvency, inFlight.receive)
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
        checkSolvency: solvency,
        release: body.release,
        leave: inFlight.enter(() => record.summary)
      }
    }
  })
