import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Exit, Option } from "effect"
import { InsufficientCredits } from "../../../src/domain/Failure.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { sweep } from "../../../src/services/ledger/HoldSweeper.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { outageIn } from "../../../src/services/sql/Outage.ts"
import { LedgerBench } from "../../contracts/LedgerBench.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { eventually, lock, whileLocked } from "../../harness/database/Money.ts"
import { account, ledgers, one } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"

withLayer(ledgers)("a locked organization", (it) => {
  it.scoped("is refused holds in time, without side effects", function* () {
    const { bench, key, ledger, org, sql } = yield* account(100n * one)
    const { unlock } = yield* lock(org)
    const exits = yield* Effect.forEach(
      Array.from({ length: 20 }),
      () => Effect.exit(Effect.scoped(Holds.hold(ledger, { org, key, upTo: one }))),
      { concurrency: "unbounded" }
    )
    for (const exit of exits) assert.isTrue(Exit.isFailure(exit) && Option.isSome(outageIn(exit.cause)))
    yield* unlock
    yield* Effect.scoped(Holds.hold(ledger, { org, key, upTo: one }))
    assert.lengthOf(yield* sql`SELECT id FROM all_holds WHERE org_id = ${org}`, 1, "nothing else was tried")
    assert.isTrue(yield* bench.proved)
  })

  it.scoped("does not block holds in the batch of one that waits for the lock", function* () {
    const { bench, key, ledger, org, sql } = yield* account(100n * one)
    const last = NanoUsd(20n * one)
    const over = yield* Deferred.make<void>()
    const taken = yield* Deferred.make<void>()
    // The last of the batch, which the one before it bars, is placed by itself, and by then there is a lock.
    yield* sql`CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql
        AS 'BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NEW; END'`
    yield* sql`CREATE TRIGGER waits BEFORE INSERT ON open_holds FOR EACH ROW
        WHEN (NEW.amount = ${sql.literal(String(last))}) EXECUTE FUNCTION wait_for_the_test()`
    yield* whileLocked(
      sql`SELECT pg_advisory_xact_lock(4711)`,
      Effect.zipRight(Deferred.succeed(taken, undefined), Deferred.await(over))
    ).pipe(Effect.forkScoped)
    yield* Deferred.await(taken)
    const exits = yield* Effect.forEach(
      [NanoUsd(10n * one), NanoUsd(200n * one), last],
      (upTo) => Effect.exit(Effect.scoped(Holds.hold(ledger, { org, key, upTo }))),
      { concurrency: "unbounded" }
    )
    const [placed, unaffordable, waited] = exits
    assert.isTrue(placed !== undefined && Exit.isSuccess(placed))
    assert.deepStrictEqual(
      unaffordable,
      Exit.fail(new InsufficientCredits({ needed: NanoUsd(200n * one), available: 90n * one }))
    )
    assert.isTrue(waited !== undefined && Exit.isFailure(waited) && Option.isSome(outageIn(waited.cause)))
    yield* Deferred.succeed(over, undefined)
    yield* eventually(bench.openHolds(org), (open) => open === 0)
    assert.isTrue(yield* bench.proved)
  })

  it.scoped("blocks only the sweep of its own holds", function* () {
    const sql = yield* SqlClient.SqlClient
    const bench = yield* LedgerBench
    const [locked, other] = yield* Effect.all([bench.organization(one), bench.organization(one)])
    const dead = yield* Effect.map(Ids, (ids) => ids.uuid())
    yield* sql`INSERT INTO instances (id) VALUES (${dead})`
    for (const { key, org } of [locked, other]) {
      yield* sql`INSERT INTO holds (id, org_id, key_id, amount, instance_id)
          VALUES (gen_random_uuid(), ${org}, ${key}, 1, ${dead})`
      yield* sql`UPDATE organizations SET held = 1 WHERE id = ${org}`
    }
    const { unlock } = yield* lock(locked.org)
    yield* sql`UPDATE instances SET swept_at = now() WHERE id = ${dead}`
    yield* eventually(Effect.zipRight(sweep, bench.openHolds(other.org)), (open) => open === 0)
    assert.strictEqual(yield* bench.openHolds(locked.org), 1)
    yield* unlock
    yield* eventually(Effect.zipRight(sweep, bench.openHolds(locked.org)), (open) => open === 0)
    assert.isTrue(yield* bench.proved)
  })
})
