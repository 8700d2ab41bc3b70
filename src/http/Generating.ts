import type { ServerResponse } from "node:http"
import { HttpServerRequest, type HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Cause, Context, Deferred, Effect, Layer, Option, Schedule } from "effect"
import type { Scope as KeyScope } from "../domain/ApiKey.ts"
import { Aborted, type Failure, InsufficientScope, RateLimited } from "../domain/Failure.ts"
import type { Surface } from "../domain/Model.ts"
import { Idempotency } from "../services/Idempotency.ts"
import { Ids } from "../services/Ids.ts"
import { InFlight } from "../services/InFlight.ts"
import { Instance } from "../services/Instance.ts"
import { Ledger } from "../services/Ledger.ts"
import * as Metrics from "../services/Metrics.ts"
import * as Monotonic from "../services/Monotonic.ts"
import { HeartbeatLost } from "../services/Outage.ts"
import { RateLimiter } from "../services/RateLimiter.ts"
import { RequestLog } from "../services/RequestLog.ts"
import { RequestRecord } from "../services/RequestRecord.ts"
import { Voids } from "../services/Voids.ts"
import { type BodyCutOff, BodyReceiver, type Incoming } from "./BodyReceiver.ts"
import { CurrentCaller } from "./contract/Authenticated.ts"
import { RequestContext } from "./RequestContext.ts"
import * as Respond from "./Respond.ts"
import { checkSolvency } from "./Solvency.ts"
import { unexpected } from "./Unexpected.ts"
import * as Wire from "./Wire.ts"

export interface Admitted extends Incoming {
  readonly record: RequestRecord
  readonly response: ServerResponse
  /** Completed when the client has gone. */
  readonly departed: Deferred.Deferred<void>
  /** What every answer from here on carries. */
  readonly headers: Readonly<Record<string, string>>
}

export interface Endpoint {
  readonly surface: Surface
  readonly scope: KeyScope
}

interface Answered {
  readonly response: HttpServerResponse.HttpServerResponse
  readonly code: string | null
}

/**
 * The path that every generating request takes after authentication: rate, scope, the work itself, and one row in
 * the log. The work goes on when the client leaves.
 */
export class Generating extends Context.Tag("gateway/http/Generating")<
  Generating,
  {
    readonly run: <R>(
      endpoint: Endpoint,
      work: (admitted: Admitted) => Effect.Effect<HttpServerResponse.HttpServerResponse, Failure | BodyCutOff, R>
    ) => Effect.Effect<
      HttpServerResponse.HttpServerResponse,
      never,
      R | HttpServerRequest.HttpServerRequest | CurrentCaller
    >
  }
>() {
  static readonly layer = (options: { readonly defaultRpm: number }) =>
    Layer.scoped(
      Generating,
      Effect.gen(function* () {
        const inFlight = yield* InFlight
        const instance = yield* Instance
        const limiter = yield* RateLimiter
        const services = { idempotency: yield* Idempotency, ledger: yield* Ledger }
        const log = yield* RequestLog
        const voids = yield* Voids
        const ids = yield* Ids
        const receiver = new BodyReceiver()
        yield* Effect.forkScoped(Effect.repeat(receiver.inspect, Schedule.spaced("1 second")))

        const admit = Effect.fnUntraced(function* (endpoint: Endpoint, { caller }: RequestRecord, headers: Headers) {
          if (!(yield* instance.admitting)) return yield* Effect.die(new HeartbeatLost())
          const draining = inFlight.isDraining()
          const allowance = yield* limiter[draining ? "peek" : "take"](caller.key, caller.rpm ?? options.defaultRpm)
          headers["x-ratelimit-limit"] = String(allowance.limit)
          headers["x-ratelimit-remaining"] = String(allowance.remaining)
          if (draining) return yield* new Aborted()
          if (!allowance.admitted) return yield* new RateLimited()
          if (caller.scopes !== undefined && !caller.scopes.includes(endpoint.scope)) {
            return yield* new InsufficientScope({ scope: endpoint.scope })
          }
        })

        const write = Effect.fnUntraced(function* (record: RequestRecord, status: number, code: string | null) {
          const entry = record.entry({ status, code, endedAt: yield* Monotonic.millis })
          yield* voids.afterwards(entry.hold, log.write(entry))
          const { code: logged, status: final, surface } = entry
          yield* Metrics.count(Metrics.requests, { surface, status: String(final), code: logged ?? "" })
        })

        return Generating.of({
          run: (endpoint, work) =>
            Effect.gen(function* () {
              const caller = yield* CurrentCaller
              const { at, requestId, startedAt } = yield* RequestContext
              const httpRequest = yield* HttpServerRequest.HttpServerRequest
              const request = NodeHttpServerRequest.toIncomingMessage(httpRequest)
              const response = NodeHttpServerRequest.toServerResponse(httpRequest)
              const record = new RequestRecord({
                id: ids.uuid(),
                requestId,
                surface: endpoint.surface,
                caller,
                at,
                startedAt
              })
              const departed = yield* Deferred.make<void>()
              const headers: Headers = { "x-request-id": requestId }
              const admitLarge = checkSolvency(services, caller.org, endpoint.scope, request)
              const body = receiver.body(request, caller.org, admitLarge)
              const admitted: Admitted = { record, request, receive: body.receive, response, departed, headers }

              const worked = Effect.ensuring(
                Effect.suspend(() => work(admitted)),
                Effect.sync(body.release)
              )
              const answered = admit(endpoint, record, headers).pipe(
                Effect.zipRight(worked),
                Effect.map((answer): Answered => ({ response: answer, code: null })),
                Effect.catchAllCause((cause) => explain(cause, record, headers)),
                Effect.tap(({ code, response: { status } }) => write(record, status, code)),
                Effect.onInterrupt(() => {
                  const aborted = Wire.toWire(new Aborted())
                  return write(record, response.headersSent ? 200 : aborted.status, aborted.body.error.code)
                }),
                Effect.map((answer) => answer.response)
              )
              const left = Effect.suspend(() => {
                record.departed = true
                return Effect.asVoid(Deferred.succeed(departed, undefined))
              })
              return yield* inFlight
                .run(answered, left)
                .pipe(Effect.catchTag("Aborted", (failure) => Effect.succeed(Respond.failure(failure, headers))))
            })
        })
      })
    )
}

type Headers = Record<string, string>

const answeredWith = (error: Wire.WireError, headers: Headers): Answered => ({
  response: Respond.wireError(error, headers),
  code: error.body.error.code
})

const logFailed = ({ requestId }: RequestRecord, cause: Cause.Cause<unknown>) =>
  Effect.annotateLogs(Effect.logError("A request failed unexpectedly", cause), "request_id", requestId)

const explain = (
  cause: Cause.Cause<Failure | BodyCutOff>,
  record: RequestRecord,
  headers: Headers
): Effect.Effect<Answered> => {
  if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
  const failure = Cause.failureOption(cause)
  if (Option.isNone(failure) || Option.isSome(Cause.dieOption(cause))) {
    return Effect.map(unexpected(cause, record.requestId), (error) => answeredWith(error, headers))
  }
  if (failure.value._tag === "BodyCutOff") {
    record.departed = true
    return Effect.succeed({ response: Respond.json(400, {}, headers), code: null })
  }
  const wire = Wire.toWire(failure.value)
  const logged = wire.status === 500 ? logFailed(record, cause) : Effect.void
  return Effect.as(logged, answeredWith(wire, headers))
}
