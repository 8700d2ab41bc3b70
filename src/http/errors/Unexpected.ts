import { type Cause, Effect, Option } from "effect"
import { logFailure, outageIn } from "../../services/sql/Outage.ts"
import { internalError, outage, type WireError } from "./Wire.ts"

export const unexpected = (cause: Cause.Cause<unknown>, requestId: string): Effect.Effect<WireError> => {
  const isOutage = Option.isSome(outageIn(cause))
  const logged = isOutage
    ? logFailure("A request failed because the database did not take its part of it", cause)
    : Effect.logError("A request failed unexpectedly", cause)
  return logged.pipe(Effect.annotateLogs("request_id", requestId), Effect.as(isOutage ? outage : internalError))
}
