import type { SqlClient } from "@effect/sql"
import type { Invariant } from "./TotalsInvariants.ts"

const addedUntil = "(SELECT added_until FROM monthly_charges_progress)"

/** As a balance is the sum of its entries, each statement begins where the one before ends, and the last ends at the balance. */
export const statementInvariants = (sql: SqlClient.SqlClient): ReadonlyArray<Invariant> => [
  {
    name: "what statements have added up of a month is what was charged in it",
    check: sql`
      SELECT coalesce(sums.org_id, charges.org_id) AS org_id, coalesce(sums.month, charges.month)::text AS month,
        sums.requests, charges.requests AS charges, sums.charge AS added, charges.charge AS charged
      FROM (
        SELECT org_id, month, sum(requests) AS requests, sum(charge) AS charge FROM monthly_charges GROUP BY 1, 2
      ) AS sums FULL JOIN (
        SELECT org_id, date_trunc('month', at AT TIME ZONE 'UTC')::date AS month, count(*) AS requests, -sum(amount) AS charge
        FROM ledger_entries WHERE kind = 'charge' AND at < ${sql.literal(addedUntil)} GROUP BY 1, 2
      ) AS charges ON charges.org_id = sums.org_id AND charges.month = sums.month
      WHERE (sums.requests, sums.charge) IS DISTINCT FROM (charges.requests, charges.charge)`
  },
  {
    name: "what is kept of a removed request is that of a charge which is to be added up",
    check: sql`
      SELECT kept.hold_id, e.at FROM removed_charge_details AS kept LEFT JOIN ledger_entries AS e ON e.hold_id = kept.hold_id
      WHERE e.at IS NULL OR e.at < ${sql.literal(addedUntil)}`
  }
]
