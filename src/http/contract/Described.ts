import { Schema } from "effect"

/** An optional field, with what it is for. */
export const described = <A, I>(schema: Schema.Schema<A, I>, description: string) =>
  Schema.optional(schema).annotations({ description })
