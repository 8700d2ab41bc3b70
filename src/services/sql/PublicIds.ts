import type { SqlClient, Statement } from "@effect/sql"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"

type Numbered = "ledger_entries" | "webhook_deliveries"

const uuidOf = {
  ledger_entries: (from: string) => `coalesce(${from}.hold_id, ${from}.public_id)`,
  webhook_deliveries: (from: string) => `${from}.public_id`
}

/** SQL of the id by which an organization knows a row; `from` is the table or an alias. Older rows have none but a sealed number. */
export const publicId = (table: Numbered, from: string): string =>
  `coalesce(${uuidOf[table](from)}::text, seal('${table}', ${from}.id, ${from}.org_id))`

/** SQL of a row's id for the scope: operators see its number, which would tell an organization how much all others do. */
export const idFor = (scope: OrganizationScope, table: Numbered, from: string): string =>
  scope.org === undefined ? `${from}.id` : publicId(table, from)

export const isIdFor = (scope: OrganizationScope, text: string): boolean =>
  (scope.org === undefined ? /^\d{1,15}$/ : /^(?:[0-9a-f]{16}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/).test(text)

/** The number of the row with that id. */
export const numberOf = (
  sql: SqlClient.SqlClient,
  scope: OrganizationScope,
  table: Numbered,
  id: string
): Statement.Fragment =>
  scope.org === undefined ? sql`${id}::bigint` : sql`(SELECT number_of(${table}, ${id}, ${scope.org}))`
