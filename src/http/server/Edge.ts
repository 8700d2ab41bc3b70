import { FileSystem, HttpServerRequest, HttpServerResponse } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Cause, Effect, Option } from "effect"
import { AddressBlocked } from "../../domain/Failure.ts"
import { Auth } from "../../services/access/Auth.ts"
import { InFlight } from "../../services/runtime/InFlight.ts"
import { RequestReporter } from "../../services/telemetry/RequestReporter.ts"
import { respond, wireError } from "../Answer.ts"
import { adminBodyBytes } from "../admin/Body.ts"
import { contextMaker, RequestContext } from "../admission/RequestContext.ts"
import { errorResponse } from "../errors/ErrorResponse.ts"
import { encodeMessagesError, isOfMessages, messagesIdHeader } from "../messages/Errors.ts"
import { pathOf } from "./GenerationRoutes.ts"
import { explainPlatform } from "./PlatformErrors.ts"
import { readEndpointOf } from "./ReadEndpoints.ts"

const forMachines: ReadonlySet<string | undefined> = new Set(["/healthz", "/readyz", "/metrics"])

const untraced: ReadonlySet<string> = new Set(["system", "media", "none"])

/** Health is answered even while the database is away. */
const unlessUnknown = (isBlocked: Effect.Effect<boolean>) =>
  isBlocked.pipe(
    Effect.interruptible,
    Effect.timeoutTo({ duration: "500 millis", onSuccess: (known) => known, onTimeout: () => false }),
    Effect.catchAllDefect(() => Effect.succeed(false))
  )

/** The block list precedes routing, and every failure gets an envelope. */
export const edge = Effect.fnUntraced(function* (options: { readonly trustedProxies: number }) {
  const auth = yield* Auth
  const inFlight = yield* InFlight
  const { report } = yield* RequestReporter
  const contextOf = yield* contextMaker(options)

  return <E, R>(app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const endpoint = readEndpointOf(request.url)
      const context = contextOf(
        NodeHttpServerRequest.toIncomingMessage(request),
        untraced.has(endpoint.surface) ? undefined : endpoint
      )
      const sent = NodeHttpServerRequest.toServerResponse(request)
      const { address, requestId, startedAt, trace } = context
      trace?.announce(sent)
      const { headers, method, url } = request
      const isMessages = isOfMessages(pathOf(url), headers)
      if (isMessages) sent.setHeader(messagesIdHeader, requestId)
      const conclude = (status: number, code: string | null) => {
        trace?.answer({ status, code })
        trace?.end()
        report({ requestId, ...endpoint, method, status, code, startedAt })
      }

      const blocked = auth.isBlocked(address)
      const isBlocked = forMachines.has(url.split("?", 1)[0]) ? unlessUnknown(blocked) : blocked
      const response = yield* Effect.if(isBlocked, { onTrue: () => new AddressBlocked(), onFalse: () => app }).pipe(
        Effect.mapErrorCause(explainPlatform),
        Effect.provideService(RequestContext, context),
        HttpServerRequest.withMaxBodySize(Option.some(FileSystem.Size(adminBodyBytes))),
        Effect.tap((answer) => conclude(sent.headersSent ? sent.statusCode : answer.status, null)),
        Effect.catchAllCause((cause) => {
          if (Cause.isInterruptedOnly(cause)) {
            conclude(499, "client_closed")
            return Effect.interrupt
          }
          return Effect.map(errorResponse(cause, requestId), (error) => {
            conclude(error.status, error.body.error.code)
            return respond(wireError(error, {}, isMessages ? encodeMessagesError(error, requestId) : undefined))
          })
        })
      )
      // A client that reuses the connection would find it closed.
      return HttpServerResponse.setHeaders(response, {
        "x-request-id": requestId,
        ...(inFlight.isStopping() && { connection: "close" }),
        ...(endpoint.surface === "admin" && { "cache-control": "no-store" })
      })
    })
})
