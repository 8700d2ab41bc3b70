import type { IncomingMessage, ServerResponse } from "node:http"
import { Cause, Chunk, Context, Effect, Layer, Option, Schedule } from "effect"
import type { Caller, Scope as KeyScope } from "../../domain/ApiKey.ts"
import { Aborted, AddressBlocked, type Failure, InsufficientScope, RateLimited } from "../../domain/Failure.ts"
import type { Surface } from "../../domain/Model.ts"
import { Auth } from "../../services/access/Auth.ts"
import { RateLimiter } from "../../services/access/RateLimiter.ts"
import { Idempotency } from "../../services/idempotency/Idempotency.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import { Refunds } from "../../services/ledger/Refunds.ts"
import { ClientDeparture } from "../../services/runtime/ClientDeparture.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import { Instance } from "../../services/runtime/Instance.ts"
import * as Monotonic from "../../services/runtime/Monotonic.ts"
import { HeartbeatLost, NoAnswer } from "../../services/sql/Outage.ts"
import * as Metrics from "../../services/telemetry/Metrics.ts"
import { RequestLog } from "../../services/telemetry/RequestLog.ts"
import { RequestRecord } from "../../services/telemetry/RequestRecord.ts"
import type { RequestTrace } from "../../services/telemetry/RequestTrace.ts"
import * as Answer from "../Answer.ts"
import type { BodyCutOff } from "../body/BodyBuffer.ts"
import { BodyReceiver, type Incoming } from "../body/BodyReceiver.ts"
import { errorResponse } from "../errors/ErrorResponse.ts"
import { presentedKey } from "./Authentication.ts"
import { contextMaker, type RequestContext } from "./RequestContext.ts"
import { checkSolvency } from "./Solvency.ts"

export interface Admitted extends Incoming {
  readonly record: RequestRecord
  readonly response: ServerResponse
  readonly departure: ClientDeparture
  readonly headers: () => Readonly<Record<string, string>>
}

export interface Endpoint {
  readonly surface: Surface
  readonly scope: KeyScope
  /** A small request takes its rate unit and its hold in one statement. */
  readonly admitsWithHold: boolean
  readonly answer: (admitted: Admitted) => Effect.Effect<Answer.Answer | undefined, Failure | BodyCutOff>
}

/** A body of this size that came with its head is read before the rate unit is taken. */
const smallBody = 64 * 1024

const isSmall = ({ complete, readableLength }: IncomingMessage): boolean => complete && readableLength <= smallBody

const headersOf = ({ rate: { allowance }, requestId }: RequestRecord): Record<string, string> =>
  allowance === undefined
    ? { "x-request-id": requestId }
    : {
        "x-request-id": requestId,
        "x-ratelimit-limit": String(allowance.limit),
        "x-ratelimit-remaining": String(allowance.remaining)
      }

interface Outcome {
  readonly answer: Answer.Answer | undefined
  readonly code: string | null
}

const explain = (
  cause: Cause.Cause<Failure | BodyCutOff>,
  record: RequestRecord,
  response: ServerResponse
): Effect.Effect<Outcome> => {
  const tag = Option.getOrUndefined(Cause.failureOption(cause))?._tag
  // The request counts as not looked at.
  if (tag === "RateLimited") Object.assign(record, { model: undefined, stream: false })
  if (tag === "BodyCutOff") {
    record.departed = true
    return Effect.succeed({ answer: Answer.json(400, {}, headersOf(record)), code: null })
  }
  return Effect.map(errorResponse(cause, record.requestId), (error) => ({
    answer: response.headersSent ? undefined : Answer.wireError(error, headersOf(record)),
    code: error.body.error.code
  }))
}

type Serve = (
  endpoint: Endpoint,
  request: IncomingMessage,
  response: ServerResponse,
  trace?: RequestTrace
) => Effect.Effect<void>

