import type { IncomingMessage, ServerResponse } from "node:http"
import { Cause, Chunk, Context, Effect, Layer, Option, Schedule } from "effect"
import { type Caller, hasScope, scopeOf } from "../../domain/ApiKey.ts"
import {
  Aborted,
  AddressBlocked,
  type Failure,
  InsufficientCredits,
  InsufficientScope,
  RateLimited
} from "../../domain/Failure.ts"
import type { Surface } from "../../domain/Model.ts"
import { available } from "../../domain/Organization.ts"
import { Auth } from "../../services/access/Auth.ts"
import { RateLimiter } from "../../services/access/RateLimiter.ts"
import { Idempotency } from "../../services/idempotency/Idempotency.ts"
import { Instance } from "../../services/instance/Instance.ts"
import { Ledger } from "../../services/ledger/Ledger.ts"
import { RequestRecord } from "../../services/requests/RequestRecord.ts"
import { ClientDeparture } from "../../services/runtime/ClientDeparture.ts"
import { ensureSync, proceed } from "../../services/runtime/Fibers.ts"
import { Ids } from "../../services/runtime/Ids.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import { HeartbeatLost, NoAnswer } from "../../services/sql/Outage.ts"
import * as Answer from "../Answer.ts"
import type { BodyCutOff } from "../body/BodyBuffer.ts"
import { BodyReceiver, type Incoming } from "../body/BodyReceiver.ts"
import { presentedKey, presentedSecret } from "./CallerAuthentication.ts"
import { contextMaker, idempotencyKeyOf, type RequestContext } from "./RequestContext.ts"
import { explain, headersOf, makeConclusion, type Outcome } from "./RequestOutcome.ts"

export interface Admitted extends Incoming {
  readonly record: RequestRecord
  readonly response: ServerResponse
  readonly departure: ClientDeparture
  readonly headers: () => Readonly<Record<string, string>>
  /** Runs by itself before a large body is received. */
  readonly checkSolvency: Effect.Effect<void, InsufficientCredits>
}

export interface Endpoint {
  readonly path: string
  readonly surface: Surface
  /** A small request takes its rate unit and its hold in one statement. */
  readonly admitsWithHold: boolean
  /** Its requests may wait until others of their organization have closed their holds. */
  readonly fitsHold?: boolean | undefined
  readonly encodeError?: Answer.EncodeError | undefined
  /** A further header for the id of a request. */
  readonly idHeader?: string | undefined
  readonly answer: (admitted: Admitted) => Effect.Effect<Answer.Answer | undefined, Failure | BodyCutOff>
}

/** A body of this size that came with its head is read before the rate unit is taken. */
const smallBody = 64 * 1024

const isSmall = ({ complete, readableLength }: IncomingMessage): boolean => complete && readableLength <= smallBody

interface PaymentServices {
  readonly ledger: Context.Tag.Service<Ledger>
  readonly idempotency: Context.Tag.Service<Idempotency>
}

/** Before a large body is received; a replay passes, since it costs nothing. */
const checkSolvency = Effect.fnUntraced(function* (
  { idempotency, ledger }: PaymentServices,
  { fitHolds = false, org }: Caller,
  { fitsHold = false, surface }: Endpoint,
  request: IncomingMessage
) {
  const funds = yield* ledger.balance(org)
  const endpoint = scopeOf[surface]
  const waits = fitsHold || (fitHolds && endpoint === "chat")
  if ((waits ? funds.balance : available(funds)) > 0n) return
  const key = endpoint === "chat" ? undefined : idempotencyKeyOf(request)
  if (endpoint !== "chat" && key !== undefined && (yield* idempotency.isKnown({ org, endpoint, key }))) return
  return yield* new InsufficientCredits()
})

/** The fiber goes on when the client leaves: begun work is paid for and logged. */
export class Admission extends Context.Tag("gateway/http/Admission")<
  Admission,
  {
    /** To be run uninterruptibly. */
    readonly serve: (endpoint: Endpoint, request: IncomingMessage, response: ServerResponse) => Effect.Effect<void>
  }
