import { Schema } from "effect"

const text = Schema.NullOr(Schema.String)

export const RequestError = Schema.NullOr(
  Schema.Struct({
    param: text.annotations({ description: "The invalid request field, or null." }),
    message: Schema.String,
    hint: text.annotations({ description: "How to fix it." })
  })
).annotations({ description: "The error in the response. Null if the request succeeded." })

export const requestErrorFields = ["param", "message", "hint"] as const satisfies ReadonlyArray<
  keyof NonNullable<typeof RequestError.Type>
>
