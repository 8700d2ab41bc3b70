import { ParseResult, Schema } from "effect"
import { month, monthForms } from "../../domain/Month.ts"
import { mustBeOneOf } from "./SharedFields.ts"

/** Returns a query parameter. `problem` completes the message for an invalid value or a repeated parameter. */
export const queryParameter = <A, I>(name: string, schema: Schema.Schema<A, I>, problem: string, description: string) =>
  Schema.optional(
    schema.annotations({ description, message: () => ({ message: `\`${name}\` ${problem}.`, override: true }) })
  ).annotations({ description })

/** Returns a schema that decodes a text with `parse`, which returns undefined for an invalid one. */
export const parseWith = <A>(parse: (text: string) => A | undefined): Schema.Schema<A, string> =>
  Schema.transformOrFail(
    Schema.String,
    Schema.declare((_value): _value is A => true),
    {
      strict: true,
      decode: (text, _, ast) => {
        const value = parse(text)
        return value === undefined ? ParseResult.fail(new ParseResult.Type(ast, text)) : ParseResult.succeed(value)
      },
      encode: (value, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, value, "requests are only decoded"))
    }
  )

/** Returns a schema that accepts these words, and the rest of the error message for any other text. */
export const oneOf = <const Words extends readonly [string, ...ReadonlyArray<string>]>(...words: Words) =>
  [Schema.Literal(...words), mustBeOneOf(words)] as const

export const monthParameter = {
  month: queryParameter(
    "month",
    parseWith(month),
    `must be ${monthForms}`,
    "A UTC month, such as `2026-11`. The default is the current month."
  )
}
