import { Schema } from "effect"

/** A query parameter with one message for every fault; repeating it is one. */
export const parameter = <A, I>(name: string, schema: Schema.Schema<A, I>, problem: string, description: string) =>
  Schema.optional(
    schema.annotations({ description, message: () => ({ message: `\`${name}\` ${problem}.`, override: true }) })
  ).annotations({ description })
