import { ParseResult, Schema } from "effect"
import { month, monthForms } from "../../domain/Month.ts"
import { mustBeOneOf } from "./SharedFields.ts"

/** A query parameter with one message for every fault; repeating it is one. */
export const parameter = <A, I>(name: string, schema: Schema.Schema<A, I>, problem: string, description: string) =>
  Schema.optional(
    schema.annotations({ description, message: () => ({ message: `\`${name}\` ${problem}.`, override: true }) })
  ).annotations({ description })

/** Text that `parse` reads; it returns undefined to refuse the text. */
export const parsedBy = <A>(parse: (text: string) => A | undefined): Schema.Schema<A, string> =>
  Schema.transformOrFail(
    Schema.String,
    Schema.declare((_value): _value is A => true),
    {
      strict: true,
      decode: (text, _, ast) => {
        const parsed = parse(text)
        return parsed === undefined ? ParseResult.fail(new ParseResult.Type(ast, text)) : ParseResult.succeed(parsed)
      },
      encode: (value, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, value, "requests are only decoded"))
    }
  )

/** One of the words, with what is said of any other text. */
export const oneOf = <const Words extends readonly [string, ...ReadonlyArray<string>]>(...words: Words) =>
  [Schema.Literal(...words), mustBeOneOf(words)] as const

export const monthParameter = {
  month: parameter(
    "month",
    parsedBy(month),
    `must be ${monthForms}`,
    "A month of UTC, such as `2026-11`; the running one if left out."
  )
}
