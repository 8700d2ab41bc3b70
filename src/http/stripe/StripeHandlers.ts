import { HttpApiBuilder, HttpServerRequest } from "@effect/platform"
import { Effect, Option } from "effect"
import { GatewayBusy, InvalidRequest, UnknownEndpoint } from "../../domain/Failure.ts"
import * as Metrics from "../../services/metrics/Metrics.ts"
import { PaymentWebhook } from "../../services/payments/PaymentProvider.ts"
import { SiteApi } from "../Api.ts"
import { receiveUnidentified } from "../body/BodyReader.ts"
import { refuse } from "../body/Guards.ts"
import { json, respond } from "../HttpAnswer.ts"

const maxEventBytes = 256_000

export const StripeHandlers = HttpApiBuilder.group(
  SiteApi,
  "stripe",
  Effect.fnUntraced(function* (handlers) {
    const webhook = yield* PaymentWebhook
    return handlers.handleRaw("webhook", () =>
      Effect.gen(function* () {
        if (Option.isNone(webhook)) return yield* new UnknownEndpoint()
        const { isSignature, receive } = webhook.value
        const { "stripe-signature": signature } = (yield* HttpServerRequest.HttpServerRequest).headers
        // A request without a signature is refused before its body is read, because anyone may post here.
        const receiveBody = isSignature(signature)
          ? receiveUnidentified(maxEventBytes)
          : refuse(null, "The header `Stripe-Signature` is missing or malformed.")
        const body = yield* Effect.tapError(receiveBody, () =>
          Metrics.count(Metrics.paymentEvents, { outcome: "refused" })
        )
        yield* receive({ signature, body })
        return respond(json(200, { received: true }))
      }).pipe(
        Effect.catchTags({
          EventRefused: ({ message }) => new InvalidRequest({ message, param: null }),
          // Stripe sends the event again after this 503.
          PaymentProviderFailed: ({ message }) =>
            Effect.zipRight(Effect.logWarning(`Could not apply a payment event: ${message}`), new GatewayBusy())
        })
      )
    )
  })
)
