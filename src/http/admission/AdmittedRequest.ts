import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect } from "effect"
import { type Caller, scopeOf } from "../../domain/ApiKey.ts"
import { InsufficientCredits, PaymentDisputed, SpendLimitReached } from "../../domain/Failure.ts"
import { reachedCap } from "../../domain/Funds.ts"
import { availableOf } from "../../domain/Organization.ts"
import { Idempotency } from "../../services/idempotency/Idempotency.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { ClientDeparture } from "../../services/runtime/ClientDeparture.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import type { BodyReceiver } from "../body/BodyReceiver.ts"
import { tagOf } from "./Attribution.ts"
import type { AdmittedRequest, Endpoint } from "./Endpoint.ts"
import { idempotencyKeyOf, type RequestContext } from "./RequestContext.ts"
import { headersOf } from "./RequestOutcome.ts"

/** Checks the organization's cap and balance before a large body is received; a replay passes, since it costs nothing. */
const makeSolvencyCheck = Effect.gen(function* () {
  const idempotency = yield* Idempotency
  const ledger = yield* Ledger

  return Effect.fnUntraced(function* (
    { hasFittedHolds = false, isDisputed = false, org }: Caller,
    { hasFittedHold = false, surface }: Endpoint,
    request: IncomingMessage
  ) {
    const funds = yield* ledger.funds(org)
    const reached = reachedCap(funds)
    const endpoint = scopeOf[surface]
    const waits = hasFittedHold || (hasFittedHolds && endpoint === "chat")
    if (!isDisputed && reached === undefined && (waits ? funds.balance : availableOf(funds)) > 0n) return
    const key = endpoint === "chat" ? undefined : idempotencyKeyOf(request)
    if (endpoint !== "chat" && key !== undefined && (yield* idempotency.isKnown({ org, endpoint, key }))) return
    if (isDisputed) return yield* new PaymentDisputed()
    return yield* reached === undefined
      ? new InsufficientCredits({ needed: undefined, available: availableOf(funds) })
      : new SpendLimitReached({ of: "organization", ...reached })
  })
})

interface ReleasableRequest extends AdmittedRequest {
  /** Frees the memory of the body, and what was reserved beside it. */
  readonly release: () => void
}

/** Begins the record of a generating request, and watches its client. */
export const makeAdmission = (options: { readonly defaultRpm: number; readonly receiver: BodyReceiver }) =>
  Effect.gen(function* () {
    const ids = yield* Ids
    const inFlight = yield* InFlight
    const checkSolvency = yield* makeSolvencyCheck

    return (
      endpoint: Endpoint,
      request: IncomingMessage,
      response: ServerResponse,
      { address, at, requestId, startedAt, trace }: typeof RequestContext.Service,
      caller: Caller
    ): ReleasableRequest => {
      const record = new RequestRecord({
        id: ids.uuid(),
        requestId,
        surface: endpoint.surface,
        caller,
        client: { address, userAgent: request.headers["user-agent"] },
        tag: tagOf(request),
        limit: caller.rpm ?? options.defaultRpm,
        at,
        startedAt,
        trace
      })
      const departure = new ClientDeparture()
      response.once("close", () => {
        if (response.writableEnded) return
        record.departed = true
        departure.leave()
      })
      const solvency = checkSolvency(caller, endpoint, request)
      const body = options.receiver.body(request, caller.org, solvency, inFlight.receive)
      record.reserveMemory = body.reserveMore
      return {
        record,
        request,
        receive: body.receive,
        response,
        departure,
        headers: () => headersOf(record),
        checkSolvency: solvency,
        release: body.release
      }
    }
  })
