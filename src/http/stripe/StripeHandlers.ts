import { HttpApiBuilder, HttpServerRequest } from "@effect/platform"
import { Effect, Option } from "effect"
import { GatewayBusy, InvalidRequest, UnknownEndpoint } from "../../domain/Failure.ts"
import * as Metrics from "../../services/metrics/Metrics.ts"
import { isSignature, PaymentIntake } from "../../services/payments/PaymentIntake.ts"
import { json, respond } from "../Answer.ts"
import { SiteApi } from "../Api.ts"
import { refuse } from "../body/Refusals.ts"
import { receiveUnidentified } from "../body/RequestBody.ts"

const maxEventBytes = 256_000

/** Anybody may post here, so a body without a signature is not even received. */
const receiveSigned = (signature: string | undefined) =>
  isSignature(signature)
    ? receiveUnidentified(maxEventBytes)
    : refuse(null, "The header `Stripe-Signature` is missing or malformed.")

export const StripeHandlers = HttpApiBuilder.group(
  SiteApi,
  "stripe",
  Effect.fnUntraced(function* (handlers) {
    const { receive } = yield* PaymentIntake
    return handlers.handleRaw("webhook", () =>
      Effect.gen(function* () {
        if (Option.isNone(receive)) return yield* new UnknownEndpoint()
        const { "stripe-signature": signature } = (yield* HttpServerRequest.HttpServerRequest).headers
        const body = yield* Effect.tapError(receiveSigned(signature), () =>
          Metrics.count(Metrics.paymentEvents, { outcome: "refused" })
        )
        yield* receive.value({ signature, body })
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
