import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Audit } from "../../../src/services/admin/AuditLog.ts"
import { Ids } from "../../../src/services/runtime/Ids.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { hostileTexts, inAddress, read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"

interface Listed {
  readonly id: string
}

/** A customer with videos that wait to be submitted, each with a hold of half a dollar. */
const prepared = Effect.gen(function* () {
  const operator = yield* asOperator("write")
  const { admin } = operator
  const { key, org } = yield* openAccount({ nanoUsd: 10_000_000_000n })
  const sql = yield* SqlClient.SqlClient
  const { prefixed } = yield* Ids
  const wait = Effect.fnUntraced(function* (minutesAgo: number, model = "framed") {
    const hold = randomUUID()
    const id = prefixed("vid")
    yield* sql`INSERT INTO holds (id, org_id, key_id, amount) VALUES (${hold}, ${org}, ${key}, 500000000)`
    yield* sql`UPDATE organizations SET held = held + 500000000 WHERE id = ${org}`
    yield* sql`
      INSERT INTO videos (id, org_id, key_id, hold_id, request_id, model, seconds, price, prompt, created_at, deadline)
      VALUES (${id}, ${org}, ${key}, ${hold}, ${`of ${id}`}, ${model}, 5, 500000000, 'a secret wish',
        now() - ${minutesAgo} * interval '1 minute', now() + interval '1 hour')`
    return id
  })
  const ids = (query: string) =>
    Effect.map(admin(`/videos?organization=${org}${query}`), (answer) => read(answer).data.map(({ id }: Listed) => id))
  const { name: orgName } = read(yield* admin(`/organizations/${org}`))
  return { ...operator, org, key, orgName, wait, ids, sql }
})

withLayer(layer)("videos at the admin API", (it) => {
  it.effect("each filter leaves out what it should, and pages follow each other", function* () {
    const { admin, ids, org, orgName, sql, wait } = yield* prepared
    const old = yield* wait(120)
    const recent = yield* wait(10, "bare")
    const newest = yield* wait(1)
    yield* sql`UPDATE videos SET status = 'in_progress' WHERE id = ${recent}`
    assert.deepStrictEqual(yield* ids(""), [newest, recent, old])
    assert.deepStrictEqual(yield* ids("&model=framed"), [newest, old])
    assert.deepStrictEqual(yield* ids("&status=in_progress"), [recent])
    assert.deepStrictEqual(yield* ids("&since=1h"), [newest, recent])
    assert.deepStrictEqual(yield* ids("&until=5m&since=1d"), [recent, old])
    assert.deepStrictEqual(yield* ids("&since=yesterday"), [newest, recent, old])
    assert.deepStrictEqual(yield* ids("&since=last-month&until=yesterday"), [])
    assert.deepStrictEqual(yield* ids("&status=completed"), [])
    const seen: Array<string> = []
    let after = ""
    for (let turn = 0; turn < 3; turn++) {
      const page = read(yield* admin(`/videos?organization=${org}&limit=1${after}`))
      seen.push(...page.data.map(({ id }: Listed) => id))
      assert.strictEqual(page.has_more, turn < 2)
      after = `&after=${page.next}`
    }
    assert.deepStrictEqual(seen, [newest, recent, old])
    const [listed] = read(yield* admin(`/videos?organization=${org}&limit=1`)).data
    assert.deepStrictEqual(read(yield* admin(`/videos/${newest}`)), listed)
    assert.deepInclude(listed, { org, org_name: orgName, model: "framed", price_usd: 0.5, charge_usd: null })
    assert.notInclude(JSON.stringify(listed), "secret")
  })

  it.effect("a cancelled one gives its hold back once, with a row of the audit", function* () {
    const { admin, org, wait } = yield* prepared
    const id = yield* wait(1)
    const held = Effect.map(admin(`/organizations/${org}`), (answer) => read(answer).held_usd)
    assert.strictEqual(yield* held, 0.5)
    const headers = { "idempotency-key": randomUUID() }
    const cancel = admin(`/videos/${id}/cancel`, { method: "POST", headers })
    const cancelled = read(yield* cancel)
    assert.deepInclude(cancelled, { id, status: "failed", step: "over" })
    assert.strictEqual(yield* held, 0)
    const repeated = yield* cancel
    assert.strictEqual(repeated.headers.get("idempotency-replayed"), "true")
    assert.deepStrictEqual(read(repeated), cancelled)
    assertRefused(
      yield* admin(`/videos/${id}/cancel`, { method: "POST" }),
      refusals.conflict(`The video ${id} has already failed. It cannot be changed.`)
    )
    assertRefused(
      yield* admin(`/videos/${id}/retry`, { method: "POST" }),
      refusals.conflict(`The video ${id} has already failed. It cannot be changed.`)
    )
    const [row, ...others] = yield* (yield* Audit).list(OrganizationScope.all, { org, limit: 10 })
    assert.isEmpty(others)
    assert.deepInclude(row, { action: "videos.cancel", target: id, org })
    const { org_name, url, ...record } = cancelled
    assert.isString(org_name)
    assert.isNull(url)
    assert.deepStrictEqual(row?.after, record)
    assert.notInclude(JSON.stringify(row), "secret")
  })

  it.effect("a retried one is due at once", function* () {
    const { admin, org, sql, wait } = yield* prepared
    const id = yield* wait(1)
    yield* sql`UPDATE videos SET next_at = now() + interval '1 hour' WHERE id = ${id}`
    const retried = read(yield* admin(`/videos/${id}/retry`, { method: "POST" }))
    assert.isAtMost(retried.next_at, Date.now() / 1000 + 60)
    const [row] = yield* (yield* Audit).list(OrganizationScope.all, { org, limit: 1 })
    assert.deepInclude(row, { action: "videos.retry", target: id })
  })

  it.effect("what is wrong is named", function* () {
    const { admin } = yield* asOperator("write")
    const none = refusals.notFound("There is no video vid_none.")
    assertRefused(yield* admin("/videos/vid_none"), none)
    for (const action of ["cancel", "retry"]) {
      assertRefused(yield* admin(`/videos/vid_none/${action}`, { method: "POST" }), none)
    }
    for (const [name, value] of [
      ["status", "lost"],
      ["after", "x"],
      ["organization", "none"],
      ["until", "soon"]
    ]) {
      const { status, text } = yield* admin(`/videos?${name}=${value}`)
      assert.strictEqual(status, 400)
      assert.include(text, `"param":"${name}"`)
    }
    for (const text of hostileTexts) {
      assert.include([400, 404], (yield* admin(`/videos/${inAddress(text)}`)).status)
      assert.include([200, 400], (yield* admin(`/videos?model=${inAddress(text)}`)).status)
    }
  })

  it.effect("a reader sees them and changes none", function* () {
    const { wait } = yield* prepared
    const id = yield* wait(1)
    const { admin } = yield* asOperator("read")
    read(yield* admin(`/videos/${id}`))
    for (const action of ["cancel", "retry"]) {
      assertRefused(yield* admin(`/videos/${id}/${action}`, { method: "POST" }), refusals.needs("write"))
    }
  })
})
