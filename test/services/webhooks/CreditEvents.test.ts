import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import type { OrgId } from "../../../src/domain/Organization.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { database, dollar, payer } from "../payments/PaymentBench.ts"

const Rows = Schema.Array(
  Schema.Struct({
    eventId: Schema.String,
    endpointId: Schema.String,
    type: Schema.String,
    data: Schema.Record({ key: Schema.String, value: Schema.Unknown })
  })
)

const addEndpoint = (org: OrgId) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      INSERT INTO webhook_endpoints (id, org_id, url, secret) VALUES (${`whe_${randomUUID()}`}, ${org}, 'https://a.example/', 's')`
  )

const eventsOf = (org: OrgId) =>
  Effect.flatMap(SqlClient.SqlClient, (sql) =>
    Effect.flatMap(
      sql`SELECT event_id, endpoint_id, type, data FROM webhook_deliveries WHERE org_id = ${org} ORDER BY id`,
      Schema.decodeUnknown(Rows)
    )
  )

/** Each type with its data, but for the entry's id. */
const toldTo = (org: OrgId) =>
  Effect.map(eventsOf(org), (events) =>
    events.map(({ data: { entry_id, ...data }, type }) => {
      assert.match(String(entry_id), /^[0-9a-f]{8}-[0-9a-f]{4}-7/)
      return [type, data]
    })
  )

const customer = Effect.fnUntraced(function* () {
  const paying = yield* payer()
  yield* addEndpoint(paying.org)
  return paying
})

withLayer(database)("credits.added", (it) => {
  it.effect("is written once for a top-up, the same for each endpoint that is on", function* () {
    const { org } = yield* customer()
    yield* addEndpoint(org)
    const { adjust, topUp } = yield* LedgerAdmin
    const sql = yield* SqlClient.SqlClient
    const ref = randomUUID()
    const payment = { org, amount: NanoUsd(1_500_000_001n), ref }
    const added = yield* Effect.all([topUp(payment), topUp(payment)], { concurrency: 2 })
    yield* adjust({ org, amount: NanoUsd(dollar), note: "n", force: false })
    const events = yield* eventsOf(org)
    const data = { kind: "top_up", payment_id: null, amount_usd: 1.500000001, balance_usd: 1.500000001 }
    assert.deepStrictEqual(yield* toldTo(org), [
      ["credits.added", data],
      ["credits.added", data]
    ])
    assert.strictEqual(new Set(events.map(({ eventId }) => eventId)).size, 1)
    assert.strictEqual(new Set(events.map(({ endpointId }) => endpointId)).size, 2)
    const [known] = yield* sql`SELECT public_id FROM ledger_entries WHERE id = ${added[0].entry.id}::bigint`
    assert.strictEqual(events[0]?.data["entry_id"], known?.["publicId"])

    yield* sql`UPDATE webhook_endpoints SET disabled_at = now() WHERE org_id = ${org}`
    yield* topUp({ org, amount: NanoUsd(dollar) })
    assert.lengthOf(yield* eventsOf(org), 2)
  })

  it.effect("is not written for a top-up that is rolled back, nor for charges", function* () {
    const { org } = yield* customer()
    const { topUp } = yield* LedgerAdmin
    const sql = yield* SqlClient.SqlClient
    yield* topUp({ org, amount: NanoUsd(dollar) }).pipe(
      Effect.zipRight(Effect.fail("rolled back")),
      sql.withTransaction,
      Effect.flip
    )
    yield* sql`INSERT INTO ledger_entries (org_id, kind, amount, hold_id, key_id, held, held_at)
      VALUES (${org}, 'charge', -1, gen_random_uuid(), 'key', 1, now())`
    assert.deepStrictEqual(yield* eventsOf(org), [])
  })

  it.effect("names the payment that was credited, once however often it is told of", function* () {
    const { account, begin, deliver, org } = yield* customer()
    const { id, session } = yield* begin(25)
    const completed = account.complete(session)
    yield* Effect.all([deliver(completed), deliver(completed), deliver(completed)], { concurrency: 3 })
    yield* deliver(account.succeed(session))
    assert.deepStrictEqual(yield* toldTo(org), [
      ["credits.added", { kind: "top_up", payment_id: id, amount_usd: 25, balance_usd: 25 }]
    ])
  })
})

withLayer(database)("payment.reversed", (it) => {
  it.effect("is written for what a refund takes, and credits.added where the refund fails", function* () {
    const { account, begin, deliver, org } = yield* customer()
    const { id, session } = yield* begin(10)
    yield* deliver(account.complete(session))
    const refund = account.refund(account.intentOf(session), 250, "pending")
    yield* Effect.forEach(account.events, deliver)
    yield* Effect.forEach(account.events, deliver)
    yield* deliver(account.updateRefund(refund, "failed"))
    assert.deepStrictEqual((yield* toldTo(org)).slice(1), [
      ["payment.reversed", { payment_id: id, reason: "refund", amount_usd: 2.5, balance_usd: 7.5 }],
      ["credits.added", { kind: "payment_reversal", payment_id: id, amount_usd: 2.5, balance_usd: 10 }]
    ])
  })

  it.effect("is written for what a dispute takes, below zero too", function* () {
    const { account, begin, deliver, org } = yield* customer()
    const { adjust } = yield* LedgerAdmin
    const { id, session } = yield* begin(10)
    yield* deliver(account.complete(session))
    yield* adjust({ org, amount: NanoUsd(-4n * dollar), note: "spent", force: true })
    account.withdraw(account.dispute(account.intentOf(session), 1000))
    yield* Effect.forEach(account.events, deliver)
    assert.deepStrictEqual((yield* toldTo(org)).slice(1), [
      ["payment.reversed", { payment_id: id, reason: "dispute", amount_usd: 10, balance_usd: -4 }]
    ])
  })
})
