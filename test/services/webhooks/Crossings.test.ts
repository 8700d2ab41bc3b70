import { SqlClient } from "@effect/sql"
import { Effect, Exit, Layer, Schema, Struct } from "effect"
import type { CapPeriod } from "../../../src/domain/ApiKey.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { refundFailed } from "../../../src/services/ledger/Refunds.ts"
import * as Holds from "../../harness/database/Holds.ts"
import { times } from "../../harness/database/Money.ts"
import { account, ledgers } from "../../harness/database/MoneyProcess.ts"
import { assert, withLayer } from "../../harness/It.ts"

const usd = (amount: number) => NanoUsd(BigInt(Math.round(amount * 1e9)))

const Rows = Schema.Array(
  Schema.Struct({
    eventId: Schema.String,
    type: Schema.String,
    data: Schema.Record({ key: Schema.String, value: Schema.Unknown })
  })
)

/** An organization of ten USD with an endpoint, and what is written for it. */
const customer = Effect.fnUntraced(function* (url: string | null = "https://hooks.example/") {
  const { admin, bench, ids, key, ledger, org } = yield* account(usd(10))
  const sql = yield* SqlClient.SqlClient
  const { update } = yield* Organizations
  const notices = Effect.flatMap(
    sql`SELECT event_id, type, data FROM webhook_deliveries
      WHERE org_id = ${org} AND type <> 'credits.added' ORDER BY id`,
    Schema.decodeUnknown(Rows)
  )
  if (url !== null) {
    yield* sql`INSERT INTO webhook_endpoints (id, org_id, url, secret) VALUES (${ids.prefixed("whe")}, ${org}, ${url}, 's')`
  }
  const hold = (amount: number) => Holds.admit(ledger, { org, key, upTo: usd(amount) })
  return {
    admin,
    bench,
    hold,
    ids,
    key,
    ledger,
    org,
    sql,
    notifyBelow: (amount: number) => update(org, { notify_below_usd: usd(amount) }),
    cap: (amount: number, period: CapPeriod) => bench.cap(key, usd(amount), period),
    charge: (amount: number) =>
      Effect.flatMap(hold(amount), (held) => Effect.as(ledger.settle(held, usd(amount)), held.id)),
    notices
  }
})

const layer = Layer.provideMerge(Organizations.layer, ledgers)

withLayer(layer)("credits.low", (it) => {
  it.scoped("is written by the charge that takes the balance below the threshold, and by no other", function* () {
    const { bench, charge, hold, ledger, notices, notifyBelow } = yield* customer()
    yield* notifyBelow(5)
    yield* charge(5)
    assert.deepStrictEqual(yield* notices, [])
    const open = yield* hold(1.5)
    yield* charge(0.25)
    yield* charge(0.000000001)
    yield* ledger.settle(open, usd(0))
    const [notice, ...others] = yield* notices
    assert.deepStrictEqual(others, [])
    assert.match(notice?.eventId ?? "", /^evt_[0-9a-f]{32}$/)
    assert.deepStrictEqual(
      [notice?.type, notice?.data],
      ["credits.low", { threshold_usd: 5, available_usd: 3.25, balance_usd: 4.75, held_usd: 1.5 }]
    )
    assert.isTrue(yield* bench.proved)
  })

  it.scoped("is written again only after a refund or a payment has raised the balance", function* () {
    const { admin, charge, notices, notifyBelow, org, sql } = yield* customer()
    yield* notifyBelow(5)
    const charged = yield* charge(6)
    yield* charge(1)
    assert.lengthOf(yield* notices, 1)
    yield* refundFailed(sql, charged)
    yield* charge(3)
    assert.lengthOf(yield* notices, 1)
    yield* charge(2)
    assert.lengthOf(yield* notices, 2)
    yield* admin.topUp({ org, amount: usd(2) })
    yield* charge(2)
    const all = yield* notices
    assert.lengthOf(all, 3)
    assert.strictEqual(new Set(all.map(({ eventId }) => eventId)).size, 3)
  })

  it.scoped("is written by a correction and by a job's charge, too", function* () {
    const { admin, ids, key, ledger, notices, notifyBelow, org, sql } = yield* customer()
    yield* notifyBelow(5)
    yield* admin.adjust({ org, amount: usd(-6), note: "n", force: false })
    assert.deepInclude((yield* notices)[0]?.data, { balance_usd: 4, available_usd: 4 })
    yield* admin.adjust({ org, amount: usd(2), note: "n", force: false })
    const held = { id: ids.uuid(), org, key, amount: usd(2) }
    yield* sql.withTransaction(ledger.job.hold(held))
    yield* sql.withTransaction(ledger.job.settle(held, usd(2)))
    assert.lengthOf(yield* notices, 2)
  })

  it.scoped("is written once, however many charges are settled together", function* () {
    const { bench, hold, ledger, notices, notifyBelow } = yield* customer()
    yield* notifyBelow(9)
    const holds = yield* Effect.forEach(times(40), () => hold(0.1))
    yield* Effect.forEach(holds, (held) => ledger.settle(held, usd(0.1)), { concurrency: "unbounded" })
    assert.lengthOf(yield* notices, 1)
    assert.isTrue(yield* bench.proved)
  })

  it.scoped("calls no function for charges of organizations without an endpoint", function* () {
    const other = yield* customer()
    const { charge, notifyBelow, sql } = yield* customer(null)
    yield* notifyBelow(5)
    const charged = yield* sql`LOCK TABLE webhook_deliveries IN ACCESS EXCLUSIVE MODE`.pipe(
      Effect.zipRight(Effect.exit(charge(6))),
      sql.withTransaction
    )
    assert.isTrue(Exit.isSuccess(charged))
    yield* other.notifyBelow(5)
    yield* other.charge(6)
    assert.lengthOf(yield* other.notices, 1)
  })

  it.scoped("neither delays nor fails a charge while its endpoint is being removed", function* () {
    const { bench, charge, notices, notifyBelow, org, sql } = yield* customer()
    yield* notifyBelow(5)
    const charged = yield* sql`DELETE FROM webhook_endpoints WHERE org_id = ${org}`.pipe(
      Effect.zipRight(Effect.exit(charge(6))),
      sql.withTransaction
    )
    assert.isTrue(Exit.isSuccess(charged))
    assert.lengthOf(yield* notices, 1)
    assert.isTrue(yield* bench.proved)
  })

  it.scoped("is not written without a threshold or without an endpoint that is on", function* () {
    const silent = yield* customer()
    yield* silent.charge(9)
    const nobody = yield* customer("https://gone.example/")
    yield* nobody.sql`UPDATE webhook_endpoints SET disabled_at = now() WHERE org_id = ${nobody.org}`
    yield* nobody.notifyBelow(5)
    yield* nobody.charge(9)
    assert.deepStrictEqual([yield* silent.notices, yield* nobody.notices], [[], []])
  })
})

