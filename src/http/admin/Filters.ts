import { Clock, Effect, ParseResult, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { calendarWords } from "../../domain/Calendar.ts"
import { InvalidRequest } from "../../domain/Failure.ts"
import { duration, durationForms, type PastMoment, pastForms, pastMoment, toPast } from "../../domain/Moment.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { Organizations } from "../../services/admin/Organizations.ts"
import { parameter } from "../schema/Query.ts"
import { invalid } from "./Fields.ts"

const Parsed = Schema.Union(
  Schema.Struct({ at: Schema.Number }),
  Schema.Struct({ distance: Schema.Number }),
  Schema.Struct({ beginning: Schema.Literal(...calendarWords) })
)

const MomentText = Schema.transformOrFail(Schema.String, Parsed, {
  strict: true,
  decode: (text, _, ast) => {
    const parsed = pastMoment(text)
    return parsed === undefined ? ParseResult.fail(new ParseResult.Type(ast, text)) : ParseResult.succeed(parsed)
  },
  encode: (value, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, value, "requests are only decoded"))
})

const momentParameter = (name: string, description: string) =>
  parameter(name, MomentText, `must be ${pastForms}`, description)

export const spanParameters = {
  since: momentParameter("since", `From when: ${pastForms}; the oldest if left out. Days and months are UTC.`),
  until: momentParameter("until", "Up to and not including when; now if left out.")
}

const DurationText = Schema.transformOrFail(Schema.String, Schema.Number, {
  strict: true,
  decode: (text, _, ast) => {
    const millis = duration(text)
    return millis === undefined ? ParseResult.fail(new ParseResult.Type(ast, text)) : ParseResult.succeed(millis)
  },
  encode: (value, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, value, "requests are only decoded"))
})

export const durationParameter = (name: string, description: string) =>
  parameter(name, DurationText, `must be ${durationForms}`, description)

const longest = 1000

/** Nothing that can be found has control characters, and the database takes no NUL. */
const Findable = Schema.String.pipe(Schema.filter((text) => text.length <= longest && !/[\p{Cc}\p{Cs}]/u.test(text)))

const findableProblem = `must be a text of at most ${longest} characters without control characters`

export const textParameter = (name: string, description: string) =>
  parameter(name, Findable, findableProblem, description)

export const keyParameter = parameter("key", Schema.compose(Findable, KeyId), findableProblem, "A key's id.")

export const organizationParameter = {
  organization: parameter("organization", Findable, "must be an id or a name", "An id or a name; all if left out.")
}

/** A deleted one too, by its id. */
export const organizationOf = (reference: string | undefined) =>
  reference === undefined
    ? Effect.succeed(undefined)
    : Effect.gen(function* () {
        const { scope } = yield* CurrentActor
        const { findAny } = yield* Organizations
        return yield* findAny(scope, reference)
      }).pipe(
        Effect.map(({ id }) => id),
        Effect.mapError(invalid("organization"))
      )

interface SharedFilters {
  readonly organization?: string | undefined
  readonly since?: PastMoment | undefined
  readonly until?: PastMoment | undefined
}

/** As services take them: an organization's id, and Unix milliseconds. */
export const filtersOf = <Filters extends SharedFilters>({ organization, since, until, ...others }: Filters) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const span = { since: since && toPast(since, now), until: until && toPast(until, now) }
    if (span.since !== undefined && span.until !== undefined && span.since >= span.until) {
      return yield* new InvalidRequest({ message: "`since` must be before `until`.", param: "since" })
    }
    return { ...others, ...span, org: yield* organizationOf(organization) }
  })
