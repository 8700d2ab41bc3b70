import { SqlClient } from "@effect/sql"
import { Context, Duration, Effect, Exit } from "effect"
import { Idempotency } from "../../../src/services/idempotency/Idempotency.ts"
import { Instance } from "../../../src/services/instance/Instance.ts"
import { sweep } from "../../../src/services/ledger/HoldSweeper.ts"
import { Ledger } from "../../../src/services/ledger/Ledger.ts"
import { Timings } from "../../../src/services/runtime/Timings.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { account, anotherWithoutSweeper, ledgers, one } from "../../harness/database/MoneyProcess.ts"
import { complete } from "../../harness/gateway/ShortTimings.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { outcome } from "../idempotency/Claims.ts"

withLayer(ledgers)("a process with its own timings", (it) => {
  it.scoped("treats an instance as dead after its own deadAfter, in every statement", function* () {
    const { asked, bench, idempotency, key, org } = yield* account(10n * one)
    const sql = yield* SqlClient.SqlClient
    const timings = complete({ deadAfter: Duration.seconds(5), heartbeatEvery: Duration.hours(1) })
    const theirs = yield* Effect.provideService(anotherWithoutSweeper, Timings, timings)
    const hold = Effect.exit(Holds.hold(Context.get(theirs, Ledger), { org, key, upTo: one }))
    const claimOfDead = Effect.flatMap(Context.get(theirs, Idempotency).claim(asked), () => Effect.void)
    const id = yield* Context.get(theirs, Instance).id
    const beatAt = (time: string) => sql`UPDATE instances SET beat_at = ${sql.literal(time)} WHERE id = ${id}`
    yield* beatAt("now() + interval '1 hour'")
    yield* claimOfDead
    assert.isTrue(Exit.isSuccess(yield* hold))
    yield* beatAt("now() - interval '6 seconds'")

    assert.isTrue(Exit.isFailure(yield* hold), "it may place no holds any more")
    assert.strictEqual(yield* outcome(idempotency, asked), "IdempotencyConflict")
    const others = yield* Effect.provideService(anotherWithoutSweeper, Timings, timings)
    assert.strictEqual(yield* outcome(Context.get(others, Idempotency), asked), "First")
    yield* sweep
    assert.strictEqual(yield* bench.openHolds(org), 1)
    yield* Effect.provideService(sweep, Timings, timings)
    assert.strictEqual(yield* bench.openHolds(org), 0)
  })
})
