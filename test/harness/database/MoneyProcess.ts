/** A gateway process without HTTP, for tests of money. `ledgers`, `account` and `anotherProcess` use it. */

import { SqlClient } from "@effect/sql"
import { Duration, Effect, Layer, Schema } from "effect"
import { KeyId } from "../../../src/domain/ApiKey.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { TokenWindows } from "../../../src/services/access/RateLimiter.ts"
import { Idempotency } from "../../../src/services/idempotency/Idempotency.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import { archiveReleased } from "../../../src/services/ledger/HoldSweeper.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { RefundJournal, Refunds } from "../../../src/services/ledger/Refunds.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { Timings } from "../../../src/services/runtime/Timings.ts"
import { refundedVideos } from "../../../src/services/videos/VideoViews.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import * as RefundJournalFake from "../../fakes/RefundJournalFake.ts"
import { complete } from "../gateway/ShortTimings.ts"
import * as Postgres from "./Postgres.ts"

export const one = NanoUsd(1_000_000_000n)

const processWith = (
  journal: Layer.Layer<RefundJournal>,
  ledger: typeof Ledger.layer = Ledger.layer,
  tokenWindows: typeof TokenWindows.layer = TokenWindows.layer
) =>
  Layer.mergeAll(Idempotency.layer, Layer.provide(ledger, tokenWindows)).pipe(
    Layer.provideMerge(Layer.provide(Refunds.layer, [journal, refundedVideos])),
    Layer.provideMerge(Instance.layer),
    Layer.provideMerge(InFlight.layer)
  )

/** All services of a process that concern money and keys, over a database. */
export const process = processWith(RefundJournalFake.layer)

const build = Effect.fnUntraced(function* (layer: typeof process) {
  return yield* Layer.buildWithMemoMap(layer, yield* Layer.makeMemoMap, yield* Effect.scope)
})

/** Another process on the same database. */
export const anotherProcess = build(process)

export const anotherProcessWith = (tokenWindows: typeof TokenWindows.layer) =>
  build(processWith(RefundJournalFake.layer, Ledger.layer, tokenWindows))

/** Another process on the same database that does not release the holds of dead instances. The test does so. */
export const anotherWithoutSweeper = build(processWith(RefundJournalFake.layer, Ledger.layerWithoutSweeper))

const Amounts = Schema.decodeUnknown(Schema.Array(Schema.Struct({ amount: Schema.BigInt })))

/** Sets up and reads accounts in PostgreSQL, independently of the tested ledger. */
export const bench = Layer.effect(
  LedgerBench,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const books = yield* LedgerAdmin
    const ids = yield* Ids
    return LedgerBench.of({
      organization: (balance) =>
        Effect.gen(function* () {
          const org = OrgId.make(ids.prefixed("org"))
          const key = KeyId.make(ids.prefixed("key"))
          yield* sql`INSERT INTO organizations (id, name, balance) VALUES (${org}, ${org}, ${balance})`
          yield* sql`INSERT INTO api_keys (id, org_id, hash) VALUES (${key}, ${org}, decode(md5(${key}), 'hex'))`
          if (balance !== 0n) {
            yield* sql`INSERT INTO ledger_entries (org_id, kind, amount) VALUES (${org}, 'adjustment', ${balance})`
          }
          return { org, key }
        }).pipe(Effect.orDie),
      cap: (key, amount, period) =>
        Effect.orDie(Effect.asVoid(sql`UPDATE api_keys SET cap = ${amount}, cap_period = ${period} WHERE id = ${key}`)),
      charges: (org) =>
        sql`SELECT -amount AS amount FROM ledger_entries WHERE org_id = ${org} AND kind = 'charge' ORDER BY id`.pipe(
          Effect.flatMap(Amounts),
          Effect.map((rows) => rows.map(({ amount }) => amount)),
          Effect.orDie
        ),
      openHolds: (org) =>
        Effect.map(
          Effect.orDie(sql`SELECT id FROM all_holds WHERE org_id = ${org} AND state = 'open'`),
          (rows) => rows.length
        ),
      proved: Effect.map(books.verify, ({ violations }) => violations.length === 0)
    })
  })
)

/** A process with what tests of money use to set up and read accounts. It needs a database. */
export const observedProcess = (journal = RefundJournalFake.layer) =>
  bench.pipe(Layer.provideMerge(LedgerAdmin.layer), Layer.provideMerge(processWith(journal)))

export const ledgers = Layer.provideMerge(observedProcess(), Postgres.layer)

/** Short timings for tests that wait until a settlement has failed. */
export const impatient = Layer.succeed(Timings, complete({ settleWithin: Duration.seconds(2) }))

/** Archives released holds as if they had been released an hour ago. */
export const archiveNow = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql.withTransaction(
    Effect.zipRight(
      sql`SET LOCAL session_replication_role = replica`,
      sql`UPDATE open_holds SET released_at = released_at - interval '1 hour'`
    )
  )
  yield* archiveReleased(sql)
})

export const account = Effect.fnUntraced(function* (credits: bigint) {
  const bench = yield* LedgerBench
  const { key, org } = yield* bench.organization(credits)
  return {
    bench,
    key,
    org,
    sql: yield* SqlClient.SqlClient,
    ids: yield* Ids,
    ledger: yield* Ledger,
    idempotency: yield* Idempotency,
    admin: yield* LedgerAdmin,
    asked: { org, endpoint: "images", key: "k", fingerprint: "f" } as const
  }
})
