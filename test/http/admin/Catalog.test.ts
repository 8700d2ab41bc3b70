import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Fiber, Schedule } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Audit } from "../../../src/services/admin/AuditLog.ts"
import { read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"

/** Whoever runs answers each reload; the first of them refuses. */
const answering = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    INSERT INTO instance_catalogs (instance_id, host, pid, generation, fingerprint, models, problem)
    SELECT id, 'one.test', 7, generation, 'abc', 2, CASE WHEN id = (SELECT min(id::text)::uuid FROM instances) THEN 'wrong' END
    FROM instances, catalog_generation
    ON CONFLICT (instance_id) DO UPDATE SET generation = EXCLUDED.generation`
}).pipe(Effect.repeat(Schedule.spaced("50 millis")), Effect.fork)

withLayer(layer)("the catalog at the admin API", (it) => {
  it.effect("it is listed as it is served, with what is off and what is sold below its cost", function* () {
    const { admin } = yield* asOperator("read")
    const { data, fingerprint, ...rest } = read(yield* admin("/catalog"))
    assert.match(fingerprint, /^[0-9a-f]{12}$/)
    const losses = ["dear@absent: the price of 1K image is below what the provider charges"]
    assert.deepStrictEqual(rest, { sandbox: false, losses, has_more: false, next: null })
    const dear = data.find(({ id }: { id: string }) => id === "dear")
    assert.deepStrictEqual(dear, {
      id: "dear",
      surface: "image",
      callable: false,
      sandboxed: false,
      reason: "set ABSENT_KEY",
      routes: [
        {
          id: "dear@absent",
          provider: "absent",
          preference: 2,
          weight: 3,
          blocked: "ABSENT_KEY is not set",
          margins: [{ unit: "1K image", price_usd: 0.04, cost_usd: 0.05, margin_usd: -0.01, margin_pct: -25 }]
        }
      ]
    })
    const talk = data.find(({ id }: { id: string }) => id === "talk")
    assert.isTrue(talk.callable)
    const priced = { price_usd: 7.5, cost_usd: null, margin_usd: null, margin_pct: null }
    assert.deepInclude(talk.routes[0].margins, { unit: "completion per 1M", ...priced })
  })

  it.effect("a reload answers what each instance says, once for each key", function* () {
    const { admin, name: actor } = yield* asOperator("write")
    const sql = yield* SqlClient.SqlClient
    yield* sql`INSERT INTO instances (id) VALUES (${randomUUID()})`
    const answers = yield* answering
    const headers = { "idempotency-key": randomUUID() }
    const reload = admin("/catalog/reload", { method: "POST", headers })
    const { data } = read(yield* reload)
    const states = data.map(({ state }: { state: string }) => state)
    assert.sameMembers(states, ["reloaded", "refused"])
    const refused = data.find(({ state }: { state: string }) => state === "refused")
    const { id, ...said } = refused
    assert.isString(id)
    assert.deepStrictEqual(said, {
      host: "one.test",
      pid: 7,
      state: "refused",
      fingerprint: "abc",
      models: 2,
      problem: "wrong"
    })
    const repeated = yield* reload
    assert.strictEqual(repeated.headers.get("idempotency-replayed"), "true")
    yield* Fiber.interrupt(answers)
    assert.deepStrictEqual(yield* sql`SELECT generation FROM catalog_generation`, [{ generation: 1 }])
    const [row, ...others] = yield* (yield* Audit).list(OrganizationScope.all, { actor, limit: 10 })
    assert.isEmpty(others)
    assert.deepInclude(row, { action: "catalog.reload", target: "catalog", after: { generation: 1 } })
  })

  it.effect("a reader cannot reload", function* () {
    const { admin } = yield* asOperator("read")
    assertRefused(yield* admin("/catalog/reload", { method: "POST" }), refusals.needs("write"))
  })
})
