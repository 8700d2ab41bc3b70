import { HttpApp, HttpServerResponse } from "@effect/platform"
import { Effect, Record, Schema } from "effect"
import { maxNoteLength, maxRefLength } from "../../domain/Constraints.ts"
import { Conflict, InvalidRequest, NotFound } from "../../domain/Failure.ts"
import { usdInputs } from "../../domain/Money.ts"
import { parseRange, rangeForms } from "../../services/access/BlockList.ts"
import type { Changed } from "../../services/admin/AuditLog.ts"
import { type FieldRefused, filledTo, Text, usdWhere } from "../../services/resources/ResourceInput.ts"
import { replayHeader } from "../AnswerHeaders.ts"
import { parseWith } from "../schema/Query.ts"

// Each pair has the schema of a field, and the message for an invalid value.

const nonBlankText = (maxLength: number) =>
  [filledTo(maxLength), `must be a non-blank string of at most ${maxLength} characters`] as const

export const noteText = nonBlankText(maxNoteLength)
export const paymentReference = nonBlankText(maxRefLength)
export const organizationReference = [Text, "must be an id or a name"] as const
export const addressRange = [parseWith(parseRange), `must be ${rangeForms}`] as const
export const usd = Record.map(usdInputs, ({ isValid: holds, problem }) => [usdWhere(holds), problem] as const)

/** Returns the field that lists warnings in the response to a change. `example` completes its description. */
export const warningsField = (example: string) => ({
  warnings: Schema.optional(Schema.Array(Schema.String)).annotations({
    description: `Accepted values that may be mistakes, such as ${example}. Absent if there are no warnings.`
  })
})

/** Accepts a missing body in every form that clients send: absent, null or empty. */
export const optionalBody = <A, I>(body: Schema.Schema<A, I>) => Schema.Union(body, Schema.Null, Schema.Literal(""))

const announceReplay = HttpApp.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeaders(response, replayHeader))
)

/** Returns the response to a change. For a replay it has a header, and no value, because only the record was stored. */
export const answerOf = <A, Record, Answer, E, R>(
  change: Effect.Effect<Changed<A, Record>, E, R>,
  encodeAnswer: (record: Record, value: A | undefined) => Answer
) =>
  Effect.flatMap(change, ({ record, value }) =>
    value === undefined
      ? Effect.as(announceReplay, encodeAnswer(record, value))
      : Effect.succeed(encodeAnswer(record, value))
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

/** Converts a service's refusal to one that names the fields of the request body. */
export const refuseField = ({ explain, field }: FieldRefused) => {
  const message = explain((name, values) => `\`${name}\`${values === undefined ? "" : `: ${values}`}`)
  return new InvalidRequest({ message, param: field })
}
