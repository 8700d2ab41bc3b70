import { SqlClient, Statement } from "@effect/sql"
import { Effect, Schema } from "effect"
import { trafficReader } from "../../../src/services/admin/RequestAlerts.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"

const Explained = Schema.Array(Schema.Record({ key: Schema.String, value: Schema.String }))

withLayer(Postgres.layer)("alerts about traffic", (it) => {
  it.effect("read only the recent part of a large log, by an index", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`ALTER TABLE request_log DISABLE TRIGGER USER`
    yield* sql`
      INSERT INTO request_log (id, request_id, at, surface, status, org_id, key_id, total_ms)
      SELECT uuid_v7(at), 'r', at, 'chat', 200, 'o', 'k', 5
      FROM (SELECT now() - i * interval '1 minute' AS at FROM generate_series(1, 20000) AS i OFFSET 0) AS drawn`
    yield* sql`ANALYZE request_log`
    const statements: Array<ReturnType<Statement.Statement<unknown>["compile"]>> = []
    yield* trafficReader(sql)(Date.now()).pipe(
      Statement.withTransformer((statement) => {
        statements.push(statement.compile())
        return Effect.succeed(statement)
      })
    )
    assert.lengthOf(statements, 2)
    for (const [text, values] of statements) {
      const lines = yield* Effect.flatMap(sql.unsafe(`EXPLAIN ${text}`, values), Schema.decodeUnknown(Explained))
      const plan = lines.flatMap(Object.values).join("\n")
      assert.match(plan, /Index Scan Backward using request_log_pkey/)
      assert.notMatch(plan, /Seq Scan on request_log/)
    }
  })
})
