import { HttpApiBuilder, HttpServerRequest } from "@effect/platform"
import { NodeHttpServerRequest } from "@effect/platform-node"
import { Effect, Option } from "effect"
import { GatewayBusy, InvalidRequest, UnknownEndpoint } from "../../domain/Failure.ts"
import * as Metrics from "../../services/metrics/Metrics.ts"
import { PaymentIntake } from "../../services/payments/PaymentIntake.ts"
import { json, respond } from "../Answer.ts"
import { SiteApi } from "../Api.ts"
import { rawBody } from "./RawBody.ts"

const maxEventBytes = 256_000

export const StripeHandlers = HttpApiBuilder.group(
  SiteApi,
  "stripe",
  Effect.fnUntraced(function* (handlers) {
    const { receive } = yield* PaymentIntake
    return handlers.handleRaw("webhook", () =>
      Effect.gen(function* () {
        if (Option.isNone(receive)) return yield* new UnknownEndpoint()
        const request = NodeHttpServerRequest.toIncomingMessage(yield* HttpServerRequest.HttpServerRequest)
        const body = yield* Effect.tapError(rawBody(request, maxEventBytes), () =>
          Metrics.count(Metrics.paymentEvents, { outcome: "refused" })
        )
        const { "stripe-signature": sent } = request.headers
        yield* receive.value({ signature: Array.isArray(sent) ? sent.join(",") : sent, body })
        return respond(json(200, { received: true }))
      }).pipe(
        Effect.catchTags({
          EventRefused: ({ message }) => new InvalidRequest({ message, param: null }),
          // It is sent again later.
          PaymentProviderFailed: ({ message }) =>
            Effect.zipRight(Effect.logWarning(`A payment event was not applied: ${message}`), new GatewayBusy())
        })
      )
    )
  })
)