>() {
  static readonly layer = (options: { readonly defaultRpm: number; readonly trustedProxies: number }) =>
    Layer.scoped(
      Admission,
      Effect.gen(function* () {
        const auth = yield* Auth
        const inFlight = yield* InFlight
        const instance = yield* Instance
        const limiter = yield* RateLimiter
        const { conclude, refuse } = yield* makeConclusion
        const services = { idempotency: yield* Idempotency, ledger: yield* Ledger }
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

        const admit = (
          endpoint: Endpoint,
          record: RequestRecord,
          request: IncomingMessage
        ): Effect.Effect<void, Failure> => {
          const { caller, rate } = record
          if (!instance.isAdmitting()) return Effect.die(new HeartbeatLost())
          if (inFlight.isDraining()) {
            return Effect.flatMap(limiter.peek(caller.key, rate.limit), (allowance) => {
              rate.allowance = allowance
              return new Aborted()
            })
          }
          const scope = scopeOf[endpoint.surface]
          if (!hasScope(caller, scope)) return Effect.zipRight(takeRate(record), new InsufficientScope({ scope }))
          return endpoint.admitsWithHold && isSmall(request) ? Effect.void : takeRate(record)
        }

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

        const work = (
          endpoint: Endpoint,
          request: IncomingMessage,
          response: ServerResponse,
          { address, at, requestId, startedAt, trace }: typeof RequestContext.Service,
          caller: Caller
        ) => {
          const record = new RequestRecord({
            id: ids.uuid(),
            requestId,
            surface: endpoint.surface,
            caller,
            client: { address, userAgent: request.headers["user-agent"] },
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
          const solvency = checkSolvency(services, caller, endpoint, request)
          const body = receiver.body(request, caller.org, solvency, inFlight.receive)
          const admitted = {
            record,
            request,
            receive: body.receive,
            response,
            departure,
            headers: () => headersOf(record),
            checkSolvency: solvency
          }
          const finish = (outcome: Outcome) => {
            body.release()
            return proceed(conclude(endpoint, request, record, outcome), () => Effect.succeed(outcome.answer))
          }
          return Effect.matchCauseEffect(
            Effect.suspend(() => proceed(admit(endpoint, record, request), () => endpoint.answer(admitted))),
            {
              onFailure: (cause) =>
                failLate(record, cause).pipe(
                  Effect.catchAllCause((late) => explain(late, endpoint, record, response)),
                  Effect.flatMap(finish)
                ),
              onSuccess: (answer) => finish({ answer, code: null })
            }
          )
        }

        const serve = (endpoint: Endpoint, request: IncomingMessage, response: ServerResponse) =>
          Effect.suspend(() => {
            const context = contextOf(request, endpoint)
            const { requestId, trace } = context
            trace?.announce(response)
            if (endpoint.idHeader !== undefined) response.setHeader(endpoint.idHeader, requestId)
            const workFor = (caller: Caller) => inFlight.track(work(endpoint, request, response, context, caller))
            const secret = presentedSecret(request.headers)
            const recalled = secret === undefined ? undefined : auth.recall(secret)
            const send = (answer: Answer.Answer | undefined) => {
              if (answer === undefined) return Effect.void
              // A client that reuses the connection would find it closed.
              const closing = inFlight.isStopping()
                ? { headers: { ...answer.headers, connection: "close" } }
                : undefined
              return Answer.send(response, closing ? { ...answer, ...closing } : answer)
            }
            const served = Effect.matchCauseEffect(
              recalled === undefined ? Effect.flatMap(identify(request, context.address), workFor) : workFor(recalled),
              {
                onFailure: (cause) => Effect.flatMap(refuse(endpoint, request, context, cause), send),
                onSuccess: send
              }
            )
            return trace === undefined ? served : ensureSync(served, () => trace.end())
          })

        return Admission.of({ serve })
      })
    )
}
