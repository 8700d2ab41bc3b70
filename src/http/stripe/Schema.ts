import { HttpApiEndpoint, HttpApiGroup } from "@effect/platform"
import { GatewayBusy, InvalidRequest } from "../../domain/Failure.ts"
import { NoSuchPath, onWire } from "../errors/Schemas.ts"

/** What the payment provider tells. */
export const Stripe = HttpApiGroup.make("stripe")
  .add(HttpApiEndpoint.post("webhook", "/stripe/webhook"))
  .addError(NoSuchPath)
  .addError(onWire(400, InvalidRequest))
  .addError(onWire(503, GatewayBusy))
