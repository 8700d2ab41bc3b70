import { SqlClient } from "@effect/sql"
import { Effect, FastCheck as fc, Layer } from "effect"
import { month } from "../../../src/domain/Month.ts"
import { OrgId } from "../../../src/domain/Organization.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { invariants } from "../../../src/services/ledger/Invariants.ts"
import {
  addCharges,
  linesOf,
  type Statement,
  type StatementEntry,
  Statements
} from "../../../src/services/statements/Statements.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, describe, liveOver } from "../../harness/It.ts"
import { expected, history, months, play } from "./History.ts"

const test = liveOver(Layer.provideMerge(Statements.layer, Postgres.layer))

const amountsOf = (entries: ReadonlyArray<StatementEntry>) => entries.map(({ amount_usd }) => amount_usd)

const summaryOf = (statement: Statement) => ({
  opening: statement.opening_usd,
  closing: statement.closing_usd,
  payments: amountsOf(statement.payments),
  reversals: amountsOf(statement.reversals),
  refunds: amountsOf(statement.refunds),
  adjustments: amountsOf(statement.adjustments),
  usage: Object.fromEntries(
    statement.usage.map((line) => [
      `${line.model} ${line.surface}`,
      {
        charge: line.charge_usd,
        counts: [line.requests, line.prompt_tokens, line.completion_tokens, line.images]
      }
    ])
  )
})

const statementOf = (org: OrgId, name: string) =>
  Effect.flatMap(Statements, ({ find }) => find(OrganizationScope.all, org, month(name)))

const broken = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const found = yield* Effect.forEach(
    invariants(sql).filter(({ name }) => /statement/.test(name)),
    ({ check, name }) => Effect.map(check, (rows) => ({ name, rows }))
  )
  return found.filter(({ rows }) => rows.length > 0).map(({ name }) => name)
})

