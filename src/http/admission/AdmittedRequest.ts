import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect } from "effect"
import type { Caller } from "../../domain/ApiKey.ts"
import { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { ClientDeparture } from "../../services/runtime/ClientDeparture.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import type { BodyReceiver } from "../body/BodyReceiver.ts"
import { tagOf } from "./Attribution.ts"
import type { AdmittedRequest, Endpoint } from "./Endpoint.ts"
import type { RequestContext } from "./RequestContext.ts"
import { headersOf } from "./RequestOutcome.ts"
import { makeSolvencyCheck } from "./Solvency.ts"

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
