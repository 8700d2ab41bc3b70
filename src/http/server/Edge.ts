import { HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect } from "effect"
import { AddressBlocked } from "../../domain/Failure.ts"
import { Auth } from "../../services/access/Auth.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import * as Metrics from "../../services/telemetry/Metrics.ts"
import { contextMaker, RequestContext } from "../admission/RequestContext.ts"
import { lastResort } from "../errors/LastResort.ts"

const forMachines: ReadonlySet<string | undefined> = new Set(["/healthz", "/readyz", "/metrics"])

/** Health must be told above all when the database is not there to say who is blocked. */
const unlessUnknown = (isBlocked: Effect.Effect<boolean>) =>
  isBlocked.pipe(
    Effect.interruptible,
    Effect.timeoutTo({ duration: "500 millis", onSuccess: (known) => known, onTimeout: () => false }),
    Effect.catchAllDefect(() => Effect.succeed(false))
  )

/** The outermost layer: the block list comes before routing, and every failure gets an envelope. */
export const edge = Effect.fnUntraced(function* (options: { readonly trustedProxies: number }) {
  const auth = yield* Auth
  const inFlight = yield* InFlight
  const contextOf = yield* contextMaker(options)

  return <E, R>(app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const context = contextOf(NodeHttpServerRequest.toIncomingMessage(request))
      const { address, requestId } = context

      const routed = Effect.gen(function* () {
        const isBlocked = auth.isBlocked(address)
        if (yield* forMachines.has(request.url.split("?", 1)[0]) ? unlessUnknown(isBlocked) : isBlocked) {
          yield* Metrics.count(Metrics.refused, { reason: "access_denied" })
          return yield* new AddressBlocked()
        }
        return yield* app
      })
      const response = yield* lastResort(requestId, Effect.provideService(routed, RequestContext, context))
      // A client that reuses the connection would meet its end.
      return HttpServerResponse.setHeaders(
        response,
        inFlight.isStopping() ? { "x-request-id": requestId, connection: "close" } : { "x-request-id": requestId }
      )
    })
})