describe("statements", () => {
  test("say of each month what the ledger says, whatever is added up or removed meanwhile", function* () {
    const sql = yield* SqlClient.SqlClient
    const histories = fc.sample(history, { seed: 41, numRuns: 12 })
    for (const [index, events] of histories.entries()) {
      const org = OrgId.make(`org_${index}`)
      yield* sql`UPDATE monthly_charges_progress SET added_until = '-infinity'`
      yield* sql`TRUNCATE monthly_charges, removed_charge_details`
      yield* play(org, events, (moved) =>
        Effect.gen(function* () {
          let before: bigint | undefined
          for (const name of months) {
            const statement = yield* statementOf(org, name)
            assert.deepStrictEqual(summaryOf(statement), expected(moved, name), `${name} of history ${index}`)
            assert.strictEqual(statement.opening_usd, before ?? statement.opening_usd)
            before = statement.closing_usd
            const lines = linesOf(statement).map(({ amount_usd }) => amount_usd)
            assert.strictEqual(
              lines.slice(0, -1).reduce((sum, amount) => sum + amount, 0n),
              lines.at(-1)
            )
          }
          const [balance] = yield* sql`SELECT balance::text FROM organizations WHERE id = ${org}`
          assert.strictEqual(String(before), balance?.["balance"])
          if (index === 0) assert.deepStrictEqual(yield* broken, [])
        })
      )
    }
  }, 120_000)

  test("of months without a statement say why", function* () {
    const sql = yield* SqlClient.SqlClient
    const org = OrgId.make("org_new")
    yield* sql`INSERT INTO organizations (id, name, created_at) VALUES (${org}, 'new', '2025-05-31T23:59:59.999Z')`
    assert.strictEqual((yield* statementOf(org, "2025-05")).closing_usd, 0n)
    assert.strictEqual(
      (yield* Effect.flip(statementOf(org, "2025-04"))).message,
      "There is no statement of 2025-04: the organization was created in 2025-05."
    )
    assert.strictEqual(
      (yield* Effect.flip(statementOf(org, "9999-12"))).message,
      "There is no statement of 9999-12: it has not begun."
    )
    for (const text of ["2025-13", "2025-00", "2025-1", "2025-01-01", "1969-12", "", " 2025-01"]) {
      assert.isUndefined(month(text), text)
    }
  })

  test("are proved with the ledger", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* sql`INSERT INTO organizations (id, name, created_at, balance) VALUES ('org', 'org', '2025-01-01', -5)`
    yield* sql`INSERT INTO ledger_entries (org_id, at, kind, amount, hold_id, key_id, held, held_at)
      VALUES ('org', '2025-03-31T23:59:59.999Z', 'charge', -5, gen_random_uuid(), 'key', 5, '2025-03-31')`
    yield* addCharges()
    assert.deepStrictEqual(yield* broken, [])
    const [sums, kept] = invariants(sql)
      .filter(({ name }) => /statement/.test(name))
      .map(({ name }) => name)
    yield* sql`UPDATE monthly_charges SET charge = charge + 1`
    assert.deepStrictEqual(yield* broken, [sums])
    yield* sql`UPDATE monthly_charges SET charge = charge - 1, month = '2025-04-01'`
    assert.deepStrictEqual(yield* broken, [sums])
    yield* sql`UPDATE monthly_charges SET month = '2025-03-01'`
    yield* sql`INSERT INTO removed_charge_details (hold_id, surface) SELECT hold_id, 'chat' FROM ledger_entries`
    assert.deepStrictEqual(yield* broken, [kept])
  })

  test("lack charges of before their time was added up, until those are added", function* () {
    const sql = yield* SqlClient.SqlClient
    const org = OrgId.make("org")
    const charge = (at: string, amount: number) => sql`
      INSERT INTO ledger_entries (org_id, at, kind, amount, hold_id, key_id, held, held_at)
      VALUES ('org', ${at}, 'charge', ${-amount}, gen_random_uuid(), 'key', ${amount}, ${at})`
    yield* sql`INSERT INTO organizations (id, name, created_at) VALUES (${org}, 'org', '2025-01-01')`
    yield* charge("2025-03-31T12:00:00Z", 5)
    yield* addCharges()
    yield* charge("2025-03-31T11:00:00Z", 7)
    yield* charge("2025-02-01T00:00:00Z", 9)
    assert.lengthOf(yield* broken, 1)
    assert.deepStrictEqual(yield* sql`SELECT add_missed_charges()::int AS months`, [{ months: 2 }])
    assert.deepStrictEqual(yield* broken, [])
    assert.strictEqual((yield* statementOf(org, "2025-03")).total_charge_usd, 12n)
    assert.deepStrictEqual(yield* sql`SELECT add_missed_charges()::int AS months`, [{ months: 0 }])
    assert.deepStrictEqual(yield* broken, [])
  })

  test("have the discount of their month, from the log of its changes", function* () {
    const sql = yield* SqlClient.SqlClient
    const org = OrgId.make("org_5d0f7c1e9b3a4c6d8e2f1a0b9c8d7e6f")
    yield* sql`INSERT INTO organizations (id, name, created_at, discount_percent) VALUES (${org}, 'acme', '2025-02-01', 30)`
    const change = (at: string, before: unknown, after: unknown, action = "organizations.update") =>
      sql`INSERT INTO audit (at, actor, via, action, target, before, after) VALUES
        (${at}, 'ada', 'api', ${action}, ${org}, ${JSON.stringify(before)}::json, ${JSON.stringify(after)}::json)`
    // Written before organizations had discounts.
    yield* change("2025-02-02T00:00:00Z", { name: "a" }, { name: "acme" })
    yield* change("2025-04-01T00:00:00Z", { discount_percent: 0 }, { discount_percent: 10 })
    yield* change("2025-04-10T12:30:00Z", { discount_percent: 10 }, { discount_percent: -2.5 })
    yield* change("2025-04-11T00:00:00Z", { discount_percent: -2.5, name: "a" }, { discount_percent: -2.5, name: "b" })
    yield* change("2025-04-12T00:00:00Z", { note: "\u0000" }, { note: "" }, "credits.add")
    yield* change("2025-06-01T00:00:00Z", { discount_percent: -2.5 }, { discount_percent: 30 })
    const found = yield* Effect.forEach(["2025-03", "2025-04", "2025-05", "2025-06"], (name) => statementOf(org, name))
    assert.deepStrictEqual(
      found.map(({ discount_percent }) => discount_percent),
      [0, -2.5, -2.5, 30]
    )
    const changes = found.map(({ discount_changes }) =>
      discount_changes.map(({ at, from_percent, to_percent }) => [at.toISOString(), from_percent, to_percent])
    )
    assert.deepStrictEqual(changes, [
      [],
      [
        ["2025-04-01T00:00:00.000Z", 0, 10],
        ["2025-04-10T12:30:00.000Z", 10, -2.5]
      ],
      [],
      [["2025-06-01T00:00:00.000Z", -2.5, 30]]
    ])
    const [march] = found
    assert.deepInclude(march, {
      number: "1A0B9C8D7E6F-2025-03",
      organization_name: "acme",
      period: "1 to 31 March 2025",
      closed: true,
      currency: "USD"
    })
    assert.isFalse(march !== undefined && "seller" in march)
    const current = yield* Effect.flatMap(Statements, ({ find }) => find(OrganizationScope.all, org, undefined))
    assert.isFalse(current.closed)
    assert.match(current.period, /^1 \w+ \d{4} to now \(not closed\)$/)
  })
})
