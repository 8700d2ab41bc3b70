import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Layer } from "effect"
import type { KeyId } from "../../../src/domain/ApiKey.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import type { OrgId } from "../../../src/domain/Organization.ts"
import { Idempotency } from "../../../src/services/idempotency/Idempotency.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { RefundJournal } from "../../../src/services/ledger/RefundJournal.ts"
import { Refunds } from "../../../src/services/ledger/Refunds.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { InFlight } from "../../../src/services/runtime/InFlight.ts"
import { Instance } from "../../../src/services/runtime/Instance.ts"
import { Prepared } from "../../../src/services/sql/Statement.ts"
import { type Death, IdempotencyBench } from "../../contracts/IdempotencyBench.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import * as Ledgers from "./LedgerBench.ts"

const instance = Instance.layer.pipe(Layer.provideMerge(InFlight.layer))

/** Everything of a process that money and keys need, over a database. */
export const process = Layer.mergeAll(Idempotency.layer, Ledger.layer).pipe(
  Layer.provideMerge(Layer.provide(Refunds.layer, RefundJournal.layerMemory)),
  Layer.provideMerge(instance)
)

/** The same with what tests of money arrange and look at; it wants a database. */
export const observedProcess = Ledgers.layer.pipe(Layer.provideMerge(LedgerAdmin.layer), Layer.provideMerge(process))

/** Another process of the gateway on the same database. */
export const anotherProcess = Effect.gen(function* () {
  const memo = yield* Layer.makeMemoMap
  const context = yield* Layer.buildWithMemoMap(process, memo, yield* Effect.scope)
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  /** What it works on goes to a process that is gone; its own heart would go on beating. */
  const die = (how: Death) =>
    Effect.gen(function* () {
      const gone = ids.uuid()
      if (how !== "unknown") yield* sql`INSERT INTO instances (id) VALUES (${gone})`
      if (how === "swept") yield* sql`UPDATE instances SET swept_at = now() WHERE id = ${gone}`
      if (how === "stopped") yield* sql`UPDATE instances SET stopped_at = now() WHERE id = ${gone}`
      if (how === "silent") yield* sql`UPDATE instances SET beat_at = now() - interval '1 minute' WHERE id = ${gone}`
      const id = yield* Context.get(context, Instance).id
      yield* sql`UPDATE idempotency_keys SET instance_id = ${gone} WHERE instance_id = ${id}`
    }).pipe(Effect.orDie)
  return { idempotency: Context.get(context, Idempotency), ledger: Context.get(context, Ledger), die }
})

const one = NanoUsd(1_000_000_000n)

/** Arranges and looks at keys in PostgreSQL. */
export const layer = Layer.effect(
  IdempotencyBench,
  Effect.gen(function* () {
    const sql = yield* SqlClient.SqlClient
    const prepared = yield* Prepared
    const ledger = yield* Ledger
    const accounts = yield* LedgerBench
    const keys = new Map<OrgId, KeyId>()
    return IdempotencyBench.of({
      organization: Effect.map(accounts.organization(100n * one), ({ key, org }) => {
        keys.set(org, key)
        return org
      }),
      payment: (org) =>
        Effect.gen(function* () {
          const key = yield* Effect.fromNullable(keys.get(org))
          const hold = yield* ledger.hold({ org, key, upTo: one })
          yield* ledger.settle(hold, one)
          return hold.id
        }).pipe(Effect.scoped, Effect.orDie),
      atomically: sql.withTransaction,
      age: (org, by) =>
        Effect.orDie(
          sql`UPDATE idempotency_keys SET created_at = created_at - ${Duration.toSeconds(by)} * interval '1 second'
            WHERE org_id = ${org}`
        ),
      another: Effect.provide(
        anotherProcess,
        Context.make(SqlClient.SqlClient, sql).pipe(Context.add(Prepared, prepared))
      )
    })
  })
)
