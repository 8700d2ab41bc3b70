import { createHash } from "node:crypto"
import { inspect } from "node:util"
import { SqlClient } from "@effect/sql"
import { Effect, Layer, Redacted, Schema } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { Key } from "../../../src/services/access/Key.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"

const services = Layer.merge(ApiKeys.layer, Organizations.layer).pipe(
  Layer.provideMerge(LedgerAdmin.layer),
  Layer.provideMerge(Postgres.layer)
)

let count = 0
const organization = Effect.flatMap(Organizations, ({ create }) => create({ name: `customer ${++count}` }))
const key = Effect.gen(function* () {
  const keys = yield* ApiKeys
  const { id: org } = yield* organization
  return yield* keys.create({ org })
})

const fields = Schema.encodeSync(Key)

const storedHash = Effect.fnUntraced(function* (id: string) {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql`SELECT encode(hash, 'hex') AS hash FROM api_keys WHERE id = ${id}`
  return row?.["hash"]
})
const sha256 = (secret: Redacted.Redacted) => createHash("sha256").update(Redacted.value(secret)).digest("hex")

withLayer(services)("ApiKeys", (it) => {
  it.effect("a new key has 256 random bits, of which only the hash is kept", function* () {
    const { record, secret } = yield* key
    assert.match(Redacted.value(secret), /^ggw_[A-Za-z0-9_-]{43}$/)
    assert.strictEqual(yield* storedHash(record.id), sha256(secret))
    const sql = yield* SqlClient.SqlClient
    const [row] = yield* sql`SELECT api_keys::text AS whole FROM api_keys WHERE id = ${record.id}`
    assert.notInclude(String(row?.["whole"]), Redacted.value(secret).slice(4))
    assert.notInclude(inspect({ record, secret }), Redacted.value(secret))
    assert.notStrictEqual(Redacted.value((yield* key).secret), Redacted.value(secret))
  })

  it.effect("keeps the values that it was created with, and no others", function* () {
    const keys = yield* ApiKeys
    const { id: org, name } = yield* organization
    const { record: bare, secret } = yield* keys.create({ org })
    assert.deepStrictEqual(bare, {
      id: bare.id,
      org,
      org_name: name,
      name: "",
      hint: Redacted.value(secret).slice(4, 12),
      scopes: null,
      models: null,
      rpm: null,
      tpm: null,
      concurrency: null,
      cap_usd: null,
      cap_period: null,
      spent_usd: 0n,
      created_at: bare.created_at,
      expires_at: null,
      previous_expires_at: null,
      revoked_at: null,
      last_used_at: null
    })
    const expires_at = new Date("2031-02-03T04:05:06.789Z")
    const cap = { cap_usd: NanoUsd(1_500_000_000n), cap_period: "week" } as const
    const full = (yield* keys.create({ org, name: "ci", scopes: ["images", "chat"], rpm: 7, ...cap, expires_at }))
      .record
    assert.deepInclude(full, { name: "ci", scopes: ["images", "chat"], rpm: 7, ...cap })
    assert.deepStrictEqual(full.expires_at, expires_at)
    assert.deepStrictEqual(yield* keys.find(OrganizationScope.all, full.id), full)
    assert.deepStrictEqual(yield* keys.list(org), [bare, full])
  })

  it.effect("every field can be set, kept and removed", function* () {
    const keys = yield* ApiKeys
    const { record } = yield* key
    const cap = { cap_usd: NanoUsd(5n), cap_period: "day" } as const
    const expires_at = new Date("2031-01-01T00:00:00Z")
    const set = yield* keys.update(OrganizationScope.all, record.id, {
      name: "n",
      scopes: ["videos"],
      rpm: 1,
      ...cap,
      expires_at
    })
    assert.deepInclude(set, { name: "n", scopes: ["videos"], rpm: 1, ...cap })
    assert.deepStrictEqual(yield* keys.update(OrganizationScope.all, record.id, {}), set)
    const renamed = yield* keys.update(OrganizationScope.all, record.id, { name: "m" })
    assert.deepStrictEqual(fields(renamed), { ...fields(set), name: "m" })
    const cleared = yield* keys.update(OrganizationScope.all, record.id, {
      name: "",
      scopes: null,
      rpm: null,
      cap_usd: null,
      cap_period: null,
      expires_at: null
    })
    assert.deepStrictEqual(cleared, record)
  })

  it.effect("a reissue invalidates the old secret at once", function* () {
    const keys = yield* ApiKeys
    const first = yield* key
    const second = yield* keys.reissue(OrganizationScope.all, first.record.id)
    const hint = Redacted.value(second.secret).slice(4, 12)
    assert.deepStrictEqual(fields(second.record), { ...fields(first.record), hint })
    assert.notStrictEqual(Redacted.value(second.secret), Redacted.value(first.secret))
    assert.strictEqual(yield* storedHash(first.record.id), sha256(second.secret))
  })

  it.effect("a reissue with a grace keeps the hash of one old secret, until it ends or the key does", function* () {
    const keys = yield* ApiKeys
    const sql = yield* SqlClient.SqlClient
    const first = yield* key
    const { id, org } = first.record
    const previousHash = Effect.map(
      sql`SELECT encode(previous_hash, 'hex') AS hash FROM api_keys WHERE id = ${id}`,
      ([row]) => row?.["hash"]
    )
    const found = (secret: Redacted.Redacted) =>
      Effect.map(
        keys.page(OrganizationScope.all, { org, search: Redacted.value(secret).slice(0, 12), limit: 9 }),
        ({ length }) => length
      )
    const second = yield* keys.reissue(OrganizationScope.all, id, 3_600)
    const ends = second.record.previous_expires_at
    assert.closeTo((ends?.getTime() ?? 0) - Date.now(), 3_600_000, 60_000)
    assert.deepStrictEqual([yield* storedHash(id), yield* previousHash], [sha256(second.secret), sha256(first.secret)])
    assert.deepStrictEqual(yield* keys.find(OrganizationScope.all, id), second.record)
    assert.deepStrictEqual([yield* found(first.secret), yield* found(second.secret)], [1, 1])

    yield* keys.update(OrganizationScope.all, id, { expires_at: new Date(Date.now() + 60_000) })
    assert.isBelow(
      (yield* keys.find(OrganizationScope.all, id)).previous_expires_at?.getTime() ?? 0,
      Date.now() + 61_000
    )
    yield* keys.update(OrganizationScope.all, id, { expires_at: null })

    const third = yield* keys.reissue(OrganizationScope.all, id, 60)
    assert.strictEqual(yield* previousHash, sha256(second.secret))
    assert.deepStrictEqual([yield* found(first.secret), yield* found(second.secret)], [0, 1])
    yield* sql`UPDATE api_keys SET previous_expires_at = now() - interval '1 second' WHERE id = ${id}`
    assert.isNull((yield* keys.find(OrganizationScope.all, id)).previous_expires_at)
    assert.strictEqual(yield* found(second.secret), 0)

    assert.isNotNull((yield* keys.reissue(OrganizationScope.all, id, 60)).record.previous_expires_at)
    assert.strictEqual(yield* previousHash, sha256(third.secret))
    assert.isNull((yield* keys.reissue(OrganizationScope.all, id)).record.previous_expires_at)
    assert.isNull(yield* previousHash)
    yield* keys.reissue(OrganizationScope.all, id, 60)
    assert.isNull((yield* keys.revoke(OrganizationScope.all, id)).previous_expires_at)
  })

  it.effect("a revoked key stays revoked: it keeps its moment, cannot be reissued and cannot be changed", function* () {
    const keys = yield* ApiKeys
    const { record } = yield* key
    const revoked = yield* keys.revoke(OrganizationScope.all, record.id)
    assert.isNotNull(revoked.revoked_at)
    assert.deepStrictEqual(yield* keys.revoke(OrganizationScope.all, record.id), revoked)
    const hash = yield* storedHash(record.id)
    for (const attempt of [
      Effect.asVoid(keys.reissue(OrganizationScope.all, record.id)),
      Effect.asVoid(keys.update(OrganizationScope.all, record.id, { name: "x" }))
    ]) {
      const error = yield* Effect.flip(attempt)
      assert.strictEqual(error.message, `The key ${record.id} is revoked.`)
    }
    assert.strictEqual(yield* storedHash(record.id), hash)
    assert.deepStrictEqual(yield* keys.find(OrganizationScope.all, record.id), revoked)
  })

  it.effect("every operation on an unknown id fails as not found", function* () {
    const keys = yield* ApiKeys
    for (const attempt of [
      Effect.asVoid(keys.find(OrganizationScope.all, "key_x")),
      Effect.asVoid(keys.revoke(OrganizationScope.all, "key_x")),
      Effect.asVoid(keys.reissue(OrganizationScope.all, "key_x")),
      Effect.asVoid(keys.update(OrganizationScope.all, "key_x", { rpm: 3 }))
    ]) {
      assert.strictEqual((yield* Effect.flip(attempt)).message, "There is no key with the id key_x.")
    }
  })

  it.effect("what was spent counts in the running period only", function* () {
    const keys = yield* ApiKeys
    const sql = yield* SqlClient.SqlClient
    const { record } = yield* key
    const spend = (day: string, amount: number) =>
      sql`INSERT INTO key_spend (key_id, day, spent)
          VALUES (${record.id}, ${sql.literal(`((now() AT TIME ZONE 'UTC')::date - ${day})::date`)}, ${amount})`
    yield* spend("0", 1)
    yield* spend("40", 10)
    yield* spend("400", 100)
    const spent = (period: "day" | "week" | "month" | "total") =>
      Effect.map(
        keys.update(OrganizationScope.all, record.id, { cap_usd: NanoUsd(1n), cap_period: period }),
        (changed) => changed.spent_usd
      )
    assert.strictEqual(yield* spent("day"), 1n)
    assert.strictEqual(yield* spent("week"), 1n)
    assert.strictEqual(yield* spent("month"), 1n)
    assert.strictEqual(yield* spent("total"), 111n)
    assert.strictEqual(
      (yield* keys.update(OrganizationScope.all, record.id, { cap_usd: null, cap_period: null })).spent_usd,
      111n
    )
  })
})
