import { Context, Effect, Layer, Redacted } from "effect"
import { Database, type Options } from "../../../src/database/Database.ts"
import { Idempotency } from "../../../src/services/idempotency/Idempotency.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import * as MoneyProcess from "../../harness/database/MoneyProcess.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { doorTo } from "../../harness/gateway/Deployment.ts"

const observer = (url: string) =>
  Layer.provideMerge(MoneyProcess.observedProcess(), Layer.orDie(Database.layerUrl(Redacted.make(url))))

/** A process behind a door that can be cut and frozen, and another, which tests look from, that keeps its database. */
export const losable = Effect.fnUntraced(function* (options: Options = {}) {
  const url = yield* Postgres.freshUrl
  const outside = yield* Layer.build(observer(url))
  const door = yield* doorTo(url)
  const memo = yield* Layer.makeMemoMap
  const inside = yield* Layer.buildWithMemoMap(
    MoneyProcess.process.pipe(Layer.provide(Layer.orDie(Database.layerUrl(Redacted.make(door.url), options)))),
    memo,
    yield* Effect.scope
  )
  const bench = Context.get(outside, LedgerBench)
  const { key, org } = yield* bench.organization(100n * MoneyProcess.one)
  return {
    door,
    outside,
    bench,
    org,
    key,
    asked: { org, endpoint: "images", key: "k", fingerprint: "f" } as const,
    idempotency: Context.get(inside, Idempotency),
    ledger: Context.get(inside, Ledger)
  }
})
