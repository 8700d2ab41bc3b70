import { SqlClient } from "@effect/sql"
import { Context, Effect, Layer, Option, type Redacted } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { Auth } from "../../../src/services/access/Auth.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import * as Postgres from "../../harness/database/Postgres.ts"
import { assert, withLayer } from "../../harness/It.ts"

const services = Layer.merge(ApiKeys.layer, Organizations.layer).pipe(
  Layer.provideMerge(LedgerAdmin.layer),
  Layer.provideMerge(Postgres.layer)
)

/** Calls with a key on an instance of its own, which then stops. */
const call = (secret: Redacted.Redacted) =>
  Effect.scoped(
    Effect.flatMap(Layer.build(Layer.fresh(Auth.layer)), (instance) =>
      Context.get(instance, Auth).authenticate(Option.some(secret))
    )
  )

withLayer(services)("the last use of a key", (it) => {
  it.effect("is unknown before the first, and written at most once a minute", function* () {
    const sql = yield* SqlClient.SqlClient
    const keys = yield* ApiKeys
    const { id: org } = yield* Effect.flatMap(Organizations, ({ create }) => create({ name: "acme" }))
    const { record, secret } = yield* keys.create({ org })
    const other = yield* keys.create({ org })
    const lastUse = Effect.map(keys.find(OrganizationScope.all, record.id), ({ last_used_at }) =>
      last_used_at?.getTime()
    )
    assert.isUndefined(yield* lastUse)

    const before = Date.now()
    yield* call(secret)
    const first = (yield* lastUse) ?? assert.fail("the use was not written")
    assert.isBelow(Math.abs(first - before), 60_000)
    yield* call(secret)
    assert.strictEqual(yield* lastUse, first)

    yield* sql`UPDATE key_uses SET last_used_at = last_used_at - interval '61 seconds' WHERE key_id = ${record.id}`
    yield* call(secret)
    assert.isAtLeast((yield* lastUse) ?? 0, first)
    assert.isNull((yield* keys.find(OrganizationScope.all, other.record.id)).last_used_at)
  })

  it.effect("does not invalidate the instances' cached keys", function* () {
    const sql = yield* SqlClient.SqlClient
    const keys = yield* ApiKeys
    const { id: org } = yield* Effect.flatMap(Organizations, ({ create }) => create({ name: "beta" }))
    const { secret } = yield* keys.create({ org })
    const revision = sql`SELECT revision FROM access_revision`
    const before = yield* revision
    yield* call(secret)
    assert.deepStrictEqual(yield* revision, before)
  })
})
