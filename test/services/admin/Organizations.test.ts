import { SqlClient } from "@effect/sql"
import { Effect, Layer, Struct } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"

const services = Organizations.layer.pipe(Layer.provideMerge(LedgerAdmin.layer), Layer.provideMerge(Postgres.layer))

const revision = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql`SELECT revision FROM access_revision`
  return Number(row?.["revision"])
})

const suspendedSince = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql`SELECT suspended_at AS since FROM organizations WHERE id = ${id}`
  return row?.["since"]
})

withLayer(services)("Organizations", (it) => {
  it.effect("are found by id and by name, with nothing on their account", function* () {
    const organizations = yield* Organizations
    const created = yield* organizations.create({ name: "Acme & Söhne" })
    assert.match(created.id, /^org_[0-9a-f]{32}$/)
    assert.strictEqual(created.name, "Acme & Söhne")
    assert.isFalse(created.suspended)
    assert.strictEqual(created.available_usd, 0n)
    assert.doesNotHaveAnyKeys(created, ["deleted_at", "notify_below_usd"])
    assert.deepStrictEqual(yield* organizations.find(OrganizationScope.all, created.id), created)
    assert.deepStrictEqual(yield* organizations.find(OrganizationScope.all, "Acme & Söhne"), created)
    assert.deepStrictEqual(yield* organizations.find(OrganizationScope.all, "Acme & So\u0308hne"), created)
  })

  it.effect("opening credits are an entry of the ledger", function* () {
    const organizations = yield* Organizations
    const books = yield* LedgerAdmin
    const created = yield* organizations.create({ name: "rich", credits: NanoUsd(12_000_000_001n) })
    assert.strictEqual(created.balance_usd, 12_000_000_001n)
    const entries = yield* books.entries(created.id, { limit: 10 })
    assert.deepStrictEqual(
      entries.map(({ amount_usd, kind }) => ({ amount_usd, kind })),
      [{ amount_usd: 12_000_000_001n, kind: "top_up" }]
    )
    assert.deepStrictEqual((yield* books.verify).violations, [])
  })

  it.effect("a name is taken once", function* () {
    const organizations = yield* Organizations
    const first = yield* organizations.create({ name: "twice" })
    const error = yield* Effect.flip(organizations.create({ name: "twice", credits: NanoUsd(5n) }))
    assert.strictEqual(error._tag, "NameTaken")
    assert.deepStrictEqual(yield* organizations.find(OrganizationScope.all, "twice"), first)
  })

  const refused = [
    "",
    " ",
    "org_x",
    "ORG_x",
    "-x",
    "--json",
    " x",
    "x ",
    "a\nb",
    "a\u0000b",
    "a\u202eb",
    "x".repeat(101)
  ]
  for (const name of refused) {
    it.effect(`refuses the name ${JSON.stringify(name)}`, function* () {
      const organizations = yield* Organizations
      assert.strictEqual((yield* Effect.flip(organizations.create({ name })))._tag, "NameRefused")
    })
  }
  for (const name of ["x", "x".repeat(100), "a b", "日本", "🦊".repeat(100), "organization", "1"]) {
    it.effect(`takes the name ${JSON.stringify(name)}`, function* () {
      const organizations = yield* Organizations
      assert.strictEqual((yield* organizations.create({ name })).name, name)
    })
  }

  it.effect("are listed in the order of their making", function* () {
    const organizations = yield* Organizations
    const made = yield* Effect.forEach(["zz", "yy", "xx"], (name) => organizations.create({ name }))
    const ids = (yield* organizations.list).map(({ id }) => id)
    assert.deepStrictEqual(ids.slice(-3), made.map(Struct.get("id")))
  })

  it.effect("a suspension keeps its first moment, ends with resume, and moves the watched revision", function* () {
    const organizations = yield* Organizations
    const { id } = yield* organizations.create({ name: "naughty" })
    const before = yield* revision
    const suspended = yield* organizations.suspend("naughty")
    assert.strictEqual(suspended.id, id)
    assert.isTrue(suspended.suspended)
    assert.isAbove(yield* revision, before)
    const since = yield* suspendedSince(id)
    assert.instanceOf(since, Date)
    assert.deepStrictEqual(yield* organizations.suspend(id), suspended)
    assert.deepStrictEqual(yield* suspendedSince(id), since)
    assert.isFalse((yield* organizations.resume(id)).suspended)
    assert.isFalse((yield* organizations.find(OrganizationScope.all, id)).suspended)
  })

  it.effect("every setting can be set, left alone and taken away", function* () {
    const organizations = yield* Organizations
    const made = yield* organizations.create({ name: "changing" })
    const cap = { cap_usd: NanoUsd(7n), cap_period: "total" } as const
    const changes = { name: "So\u0308hne", notify_below_usd: NanoUsd(5n), fit_holds: true, ...cap }
    const before = yield* revision
    const set = yield* organizations.update("changing", changes)
    assert.isAbove(yield* revision, before)
    assert.deepStrictEqual(set, { ...made, ...changes, name: "Söhne", cap_spent_usd: 0n })
    assert.deepStrictEqual(yield* organizations.update(made.id, {}), set)
    const rest = Struct.omit(set, "notify_below_usd")
    assert.deepStrictEqual(yield* organizations.update(made.id, { notify_below_usd: null }), rest)
    const uncapped = { cap_usd: null, cap_period: null }
    assert.deepStrictEqual(yield* organizations.update(made.id, uncapped), {
      ...rest,
      ...uncapped,
      cap_spent_usd: null
    })
    assert.deepStrictEqual(yield* organizations.update(made.id, cap), rest)
    yield* organizations.create({ name: "taken" })
    for (const [name, tag] of [
      ["taken", "NameTaken"],
      ["-x", "NameRefused"]
    ] as const) {
      const error = yield* Effect.flip(organizations.update(made.id, { name, fit_holds: false }))
      assert.strictEqual(error._tag, tag)
    }
    assert.deepStrictEqual(yield* organizations.update(made.id, { name: "Söhne" }), rest)
    const deleted = yield* organizations.delete(made.id)
    assert.instanceOf(deleted.deleted_at, Date)
    assert.deepStrictEqual(yield* organizations.findIncludingDeleted(OrganizationScope.all, made.id), deleted)
  })

  it.effect("an unknown one is said to be unknown, whatever is asked of it", function* () {
    const organizations = yield* Organizations
    const find = (reference: string) => organizations.find(OrganizationScope.all, reference)
    for (const ask of [find, organizations.suspend, organizations.resume]) {
      const error = yield* Effect.flip(ask("org_nobody"))
      assert.strictEqual(error.message, "There is no organization org_nobody.")
    }
  })
})
