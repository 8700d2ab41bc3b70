import { Clock, Effect, Schema } from "effect"
import { KeyId } from "../../domain/ApiKey.ts"
import { InvalidRequest } from "../../domain/Failure.ts"
import { type PastMoment, pastForms, pastMoment, toPast } from "../../domain/Moment.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { CurrentActor } from "../../services/admin/Actor.ts"
import { Organizations } from "../../services/admin/Organizations.ts"
import { TextOrNull } from "../../services/resources/ResourceRecord.ts"
import { isIdFor } from "../../services/sql/Listing.ts"
import { parseWith, queryParameter } from "../schema/Query.ts"
import { invalid } from "./Fields.ts"

const momentParameter = (name: string, description: string) =>
  queryParameter(name, parseWith(pastMoment), `must be ${pastForms}`, description)

export const spanParameters = {
  since: momentParameter("since", `The start: ${pastForms}. The default is the oldest. Days and months are UTC.`),
  until: momentParameter("until", "The exclusive end, in the same format. The default is now.")
}

const maxLength = 1000

/** Refuses control characters, because no stored text has them and the database rejects NUL. */
const SearchText = Schema.String.pipe(
  Schema.filter((text) => text.length <= maxLength && !/[\p{Cc}\p{Cs}]/u.test(text))
)

const searchTextProblem = `must be a string of at most ${maxLength} characters without control characters`

export const textParameter = (name: string, description: string) =>
  queryParameter(name, SearchText, searchTextProblem, description)

export const keyParameter = queryParameter("key", Schema.compose(SearchText, KeyId), searchTextProblem, "A key's id.")

export const organizationParameter = {
  organization: queryParameter(
    "organization",
    SearchText,
    "must be an id or a name",
    "An organization's id or name. The default is all."
  )
}

/** Returns the id of an organization with this id or name. A deleted organization is found only by its id. */
export const organizationOf = (reference: string | undefined) =>
  reference === undefined
    ? Effect.succeed(undefined)
    : Effect.gen(function* () {
        const { scope } = yield* CurrentActor
        const { findIncludingDeleted: findAny } = yield* Organizations
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

/** Converts query filters to those of services: an organization's name to its id, and times to Unix milliseconds. */
export const filtersOf = <Filters extends SharedFilters>({ organization, since, until, ...others }: Filters) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const timeRange = { since: since && toPast(since, now), until: until && toPast(until, now) }
    if (timeRange.since !== undefined && timeRange.until !== undefined && timeRange.since >= timeRange.until) {
      return yield* new InvalidRequest({ message: "`since` must be before `until`.", param: "since" })
    }
    return { ...others, ...timeRange, org: yield* organizationOf(organization) }
  })

const maxLimit = 1000
export const defaultLimit = 50

const Limit = Schema.NumberFromString.pipe(Schema.int(), Schema.between(1, maxLimit))

export const pageParameters = {
  limit: queryParameter(
    "limit",
    Limit,
    `must be an integer from 1 to ${maxLimit}`,
    `The maximum number of items. The default is ${defaultLimit}.`
  ),
  after: queryParameter(
    "after",
    Schema.NonEmptyString,
    "must be the `next` of a page",
    "The `next` of the previous page."
  )
}

export const pageOf = <A, I>(record: Schema.Schema<A, I>, identifier: string) =>
  Schema.Struct({
    data: Schema.Array(record),
    has_more: Schema.Boolean,
    next: TextOrNull.annotations({ description: "The value of `after` for the next page. Null on the last page." })
  }).annotations({ identifier })

/** Returns a page of `rows`, which services read with one row more than `limit` to detect a further page. */
export const cutPage = <Row, A>(
  rows: ReadonlyArray<Row>,
  limit: number,
  recordOf: (row: Row) => A,
  cursorOf: (row: Row) => string
) => {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  const has_more = rows.length > limit
  return { data: page.map(recordOf), has_more, next: has_more && last !== undefined ? cursorOf(last) : null }
}

export const invalidCursor = new InvalidRequest({ message: "`after` must be the `next` of a page.", param: "after" })

/** Returns a complete list as a page without a next one. */
export const singlePage = <A>(data: ReadonlyArray<A>) => ({ data, has_more: false, next: null })

/** Returns the cursor `after` if it is the id of a row. Fails with InvalidRequest if it is not. */
export const parseNumericCursor = (
  scope: OrganizationScope,
  after: string | undefined
): Effect.Effect<string | undefined, InvalidRequest> =>
  after === undefined || isIdFor(scope, after) ? Effect.succeed(after) : invalidCursor
