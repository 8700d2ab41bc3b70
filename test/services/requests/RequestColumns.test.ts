import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { columnNames, totalColumns } from "../../../src/services/requests/RequestColumns.ts"
import { countsByParent, requestCounts } from "../../../src/services/requests/RequestCounts.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, describe, it, withLayer } from "../../harness/It.ts"

const namesOf = (relation: string) =>
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const found = yield* sql<{ readonly name: string }>`
      SELECT attname AS name FROM pg_attribute
      WHERE attrelid = ${relation}::regclass AND attnum > 0 AND NOT attisdropped`
    return found.map(({ name }) => name)
  })

withLayer(Postgres.layer)("the columns of requests", (it) => {
  it.effect("are those of the log in the database", function* () {
    assert.sameMembers([...columnNames], yield* namesOf("request_log"))
  })

  it.effect("are summed by the database in the named totals", function* () {
    assert.sameMembers([...totalColumns, "series_id", "span", "starts_at"], yield* namesOf("usage_totals"))
    assert.sameMembers(yield* namesOf("usage_tag_totals"), yield* namesOf("usage_totals"))
    assert.includeMembers(yield* namesOf("usage_part"), [...totalColumns])
  })
})

describe("the counts of requests", () => {
  it("are each listed below their parent", () => {
    assert.sameMembers([...countsByParent()], Object.values(requestCounts))
  })
})
