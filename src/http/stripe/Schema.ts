import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { Aborted, BodyTooLarge, BodyTooSlow, GatewayBusy, InvalidRequest } from "../../domain/Failure.ts"
import { NoSuchPath, onWire } from "../errors/Schemas.ts"

/** What the payment provider tells. */
export const Stripe = HttpApiGroup.make("stripe")
  .add(HttpApiEndpoint.post("webhook", "/stripe/webhook"))
  .addError(NoSuchPath)
  .addError(onWire(400, InvalidRequest, BodyTooSlow))
  .addError(onWire(413, BodyTooLarge))
  .addError(onWire(503, GatewayBusy, Aborted))