withLayer(layer)("cap.reached", (it) => {
  it.scoped("is written at 80 and at 100 percent of a key's cap, once each", function* () {
    const { cap, charge, key, notices } = yield* customer()
    yield* cap(5, "month")
    yield* charge(3.99)
    assert.deepStrictEqual(yield* notices, [])
    yield* charge(0.01)
    yield* charge(0.5)
    const data = { key_id: key, key_name: "", percent: 80, cap_usd: 5, cap_period: "month", spent_usd: 4 }
    assert.deepStrictEqual(
      (yield* notices).map((notice) => [notice.type, notice.data]),
      [["cap.reached", data]]
    )
    yield* charge(1)
    const [, second, ...others] = yield* notices
    assert.deepStrictEqual([second?.data, others], [{ ...data, percent: 100, spent_usd: 5.5 }, []])
  })

  it.scoped("is written for both by one charge, and again in the next period", function* () {
    const { cap, charge, key, notices, sql } = yield* customer()
    yield* cap(1, "day")
    yield* charge(1)
    yield* sql`UPDATE key_spend SET day = day - 1 WHERE key_id = ${key}`
    yield* charge(0.8)
    const percents = (yield* notices).map(({ data }) => data["percent"])
    assert.deepStrictEqual(percents, [80, 100, 80])
  })

  it.scoped("counts the days of the period together", function* () {
    const { cap, charge, key, notices, sql } = yield* customer()
    yield* cap(5, "total")
    yield* charge(3)
    yield* sql`UPDATE key_spend SET day = day - 40 WHERE key_id = ${key}`
    yield* charge(1)
    assert.deepStrictEqual(
      (yield* notices).map(({ data }) => [data["percent"], data["spent_usd"]]),
      [[80, 4]]
    )
  })

  it.scoped("is written again after a refund, and not for a key without a cap", function* () {
    const { cap, charge, notices, sql } = yield* customer()
    const charged = yield* charge(1)
    yield* cap(5, "month")
    yield* charge(3)
    assert.lengthOf(yield* notices, 1)
    yield* refundFailed(sql, charged)
    yield* charge(1)
    assert.deepStrictEqual(
      (yield* notices).map(({ data }) => data["percent"]),
      [80, 80]
    )
  })

  it.scoped("is written for the organization's cap, too, with no key", function* () {
    const { charge, notices, org, sql } = yield* customer()
    yield* sql`UPDATE organizations SET cap = ${usd(5)}, cap_period = 'month' WHERE id = ${org}`
    const spent = yield* charge(3.9)
    assert.deepStrictEqual(yield* notices, [])
    yield* charge(0.1)
    yield* charge(1.5)
    const written = yield* notices
    assert.deepStrictEqual(
      written.map(({ data, type }) => [type, Struct.omit(data, "spent_usd")]),
      [80, 100].map((percent) => [
        "cap.reached",
        { key_id: null, key_name: null, percent, cap_usd: 5, cap_period: "month" }
      ])
    )
    // The probes of the endpoint cost some nano-dollars.
    assert.deepStrictEqual(
      written.map(({ data }) => Math.floor(Number(data["spent_usd"]) * 1e6)),
      [4_000_000, 5_500_000]
    )
    yield* refundFailed(sql, spent)
    yield* charge(2.4)
    assert.lengthOf(yield* notices, 3)
  })
})
