/**
 * Rows are numbered over all organizations, and two numbers tell how much was done between them: an organization sees those
 * of its rows sealed.
 */

import type { SqlClient, Statement } from "@effect/sql"
import type { OrganizationScope } from "../../domain/OrganizationScope.ts"

type Numbered = "ledger_entries" | "webhook_deliveries"

/** The number of a row as its organization sees it; `from` is the table or an alias. */
export const sealNumber = (table: Numbered, from: string): string => `seal('${table}', ${from}.id, ${from}.org_id)`

export const showNumber = (scope: OrganizationScope, table: Numbered, from: string): string =>
  scope.org === undefined ? `${from}.id` : sealNumber(table, from)

export const isShownNumber = (scope: OrganizationScope, text: string): boolean =>
  (scope.org === undefined ? /^\d{1,15}$/ : /^[0-9a-f]{16}$/).test(text)

/** The number of which that is shown. */
export const readNumber = (
  sql: SqlClient.SqlClient,
  scope: OrganizationScope,
  table: Numbered,
  shown: string
): Statement.Fragment =>
  scope.org === undefined ? sql`${shown}::bigint` : sql`unseal(${table}, ${shown}, ${scope.org})`
