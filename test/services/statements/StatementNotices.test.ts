import { SqlClient } from "@effect/sql"
import { Effect, Exit, Layer, Schema } from "effect"
import { monthAt } from "../../../src/domain/Month.ts"
import { addCharges, notifyOfStatements, Statements } from "../../../src/services/statements/Statements.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, describe, liveOver } from "../../harness/It.ts"

const test = liveOver(Layer.provideMerge(Statements.layer, Postgres.layer))

const Rows = Schema.Array(Schema.Struct({ orgId: Schema.String, type: Schema.String, data: Schema.Unknown }))

const told = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.flatMap(
    sql`SELECT DISTINCT org_id, type, data::jsonb AS data, data ->> 'month' FROM webhook_deliveries ORDER BY data ->> 'month', org_id`,
    Schema.decodeUnknown(Rows)
  )
)

const notify = Effect.zipRight(addCharges(), notifyOfStatements)

/** With two endpoints. */
const customer = Effect.fnUntraced(function* (org: string, createdAt = "2025-01-01") {
  const sql = yield* SqlClient.SqlClient
  yield* sql`INSERT INTO organizations (id, name, created_at) VALUES (${org}, ${org}, ${createdAt}::date)`
  yield* sql`INSERT INTO webhook_endpoints (id, org_id, url, secret)
    SELECT 'whe_' || ${org}::text || number, ${org}, 'https://a.example/', 's' FROM generate_series(1, 2) AS number`
})

const correct = (org: string, at: string, amount: number) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`INSERT INTO ledger_entries (org_id, at, kind, amount) VALUES (${org}, ${at}, 'adjustment', ${amount})`
  )

const charge = (org: string, at: string, amount: number) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`INSERT INTO ledger_entries (org_id, at, kind, amount, hold_id, key_id, held, held_at)
      VALUES (${org}, ${at}, 'charge', ${-amount}, gen_random_uuid(), 'key', ${amount}, ${at})`
  )

const nextIs = (month: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`UPDATE statement_notices SET month = ${month}::date`)

describe("statement.ready", () => {
  test("is written once for each month that had entries, with its balances, by whichever gateway is first", function* () {
    yield* customer("org_a")
    yield* customer("org_b")
    yield* customer("org_new", "2025-04-02")
    yield* correct("org_a", "2025-02-10T00:00:00Z", 5_000_000_000)
    yield* charge("org_a", "2025-03-31T23:59:59.999Z", 1_250_000_000)
    yield* charge("org_a", "2025-04-01T00:00:00Z", 1)
    yield* correct("org_b", "2025-04-30T23:59:59Z", 7)
    yield* nextIs("2025-03-01")
    yield* notifyOfStatements
    assert.deepStrictEqual(yield* told, [])
    yield* addCharges()
    yield* Effect.all([notifyOfStatements, notifyOfStatements, notifyOfStatements], { concurrency: 3 })
    yield* notify
    const sql = yield* SqlClient.SqlClient
    const ready = (orgId: string, data: object) => ({ orgId, type: "statement.ready", data })
    assert.deepStrictEqual(yield* told, [
      ready("org_a", { month: "2025-03", opening_usd: 5, closing_usd: 3.75, total_charge_usd: 1.25 }),
      ready("org_a", { month: "2025-04", opening_usd: 3.75, closing_usd: 3.749999999, total_charge_usd: 1e-9 }),
      ready("org_b", { month: "2025-04", opening_usd: 0, closing_usd: 7e-9, total_charge_usd: 0 })
    ])
    assert.lengthOf(yield* sql`SELECT DISTINCT event_id FROM webhook_deliveries`, 3)
    assert.lengthOf(yield* sql`SELECT FROM webhook_deliveries`, 6)
  })

  test("is written later where it could not be written", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* customer("org")
    yield* correct("org", "2025-03-01T00:00:00Z", 1)
    yield* nextIs("2025-03-01")
    yield* addCharges()
    yield* sql`ALTER TABLE webhook_deliveries RENAME TO taken_away`
    assert.isTrue(Exit.isFailure(yield* Effect.exit(notifyOfStatements)))
    yield* sql`ALTER TABLE taken_away RENAME TO webhook_deliveries`
    yield* notify
    assert.lengthOf(yield* told, 1)
  })

  test("waits for the month's end, and for transactions that began before it", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* customer("org")
    const present = monthAt(Date.now())
    yield* correct("org", new Date(present.from).toISOString(), 1)
    yield* nextIs(`${present.name}-01`)
    yield* notify
    assert.deepStrictEqual(yield* told, [])

    // As if a transaction had begun before the month's end.
    yield* correct("org", "2025-03-01T00:00:00Z", 1)
    yield* nextIs("2025-03-01")
    yield* sql`CREATE OR REPLACE FUNCTION entries_complete_until() RETURNS timestamptz LANGUAGE sql AS
      $$ SELECT '2025-03-31T23:59:59.999Z'::timestamptz $$`
    yield* notify
    assert.deepStrictEqual(yield* told, [])
    yield* sql`CREATE OR REPLACE FUNCTION entries_complete_until() RETURNS timestamptz LANGUAGE sql AS
      $$ SELECT '2025-04-01T00:00:00Z'::timestamptz $$`
    yield* notify
    assert.lengthOf(yield* told, 1)
  })

  test("leaves at least an hour for entries of transactions that still run", function* () {
    const sql = yield* SqlClient.SqlClient
    const until = Effect.flatMap(
      sql`SELECT entries_complete_until() <= now() - interval '1 hour' AS waits`,
      Schema.decodeUnknown(Schema.Tuple(Schema.Struct({ waits: Schema.Boolean })))
    )
    assert.deepStrictEqual(yield* until, [{ waits: true }])
  })
})
