import { Effect, Layer, Schema } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import * as ClosingSql from "../../../src/services/ledger/ClosingSql.ts"
import * as HoldSql from "../../../src/services/ledger/HoldSql.ts"
import { minimalLogRow } from "../../../src/services/requests/RequestEntry.ts"
import { runWith } from "../../../src/services/sql/SqlStatement.ts"
import { account, observedProcess, one } from "../../harness/database/MoneyProcess.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"

const Reads = Schema.decodeUnknown(Schema.Array(Schema.Tuple(Schema.String, Schema.Number)))
const grown = 5_000

const serving = Layer.provideMerge(observedProcess(), Postgres.layerWith({ isWatched: true }))

withLayer(serving)("plans that were made while tables had one page", (it) => {
  it.effect("scan no table sequentially once it has grown", function* () {
    const { ids, key, org, sql } = yield* account(NanoUsd(1_000n * one))
    const process = yield* (yield* Instance).id
    const work = Effect.gen(function* () {
      const holds = Array.from({ length: 4 }, () => ({ id: ids.uuid(), org, key, amount: one, rateLimit: 9_000 }))
      yield* runWith(sql, HoldSql.place(process, holds))
      const charges = holds.map((hold) => ({ ...hold, cost: NanoUsd(1n) }))
      const rows = holds.map((hold) => minimalLogRow(hold))
      yield* runWith(sql, ClosingSql.settle(charges, rows))
      const unused = holds.map((hold) => ({ ...hold, id: ids.uuid() }))
      yield* runWith(sql, HoldSql.place(process, unused))
      const tokens = { limit: 1_000_000, amount: 1 }
      const limited = holds.map((hold) => ({ ...hold, id: ids.uuid(), concurrency: 9_000, tokens }))
      yield* runWith(sql, HoldSql.place(process, limited))
      yield* runWith(sql, ClosingSql.release([...unused, ...limited].map(({ id }) => id)))
    })
    const reads = sql`SELECT jsonb_build_array(relname, seq_tup_read::int) AS read FROM pg_stat_xact_user_tables`.pipe(
      Effect.flatMap((rows) => Reads(rows.map(({ read }) => read)))
    )
    // One connection, which keeps its plans.
    const readMore = yield* sql.withTransaction(
      Effect.gen(function* () {
        yield* Effect.repeatN(work, 2)
        for (const table of ["open_holds", "holds", "ledger_entries", "request_log"]) yield* sql`ANALYZE ${sql(table)}`
        // A statement is prepared once it has been seen ten times.
        yield* Effect.repeatN(work, 20)
        yield* sql`INSERT INTO ledger_entries (org_id, kind, amount, hold_id, key_id, held, held_at)
          SELECT ${org}, 'charge', 0, gen_random_uuid(), ${key}, 1, now() FROM generate_series(1, ${grown}::int)`
        yield* sql`INSERT INTO holds (id, org_id, key_id, amount, state, instance_id, closed_at)
          SELECT gen_random_uuid(), ${org}, ${key}, 0, 'released', gen_random_uuid(), now() FROM generate_series(1, ${grown}::int)`
        yield* sql`INSERT INTO open_holds (id, org_id, key_id, amount, instance_id, released_at)
          SELECT gen_random_uuid(), ${org}, ${key}, 0, gen_random_uuid(), now() FROM generate_series(1, ${grown}::int)`
        const before = new Map(yield* reads)
        yield* work
        return (yield* reads).map(([table, rows]) => [table, rows - (before.get(table) ?? 0)] as const)
      })
    )
    assert.deepStrictEqual(
      readMore.filter(([, rows]) => rows > grown / 10),
      []
    )
  })
})
