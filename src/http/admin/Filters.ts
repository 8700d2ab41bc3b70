import { Clock, Effect, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { InvalidRequest } from "../../domain/Failure.ts"
import { type PastMoment, pastForms, pastMoment, toPast } from "../../domain/Moment.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { Organizations } from "../../services/admin/Organizations.ts"
import { parameter, parsedBy } from "../schema/Query.ts"
import { invalid } from "./Fields.ts"

const momentParameter = (name: string, description: string) =>
  parameter(name, parsedBy(pastMoment), `must be ${pastForms}`, description)

export const spanParameters = {
  since: momentParameter("since", `From when: ${pastForms}; the oldest if left out. Days and months are UTC.`),
  until: momentParameter("until", "Up to and not including when; now if left out.")
}

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
