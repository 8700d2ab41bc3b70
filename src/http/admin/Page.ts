import { Effect, Schema } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"
import { TextOrNull } from "../../services/resources/Record.ts"
import { isIdFor } from "../../services/sql/PublicIds.ts"
import { parameter } from "../schema/Query.ts"

const maxListed = 1000
export const defaultListed = 50

const Limit = Schema.NumberFromString.pipe(Schema.int(), Schema.between(1, maxListed))

export const pageParameters = {
  limit: parameter(
    "limit",
    Limit,
    `must be an integer from 1 to ${maxListed}`,
    `How many; ${defaultListed} if left out.`
  ),
  after: parameter("after", Schema.NonEmptyString, "must be the `next` of a page", "The `next` of the page before.")
}

export const pageOf = <A, I>(record: Schema.Schema<A, I>, identifier: string) =>
  Schema.Struct({
    data: Schema.Array(record),
    has_more: Schema.Boolean,
    next: TextOrNull.annotations({ description: "What `after` takes for the next page." })
  }).annotations({ identifier })

/** `rows` has one more than `limit` where a page follows. */
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

export const wrongCursor = new InvalidRequest({ message: "`after` must be the `next` of a page.", param: "after" })

/** The only page of an unpaged list. */
export const wholePage = <A>(data: ReadonlyArray<A>) => ({ data, has_more: false, next: null })

/** The cursor of a list of numbered rows. */
export const numberedAfter = (
  scope: OrganizationScope,
  after: string | undefined
): Effect.Effect<string | undefined, InvalidRequest> =>
  after === undefined || isIdFor(scope, after) ? Effect.succeed(after) : wrongCursor
