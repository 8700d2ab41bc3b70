import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { monthAt } from "../../src/domain/Month.ts"
import { Statements } from "../../src/services/statements/Statements.ts"
import { busiest, organizationOf } from "./GrownDatabase.ts"

const month = 30 * 86_400_000

/** Statements, as a gateway that has added up all but the last hour finds their rows. */
export const statementCommands = Effect.fnUntraced(function* <A>(
  entry: (name: string, run: Effect.Effect<unknown, unknown>) => A
) {
  const sql = yield* SqlClient.SqlClient
  const statements = yield* Statements
  yield* sql`UPDATE monthly_charges_progress SET added_until = now() - interval '1 hour'`
  return [
    entry("GET /v1/statement", statements.findForCustomer(busiest, undefined)),
    entry("statement of a month ago", statements.find(organizationOf(7), monthAt(Date.now() - month)))
  ]
}, Effect.provide(Statements.layer))
