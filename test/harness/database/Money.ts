/** `moneyOf` and `assertCharged` check the money of an organization. `eventually` and `waitUntil` wait for a condition. */

import { inspect } from "node:util"
import { SqlClient } from "@effect/sql"
import { Data, Deferred, Duration, Effect, Schema } from "effect"
import type { OrgId } from "../../../src/domain/Organization.ts"
import { invariants } from "../../../src/services/ledger/Invariants.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { assert } from "../It.ts"

const Rows = Schema.Tuple(
  Schema.Struct({
    balance: Schema.BigInt,
    held: Schema.BigInt,
    entries: Schema.BigInt,
    charges: Schema.Array(Schema.BigInt),
    openHolds: Schema.Number
  })
)

/** Reads the money of an organization from the database, in nano-USD. */
export const moneyOf = Effect.fnUntraced(function* (org: OrgId) {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql`
      SELECT balance, held,
        (SELECT coalesce(sum(amount), 0)::bigint FROM ledger_entries WHERE org_id = ${org}) AS entries,
        (SELECT coalesce(array_agg((-amount)::text ORDER BY id), '{}') FROM ledger_entries
          WHERE org_id = ${org} AND kind = 'charge') AS charges,
        (SELECT count(*) FROM all_holds WHERE org_id = ${org} AND state = 'open')::int AS open_holds
      FROM organizations WHERE id = ${org}`
  const [money] = yield* Schema.decodeUnknown(Rows)(rows)
  return money
})

/** Asserts that the organization paid exactly these charges of its 100 USD, and that all invariants of the ledger hold. */
export const assertCharged = Effect.fnUntraced(function* (
  org: OrgId,
  charges: ReadonlyArray<bigint>,
  credits = 100_000_000_000n
) {
  const left = credits - charges.reduce((sum, charge) => sum + charge, 0n)
  assert.deepStrictEqual(yield* moneyOf(org), { balance: left, held: 0n, entries: left, charges, openHolds: 0 })
  const books = yield* LedgerAdmin
  assert.deepStrictEqual((yield* books.verify).violations, [])
})

export class NeverHappened extends Data.TaggedError("NeverHappened")<{ readonly message: string }> {}

/** Reads a value every 50 ms until it satisfies the condition. Fails after `within` with the last value. */
export const eventually = <A, E, R>(
  look: Effect.Effect<A, E, R>,
  isSo: (seen: A) => boolean,
  within: Duration.DurationInput = "30 seconds"
): Effect.Effect<A, E | NeverHappened, R> => {
  let last: unknown
  const looking = Effect.gen(function* () {
    while (true) {
      const seen = yield* look
      if (isSo(seen)) return seen
      last = seen
      yield* Effect.sleep("50 millis")
    }
  })
  return Effect.timeoutFail(looking, {
    duration: within,
    onTimeout: () => new NeverHappened({ message: `not within ${Duration.format(within)}: ${inspect(last)}` })
  })
}

/** Asserts that the rates of all charges are stored soon, and that the charges are what those rates make of them. */
export const assertRatesStored = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* eventually(
    sql`SELECT FROM request_log WHERE price_id IS NOT NULL AND price_id NOT IN (SELECT id FROM price_lists)`,
    ({ length }) => length === 0
  )
  const books = yield* LedgerAdmin
  assert.deepStrictEqual((yield* books.verify).violations, [])
})

/** Moves the heartbeats of all instances with open holds 45 s into the past. */
export const ageHeartbeats = Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`UPDATE instances SET beat_at = beat_at - interval '45 seconds'
    WHERE id IN (SELECT instance_id FROM all_holds WHERE state = 'open')`
)

/** Waits until a condition of this process holds. */
export const waitUntil = (isSo: () => boolean, within?: Duration.DurationInput) =>
  eventually(Effect.sync(isSo), (is) => is, within)

export const times = (count: number) => Array.from({ length: count }, (_, index) => index)
export const copies = <A>(value: A, count: number) => times(count).map(() => value)

/** Holds the lock of a statement while an effect runs, as another program could. */
export const whileLocked = <A, E, R>(statement: Effect.Effect<unknown, E, R>, whileHeld: Effect.Effect<A>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    sql`SET LOCAL idle_in_transaction_session_timeout = 0`.pipe(
      Effect.zipRight(statement),
      Effect.zipRight(whileHeld),
      sql.withTransaction
    )
  )

/** Prevents every other transaction from changing the organization's money. */
export const lock = Effect.fnUntraced(function* (org: OrgId) {
  const sql = yield* SqlClient.SqlClient
  const taken = yield* Deferred.make<void>()
  const over = yield* Deferred.make<void>()
  yield* whileLocked(
    sql`SELECT id FROM organizations WHERE id = ${org} FOR UPDATE`,
    Effect.zipRight(Deferred.succeed(taken, undefined), Deferred.await(over))
  ).pipe(Effect.forkScoped)
  yield* Deferred.await(taken)
  return { unlock: Deferred.succeed(over, undefined) }
})

/** Waits until a statement of the application waits for a lock. */
export const waitingForLock = (application: string) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    eventually(
      sql`SELECT pid FROM pg_stat_activity
        WHERE application_name = ${application} AND wait_event_type = 'Lock' AND datname = current_database()`,
      (rows) => rows.length > 0
    )
  )

/** Returns the invariants of the ledger that a change violates. The change is rolled back. */
export const violatedBy = <E, R>(tampering: Effect.Effect<unknown, E, R>) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.gen(function* () {
      yield* sql`SET LOCAL session_replication_role = replica`
      yield* tampering
      const broken: Array<string> = []
      for (const { check, name } of invariants(sql)) if ((yield* check).length > 0) broken.push(name)
      return yield* Effect.fail(broken)
    }).pipe(sql.withTransaction, Effect.flip)
  )
