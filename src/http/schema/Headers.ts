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

const text = (description: string) => ({ description, schema: { type: "string" } })
const count = (description: string) => ({ description, schema: { type: "integer" } })

/** The headers of answers, as the API document describes them. Pages of other origins may read them all. */
export const answerHeaders = {
  "x-request-id": text("The request's id: the `x-request-id` that you sent, or one made for it."),
  "request-id": text("The same as `x-request-id`."),
  "x-ratelimit-limit": count("Requests per minute that the key may make."),
  "x-ratelimit-remaining": count("Requests left in the current minute."),
  "x-ratelimit-limit-tokens": count("Tokens per minute that the key may use, where it has such a limit."),
  "x-ratelimit-remaining-tokens": count("Tokens left in the current minute."),
  "x-ratelimit-reset-tokens": text("Seconds until the current minute of tokens ends, such as `42s`."),
  "retry-after": count("Seconds to wait before the next try."),
  "x-should-retry": text("`false`: official clients would repeat a 409 at once."),
  "idempotency-replayed": text("`true` if this is the kept result of an earlier request."),
  "x-gateway-sandbox": text("`true` if the sandbox made the answer up."),
  "x-gateway-max-output-tokens": count("The output that the balance covers, where that is less than was asked for."),
  "x-gateway-charge-usd": text(
    "What the request was charged, in USD to the nano-dollar; a replay says 0, a stream does not have it."
  ),
  location: text("The video's `url`.")
}

export const idempotencyKey = "idempotency-key"

/** Only described: the services check it. */
const IdempotencyKey = Schema.Struct({
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
