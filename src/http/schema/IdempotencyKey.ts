import { Schema } from "effect"

export const idempotencyKey = "idempotency-key"

/** Only described here: what is wrong with one is told in its place among the checks of a request. */
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
