import { Schema } from "effect"

export const described = <A, I>(schema: Schema.Schema<A, I>, description: string) =>
  Schema.optional(schema).annotations({ description })

/** An optional field of a request in JSON, where null is the same as leaving it out. */
export const optional = <A, I>(schema: Schema.Schema<A, I>, description?: string) =>
  Schema.optional(Schema.NullOr(schema)).annotations(description === undefined ? {} : { description })
