import type { SqlClient } from "@effect/sql"
import type { Month } from "../../domain/Month.ts"
import type { OrgId } from "../../domain/Organization.ts"
import { kindOf } from "../ledger/Entry.ts"
import { publicId } from "../sql/PublicIds.ts"

const counts = ["requests", "prompt_tokens", "completion_tokens", "images", "seconds"]
const sums = [...counts, "charge"].map((name) => `sum(${name})::bigint AS ${name}`).join(", ")
const columns = `model, surface, ${counts.join(", ")}, charge`

const addedUntil = "(SELECT added_until FROM monthly_charges_progress)"

/** Amounts as text, since JSON's numbers are not exact. */
const usageJson = `json_build_object('model', nullif(model, ''), 'surface', nullif(surface, ''), ${counts
  .map((name) => `'${name}', ${name}`)
  .join(", ")}, 'charge', charge::text) ORDER BY charge DESC, model, surface`

const entryJson = `json_build_object('id', ${publicId("ledger_entries", "e")}, 'at', floor(extract(epoch FROM e.at)), 'kind', ${kindOf("e")},
  'amount', e.amount::text, 'ref', e.ref) ORDER BY e.at, e.id`

/** Charges that are added up, and those that are not yet, in one snapshot; entries of other kinds are few. */
export const statementOf = (sql: SqlClient.SqlClient, org: OrgId, { from, name, to }: Month) => {
  const [begin, end, first] = [new Date(from), new Date(to), `${name}-01`]
  return sql`
    WITH usage AS (
      SELECT model, surface, ${sql.literal(sums)} FROM (
        SELECT ${sql.literal(columns)} FROM monthly_charges WHERE org_id = ${org} AND month = ${first}::date
        UNION ALL
        SELECT model, surface, 1, prompt_tokens, completion_tokens, images, seconds, charge FROM charge_details
        WHERE org_id = ${org} AND at >= greatest(${begin}, ${sql.literal(addedUntil)}) AND at < ${end}
      ) AS parts GROUP BY 1, 2
    ), before AS (
      SELECT (
        SELECT coalesce(sum(amount), 0) FROM ledger_entries WHERE org_id = ${org} AND kind <> 'charge' AND at < ${begin}
      ) + (
        SELECT coalesce(sum(amount), 0) FROM ledger_entries
        WHERE org_id = ${org} AND kind = 'charge' AND at >= ${sql.literal(addedUntil)} AND at < ${begin}
      ) - (
        SELECT coalesce(sum(charge), 0) FROM monthly_charges WHERE org_id = ${org} AND month < ${first}::date
      ) AS balance
    )
    SELECT balance::text AS opening,
      (SELECT coalesce(json_agg(${sql.literal(usageJson)}), '[]') FROM usage) AS usage,
      (
        SELECT coalesce(json_agg(${sql.literal(entryJson)}), '[]') FROM ledger_entries AS e
        WHERE org_id = ${org} AND kind <> 'charge' AND at >= ${begin} AND at < ${end}
      ) AS entries
    FROM before`.withoutTransform
}
