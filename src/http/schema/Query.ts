import { Schema } from "effect"

/** A parameter of a query, refused in these words whatever is wrong with it; a repeated one is wrong. */
export const parameter = <A, I>(name: string, schema: Schema.Schema<A, I>, problem: string, description: string) =>
  Schema.optional(
    schema.annotations({ description, message: () => ({ message: `\`${name}\` ${problem}.`, override: true }) })
  ).annotations({ description })
