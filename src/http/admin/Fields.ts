import { HttpApp, HttpServerResponse } from "@effect/platform"
import { Effect, Record, Schema } from "effect"
import { Conflict, InvalidRequest, NotFound } from "../../domain/Failure.ts"
import { longestNote, longestRef } from "../../domain/LedgerText.ts"
import { usdInputs } from "../../domain/Money.ts"
import { parseRange, rangeForms } from "../../services/access/AddressRange.ts"
import type { Changed } from "../../services/admin/Audit.ts"
import { filledTo, Text, usdWhere } from "../../services/resources/BodyFields.ts"
import type { FieldRefused } from "../../services/resources/Input.ts"
import { parsedBy } from "../schema/Query.ts"

// Schemas of values, each with what is said of any other value.

const filledText = (longest: number) =>
  [filledTo(longest), `must be a text that is not blank, of at most ${longest} characters`] as const

export const noteText = filledText(longestNote)
export const paymentReference = filledText(longestRef)
export const organizationReference = [Text, "must be an id or a name"] as const
export const addressRange = [parsedBy(parseRange), `must be ${rangeForms}`] as const
export const usd = Record.map(usdInputs, ({ holds, problem }) => [usdWhere(holds), problem] as const)

/** Of an answer to a change. */
export const warningsLike = (example: string) => ({
  warnings: Schema.optional(Schema.Array(Schema.String)).annotations({
    description: `What was accepted and may be a mistake, such as ${example}; left out where nothing.`
  })
})

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
