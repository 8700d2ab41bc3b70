import { HttpApiMiddleware } from "@effect/platform"
import { Context, Schema } from "effect"
import type { Caller } from "../../domain/ApiKey.ts"
import { responsesAt } from "../errors/ErrorMessages.ts"

export class CurrentCaller extends Context.Tag("gateway/http/CurrentCaller")<CurrentCaller, Caller>() {}

/**
 * Provides the caller. It declares no security schemes, because the platform would report only the failure of the last one, so
 * a missing key would look like an invalid one.
 */
export class Authenticated extends HttpApiMiddleware.Tag<Authenticated>()("gateway/http/Authenticated", {
  provides: CurrentCaller,
  failure: responsesAt("key", { 401: "The key is missing or not valid, or its organization is suspended." })
}) {}

export const gatewayTag = "x-gateway-tag"
export const tagPattern = /^[A-Za-z0-9._-]{1,64}$/

/** Only documents the header. `admission/RequestContext.ts` checks its value. */
export const GatewayTag = Schema.Struct({
  [gatewayTag]: Schema.optional(
    Schema.String.annotations({
      jsonSchema: {
        type: "string",
        pattern: tagPattern.source,
        description:
          "A tag for grouping usage, see `/usage?by=tag`. Providers do not receive it. An invalid tag returns 400."
      }
    })
  )
})

export const idempotencyKey = "idempotency-key"

/** Only documents the header. The services check its value. */
const IdempotencyKey = Schema.Struct({
  [idempotencyKey]: Schema.optional(
    Schema.String.annotations({
      jsonSchema: {
        type: "string",
        pattern: "^[!-~]{1,255}$",
        description: "For 24 hours, a retry with the same key returns the result of the first request."
      }
    })
  )
})

export const MediaHeaders = Schema.Struct({ ...IdempotencyKey.fields, ...GatewayTag.fields })
