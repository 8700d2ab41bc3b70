import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { monthAt } from "../../src/domain/Month.ts"
import { OrganizationScope } from "../../src/domain/OrganizationScope.ts"
import { Statements } from "../../src/services/statements/Statements.ts"
import { busiest, organizationOf } from "./GrownDatabase.ts"

const month = 30 * 86_400_000

/** Statements, as a gateway that has added up all but the last hour finds their rows. */
export const statementCommands = Effect.fnUntraced(function* <A>(
  entry: (name: string, run: Effect.Effect<unknown, unknown>) => A
) {
  const sql = yield* SqlClient.SqlClient
  const statements = yield* Statements
  // A database that was measured before has them up to then.
  yield* sql`DELETE FROM monthly_charges`
  yield* sql`UPDATE monthly_charges_progress SET added_until = now() - interval '1 hour'`
  yield* sql`
    INSERT INTO monthly_charges
      (org_id, month, model, surface, requests, prompt_tokens, completion_tokens, images, seconds, charge)
    SELECT org_id, date_trunc('month', at AT TIME ZONE 'UTC')::date, model, surface, count(*), sum(prompt_tokens),
      sum(completion_tokens), sum(images), sum(seconds), sum(charge)
    FROM charge_details WHERE at < (SELECT added_until FROM monthly_charges_progress) GROUP BY 1, 2, 3, 4`
  return [
    entry("GET /v1/statement", statements.findForCustomer(busiest, undefined)),
    entry(
      "statement of a month ago",
      statements.find(OrganizationScope.all, organizationOf(7), monthAt(Date.now() - month))
    )
  ]
}, Effect.provide(Statements.layer))
