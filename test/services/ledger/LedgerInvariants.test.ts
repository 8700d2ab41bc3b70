import type { Statement } from "@effect/sql/Statement"
import { Effect, Exit } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { countUsage } from "../../../src/services/telemetry/Usage.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { violatedBy } from "../../harness/database/Money.ts"
import { account, archiveNow, ledgers, one } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"

withLayer(ledgers)("the invariants of the ledger", (it) => {
  it.scoped("entries cannot be changed, nor closed holds", function* () {
    const { key, ledger, org, sql } = yield* account(NanoUsd(2n * one))
    const hold = yield* Holds.hold(ledger, { org, key, upTo: one })
    yield* ledger.settle(hold, one)
    const archived = yield* Holds.admit(ledger, { org, key, upTo: one })
    yield* Holds.release(ledger, archived)
    yield* archiveNow
    const released = yield* Holds.admit(ledger, { org, key, upTo: one })
    yield* Holds.release(ledger, released)
    for (const attempt of [
      sql`UPDATE ledger_entries SET amount = 0 WHERE org_id = ${org}`,
      sql`DELETE FROM ledger_entries WHERE org_id = ${org}`,
      sql`TRUNCATE ledger_entries`,
      sql`UPDATE open_holds SET released_at = NULL WHERE id = ${released.id}`,
      sql`UPDATE holds SET state = 'open', closed_at = NULL WHERE id = ${archived.id}`,
      sql`DELETE FROM holds WHERE id = ${archived.id}`,
      sql`TRUNCATE open_holds`,
      sql`INSERT INTO ledger_entries (org_id, kind, amount, hold_id, key_id, held, held_at)
          VALUES (${org}, 'charge', -2, gen_random_uuid(), ${key}, 1, now())`
    ]) {
      assert.isTrue(Exit.isFailure(yield* Effect.exit(attempt)))
    }
  })

  it.scoped("verification finds tampered rows", function* () {
    const { admin, bench, key, ledger, org, sql } = yield* account(10n * one)
    const settled = yield* Effect.scoped(
      Effect.tap(Holds.hold(ledger, { org, key, upTo: one }), (hold) => ledger.settle(hold, one))
    )
    const open = yield* Holds.hold(ledger, { org, key, upTo: one })
    yield* admin.adjust({ org, amount: NanoUsd(-1n), note: "mistake", force: false })
    assert.isTrue(yield* bench.proved)
    yield* countUsage

    const sums = "a balance is the sum of the organization's entries"
    const held = "the held amount is the sum of the organization's open holds"
    const covered = "the held amount is covered by the balance"
    const charge = "a settled hold has exactly one charge, of its charged amount"
    const day = "a key's daily spend is the sum of that day's charges less refunds"
    const result = "a final idempotent result has a closed hold, or a job's hold, of its organization"
    const logged = "the request log has each hold's charge less refunds"
    const elsewhere = yield* bench.organization(0n)
    const hours = "an hour's totals are the sums of its requests"
    const days = "a day's totals are the sums of its hours"
    const queued = "a request queued for counting is in the request log exactly once"
    const far = 20n * one
    const tampering: ReadonlyArray<readonly [breaks: ReadonlyArray<string>, ...by: ReadonlyArray<Statement<object>>]> =
      [
        [[sums], sql`UPDATE organizations SET balance = balance + 1 WHERE id = ${org}`],
        [[held], sql`UPDATE organizations SET held = held + 1 WHERE id = ${org}`],
        [[held], sql`DELETE FROM open_holds WHERE id = ${open.id}`],
        [[day], sql`DELETE FROM key_spend WHERE key_id = ${key}`],
        [[day], sql`UPDATE ledger_entries SET at = at - interval '2 days' WHERE hold_id = ${settled.id}`],
        [
          [charge, "a charge has its row in the request log"],
          sql`INSERT INTO holds (id, org_id, key_id, amount, state, charged, instance_id, closed_at)
              VALUES (gen_random_uuid(), ${org}, ${key}, 1, 'settled', 0, gen_random_uuid(), now())`
        ],
        [
          ["an open hold belongs to a known instance"],
          sql`UPDATE open_holds SET instance_id = gen_random_uuid() WHERE id = ${open.id}`
        ],
        [
          ["a hold is stored exactly once"],
          sql`INSERT INTO holds (id, org_id, key_id, amount, state, instance_id, closed_at)
              VALUES (${open.id}, ${org}, ${key}, 1, 'released', gen_random_uuid(), now())`
        ],
        [
          ["an open or released hold has no charge", "a hold is stored exactly once", logged],
          sql`INSERT INTO holds (id, org_id, key_id, amount, state, instance_id, closed_at)
              VALUES (${settled.id}, ${org}, ${key}, 1, 'released', gen_random_uuid(), now())`
        ],
        [
          [day, logged],
          sql`DELETE FROM ledger_entries WHERE hold_id = ${settled.id}`,
          sql`UPDATE organizations SET balance = balance + ${one} WHERE id = ${org}`
        ],
        [
          [covered],
          sql`UPDATE open_holds SET amount = ${far} WHERE id = ${open.id}`,
          sql`UPDATE organizations SET held = ${far} WHERE id = ${org}`
        ],
        [
          [covered, "no charge took a balance below zero", logged],
          sql`UPDATE ledger_entries SET amount = ${-far}, held = ${far} WHERE hold_id = ${settled.id}`,
          sql`UPDATE organizations SET balance = balance + ${one} - ${far} WHERE id = ${org}`,
          sql`UPDATE key_spend SET spent = ${far} WHERE key_id = ${key}`
        ],
        [
          [result],
          sql`INSERT INTO idempotency_keys (claim, org_id, endpoint, key, fingerprint, state, instance_id, result, hold_id)
              VALUES (gen_random_uuid(), ${org}, 'images', 'k', 'f', 'done', gen_random_uuid(), '{}', ${open.id})`
        ],
        [
          [result],
          sql`INSERT INTO idempotency_keys (claim, org_id, endpoint, key, fingerprint, state, instance_id, result, hold_id)
              VALUES (gen_random_uuid(), ${elsewhere.org}, 'images', 'k', 'f', 'done', gen_random_uuid(), '{}', ${settled.id})`
        ],
        [
          [day, logged],
          sql`INSERT INTO ledger_entries (org_id, kind, amount, ref)
              VALUES (${org}, 'adjustment', ${one}, ${`refund:${settled.id}`})`,
          sql`UPDATE organizations SET balance = balance + ${one} WHERE id = ${org}`
        ],
        [
          [day, "refunds do not exceed the charge of their hold", logged],
          sql`INSERT INTO ledger_entries (org_id, kind, amount, ref)
              VALUES (${org}, 'adjustment', ${2n * one}, ${`refund:${settled.id}`})`,
          sql`UPDATE organizations SET balance = balance + ${2n * one} WHERE id = ${org}`
        ],
        [
          [day, "refunds do not exceed the charge of their hold", logged],
          sql`INSERT INTO ledger_entries (org_id, kind, amount, ref) VALUES
              (${org}, 'adjustment', 1, ${`refund:${settled.id}`}),
              (${elsewhere.org}, 'adjustment', 1, ${`refund:${settled.id}:2`})`,
          sql`UPDATE organizations SET balance = balance + 1 WHERE id IN (${org}, ${elsewhere.org})`
        ],
        [[hours, days], sql`UPDATE usage_hours SET charge = charge + 1`],
        [[hours, days], sql`UPDATE usage_hours SET requests = 0`],
        [[hours], sql`UPDATE usage_series SET model = 'another' WHERE is_sold`],
        [[hours], sql`DELETE FROM usage_totals`],
        [[hours], sql`UPDATE usage_totals SET starts_at = starts_at + interval '1 day'`],
        [[days], sql`UPDATE usage_days SET cost = cost + 1`],
        [[queued], sql`INSERT INTO uncounted_requests VALUES (gen_random_uuid())`],
        [[hours, queued], sql`INSERT INTO uncounted_requests SELECT id FROM request_log, generate_series(1, 2)`],
        [[hours, logged], sql`UPDATE request_log SET charge = charge - 1 WHERE org_id = ${org}`],
        [[hours, "a charge has its row in the request log"], sql`DELETE FROM request_log WHERE org_id = ${org}`]
      ]
    for (const [breaks, ...by] of tampering) assert.deepStrictEqual<unknown>(yield* violatedBy(Effect.all(by)), breaks)

    yield* sql`UPDATE organizations SET balance = balance + 1 WHERE id = ${org}`
    const { violations } = yield* admin.verify
    assert.deepStrictEqual(
      violations.map(({ invariant, row }) => [invariant, row.orgId]),
      [[sums, org]]
    )
    yield* sql`UPDATE organizations SET balance = balance - 1 WHERE id = ${org}`
  })
})