/** The fiber goes on when the client leaves: begun work is paid for and logged. */
export class Admission extends Context.Tag("gateway/http/Admission")<Admission, { readonly serve: Serve }>() {
  static readonly layer = (options: { readonly defaultRpm: number; readonly trustedProxies: number }) =>
    Layer.scoped(
      Admission,
      Effect.gen(function* () {
        const auth = yield* Auth
        const inFlight = yield* InFlight
        const instance = yield* Instance
        const limiter = yield* RateLimiter
        const services = { idempotency: yield* Idempotency, ledger: yield* Ledger }
        const log = yield* RequestLog
        const refunds = yield* Refunds
        const ids = yield* Ids
        const contextOf = yield* contextMaker(options)
        const receiver = new BodyReceiver()
        yield* Effect.forkScoped(Effect.repeat(receiver.inspect, Schedule.spaced("1 second")))

        const identify = ({ headers }: IncomingMessage, address: string) =>
          Effect.flatMap(
            auth.isBlocked(address),
            (isBlocked): Effect.Effect<Caller, Failure> =>
              isBlocked ? new AddressBlocked() : auth.authenticate(presentedKey(headers))
          )

        const takeRate = ({ caller, rate }: RequestRecord) =>
          Effect.flatMap(limiter.take(caller.key, rate.limit), (allowance) => {
            rate.allowance = allowance
            return allowance.admitted ? Effect.void : new RateLimited()
          })

        const admit = (endpoint: Endpoint, record: RequestRecord, request: IncomingMessage) =>
          Effect.flatMap(instance.admitting, (isAdmitting): Effect.Effect<void, Failure> => {
            const { caller, rate } = record
            if (!isAdmitting) return Effect.die(new HeartbeatLost())
            if (inFlight.isDraining()) {
              return Effect.flatMap(limiter.peek(caller.key, rate.limit), (allowance) => {
                rate.allowance = allowance
                return new Aborted()
              })
            }
            if (caller.scopes !== undefined && !caller.scopes.includes(endpoint.scope)) {
              return Effect.zipRight(takeRate(record), new InsufficientScope({ scope: endpoint.scope }))
            }
            return endpoint.admitsWithHold && isSmall(request) ? Effect.void : takeRate(record)
          })

        const failLate = (record: RequestRecord, cause: Cause.Cause<Failure | BodyCutOff>) => {
          const failed = Effect.failCause(cause)
          if (record.rate.allowance !== undefined || Cause.isInterruptedOnly(cause)) return failed
          if (Option.isSome(Cause.failureOption(cause))) return Effect.zipRight(takeRate(record), failed)
          // It may have been taken all the same, or the database is away: a client must not wait again.
          if (Chunk.some(Cause.defects(cause), (defect) => defect instanceof NoAnswer)) return failed
          return takeRate(record).pipe(
            Effect.interruptible,
            Effect.timeoutOption("500 millis"),
            Effect.catchAllDefect(() => Effect.void),
            Effect.zipRight(failed)
          )
        }

        const write = (record: RequestRecord, answered: { readonly status: number; readonly code: string | null }) => {
          const { code, status } = record.outcome(answered)
          record.trace?.answer(status, code)
          Metrics.unsafeCount(Metrics.requests, { surface: record.surface, status: String(status), code: code ?? "" })
          if (record.isLogged) return Effect.void
          return Effect.flatMap(Monotonic.millis, (endedAt) =>
            refunds.afterwards(record.hold, log.write(record.entry({ ...answered, endedAt })))
          )
        }

        const work = (
          endpoint: Endpoint,
          request: IncomingMessage,
          response: ServerResponse,
          { at, requestId, startedAt }: typeof RequestContext.Service,
          caller: Caller,
          trace: RequestTrace | undefined
        ) =>
          Effect.suspend(() => {
            const record = new RequestRecord({
              id: ids.uuid(),
              requestId,
              surface: endpoint.surface,
              caller,
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
            const admitLarge = checkSolvency(services, caller.org, endpoint.scope, request)
            const body = receiver.body(request, caller.org, admitLarge, inFlight.receive)
            const admitted = {
              record,
              request,
              receive: body.receive,
              response,
              departure,
              headers: () => headersOf(record)
            }
            return Effect.flatMap(admit(endpoint, record, request), () => endpoint.answer(admitted)).pipe(
              Effect.catchAllCause((cause) => failLate(record, cause)),
              Effect.matchCauseEffect({
                onFailure: (cause) => explain(cause, record, response),
                onSuccess: (answer): Effect.Effect<Outcome> => Effect.succeed({ answer, code: null })
              }),
              Effect.flatMap(({ answer, code }) => {
                body.release()
                return Effect.as(write(record, { status: answer?.status ?? 200, code }), answer)
              })
            )
          })

        const serve: Serve = (endpoint, request, response, trace) =>
          Effect.suspend(() => {
            const context = contextOf(request)
            return identify(request, context.address).pipe(
              Effect.flatMap((caller) => inFlight.track(work(endpoint, request, response, context, caller, trace))),
              Effect.catchAllCause((cause) =>
                Effect.map(errorResponse(cause, context.requestId), (error) => {
                  trace?.answer(error.status, error.body.error.code)
                  return Answer.wireError(error, { "x-request-id": context.requestId })
                })
              ),
              Effect.flatMap((answer) => {
                if (answer === undefined) return Effect.void
                // A client that reuses the connection would find it closed.
                const closing = inFlight.isStopping() ? { connection: "close" } : undefined
                return Answer.send(response, { ...answer, headers: { ...answer.headers, ...closing } })
              })
            )
          })

        return Admission.of({ serve })
      })
    )
}
