import { SqlClient } from "@effect/sql"
import { Effect, Layer } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { RefundJournal } from "../../../src/services/ledger/RefundJournal.ts"
import { Refunds } from "../../../src/services/ledger/Refunds.ts"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { Instance } from "../../../src/services/runtime/Instance.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import * as Bench from "../../harness/database/LedgerBench.ts"
import * as Postgres from "../../harness/database/Postgres.ts"

const processOver = (journal: Layer.Layer<RefundJournal>) =>
  Ledger.layer.pipe(
    Layer.provideMerge(Layer.provide(Refunds.layer, journal)),
    Layer.provideMerge(Instance.layer),
    Layer.provideMerge(InFlight.layer)
  )

/** The ledger in a database, with what its tests arrange and look at. */
export const ledgersOver = (database: typeof Postgres.layer, journal = RefundJournal.layerMemory) =>
  Bench.layer.pipe(
    Layer.provideMerge(LedgerAdmin.layer),
    Layer.provideMerge(processOver(journal)),
    Layer.provideMerge(database)
  )
export const ledgers = ledgersOver(Postgres.layer)

/** Another process of the gateway on the same database. */
export const anotherInstance = Effect.gen(function* () {
  const memo = yield* Layer.makeMemoMap
  return yield* Layer.buildWithMemoMap(processOver(RefundJournal.layerMemory), memo, yield* Effect.scope)
})

export const one = NanoUsd(1_000_000_000n)

/** What a test of the ledger in PostgreSQL arranges and looks at. */
export const services = Effect.all({
  sql: SqlClient.SqlClient,
  bench: LedgerBench,
  ledger: Ledger,
  admin: LedgerAdmin
})
