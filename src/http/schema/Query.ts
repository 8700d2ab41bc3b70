import { ParseResult, Schema } from "effect"
import { type Month, month, monthForms } from "../../domain/Month.ts"

/** A query parameter with one message for every fault; repeating it is one. */
export const parameter = <A, I>(name: string, schema: Schema.Schema<A, I>, problem: string, description: string) =>
  Schema.optional(
    schema.annotations({ description, message: () => ({ message: `\`${name}\` ${problem}.`, override: true }) })
  ).annotations({ description })

const MonthText = Schema.transformOrFail(
  Schema.String,
  Schema.declare((_value): _value is Month => true),
  {
    strict: true,
    decode: (text, _, ast) => {
      const parsed = month(text)
      return parsed === undefined ? ParseResult.fail(new ParseResult.Type(ast, text)) : ParseResult.succeed(parsed)
    },
    encode: ({ name }) => ParseResult.succeed(name)
  }
)

export const monthParameter = {
  month: parameter(
    "month",
    MonthText,
    `must be ${monthForms}`,
    "A month of UTC, such as `2026-11`; the running one if left out."
  )
}
