import { HttpApp, HttpServerResponse } from "@effect/platform"
import { Effect, ParseResult, Record, Schema } from "effect"
import { Conflict, InvalidRequest, NotFound } from "../../domain/Failure.ts"
import { longestNote, longestRef } from "../../domain/LedgerText.ts"
import { usdInputs } from "../../domain/Money.ts"
import { type AddressRange, parseRange } from "../../services/access/AddressRange.ts"
import type { Changed } from "../../services/admin/Audit.ts"
import { filledTo } from "../../services/resources/BodyFields.ts"
import type { FieldRefused } from "../../services/resources/Input.ts"

const problemTo = (longest: number) => `must be a text that is not blank, of at most ${longest} characters`

/** What an operator writes down. */
export const Filled = filledTo(longestNote)
export const filledProblem = problemTo(longestNote)
export const Reference = filledTo(longestRef)
export const referenceProblem = problemTo(longestRef)

export const AddressRangeText = Schema.transformOrFail(
  Schema.String,
  Schema.declare((_value): _value is AddressRange => true),
  {
    strict: true,
    decode: (text, _, ast) => {
      const range = parseRange(text)
      return range === undefined ? ParseResult.fail(new ParseResult.Type(ast, text)) : ParseResult.succeed(range)
    },
    encode: (range) => ParseResult.succeed(range)
  }
)
export const rangeProblem = "must be an address or a range such as 203.0.113.0/24 or 2001:db8::/32"

export const usdProblem = Record.map(usdInputs, ({ problem }) => problem)

/** A change that can be asked for without a body, however clients send none. */
export const orNoBody = <A, I>(body: Schema.Schema<A, I>) => Schema.Union(body, Schema.Null, Schema.Literal(""))

const announceReplay = HttpApp.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "idempotency-replayed", "true"))
)

/** The answer to a change; a header tells that an earlier result was repeated, of which only the record was kept. */
export const answerOf = <A, Record, Answer, E, R>(
  change: Effect.Effect<Changed<A, Record>, E, R>,
  answer: (record: Record, value: A | undefined) => Answer
) =>
  Effect.flatMap(change, ({ record, value }) =>
    value === undefined ? Effect.as(announceReplay, answer(record, value)) : Effect.succeed(answer(record, value))
  )

export const recordOf = <Record, E, R>(change: Effect.Effect<Changed<unknown, Record>, E, R>) =>
  answerOf(change, (record) => record)

interface WithMessage {
  readonly message: string
}

export const notFound = ({ message }: WithMessage) => new NotFound({ message })
export const conflict =
  (param: string | null) =>
  ({ message }: WithMessage) =>
    new Conflict({ message, param })
export const invalid =
  (param: string | null) =>
  ({ message }: WithMessage) =>
    new InvalidRequest({ message, param })

/** As bodies name their fields. */
export const refuseField = ({ explain, field }: FieldRefused) => {
  const message = explain((name, values) => `\`${name}\`${values === undefined ? "" : `: ${values}`}`)
  return new InvalidRequest({ message, param: field })
}
