import { HttpApiMiddleware } from "@effect/platform"
import { Context, Schema } from "effect"
import type { Caller } from "../../domain/ApiKey.ts"
import { InvalidApiKey, MissingApiKey, OrganizationSuspended } from "../../domain/Failure.ts"
import { onWire } from "../errors/Schemas.ts"

export class CurrentCaller extends Context.Tag("gateway/http/CurrentCaller")<CurrentCaller, Caller>() {}

/** Not two security schemes: the last one's failure would win, and a missing key would look like a wrong one. */
export class Authenticated extends HttpApiMiddleware.Tag<Authenticated>()("gateway/http/Authenticated", {
  provides: CurrentCaller,
  failure: onWire(401, MissingApiKey, InvalidApiKey, OrganizationSuspended).annotations({
    description: "The key is missing or not valid, or its organization is suspended."
  })
}) {}

export const gatewayTag = "x-gateway-tag"
export const tagPattern = /^[A-Za-z0-9._-]{1,64}$/

/** Only described, as all headers are. */
export const GatewayTag = Schema.Struct({
  [gatewayTag]: Schema.optional(
    Schema.String.annotations({
      jsonSchema: {
        type: "string",
        pattern: tagPattern.source,
        description:
          "What to add this request's usage up by: see `/usage?by=tag`. No provider sees it. A wrong one is 400."
      }
    })
  )
})

export const idempotencyKey = "idempotency-key"

/** Only described: the services check it. */
export const IdempotencyKey = Schema.Struct({
  [idempotencyKey]: Schema.optional(
    Schema.String.annotations({
      jsonSchema: {
        type: "string",
        pattern: "^[!-~]{1,255}$",
        description: "For 24 hours a repeated request with the same key gets the result of the first one."
      }
    })
  )
})

export const MediaHeaders = Schema.Struct({ ...IdempotencyKey.fields, ...GatewayTag.fields })
