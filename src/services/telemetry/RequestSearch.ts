import type { SqlClient } from "@effect/sql"
import { Context, Data, Effect } from "effect"
import type { KeyId } from "../../domain/ApiKey.ts"
import type { OrgId } from "../../domain/Organization.ts"
import type { AddressRange } from "../access/AddressRange.ts"
import { equals, inTimeRange } from "../sql/Statement.ts"

/** `unknown`, and what names an interface, are no addresses to PostgreSQL. */
export const isWithin = (sql: SqlClient.SqlClient, range: AddressRange) =>
  sql`CASE WHEN address ~ '^[0-9a-f.:]+$' THEN address::inet <<= ${range}::inet END`

/** The most rows that a search for an address may look through. */
export class SearchLimit extends Context.Reference<SearchLimit>()("gateway/SearchLimit", {
  defaultValue: () => 500_000
}) {}

export class SearchTooLong extends Data.TaggedError("SearchTooLong")<{ readonly limit: number }> {
  override get message() {
    return `An address is searched for in at most ${this.limit} requests: narrow the time, or name a key.`
  }
}

export interface AddressSearch {
  readonly address?: AddressRange | undefined
  readonly org?: OrgId | undefined
  readonly key?: KeyId | undefined
  /** Unix milliseconds. */
  readonly since?: number | undefined
  /** Unix milliseconds, exclusive. */
  readonly until?: number | undefined
}

/** No index has addresses, so all rows of the span, of a key or of an organization, are looked through. */
export const checkSearch = Effect.fnUntraced(function* (
  sql: SqlClient.SqlClient,
  { address, key, org, ...span }: AddressSearch
) {
  if (address === undefined) return
  const limit = yield* SearchLimit
  const owner = key === undefined ? { org_id: org } : { key_id: key }
  const conditions = sql.and([...equals(sql, owner), ...inTimeRange(sql, "at", span)])
  const beyond = yield* Effect.uninterruptible(
    Effect.orDie(sql`SELECT FROM request_log WHERE ${conditions} OFFSET ${limit} LIMIT 1`)
  )
  if (beyond.length > 0) return yield* new SearchTooLong({ limit })
})
