import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { OrgId } from "../../../src/domain/Organization.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Audit } from "../../../src/services/admin/AuditLog.ts"
import { writeNotice } from "../../../src/services/webhooks/WebhookEvents.ts"
import { hostileTexts, inAddress, read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"

interface Listed {
  readonly id: string
  readonly url: string
  readonly state: string
}

/** An operator with an organization. */
const prepared = Effect.gen(function* () {
  const operator = yield* asOperator("write")
  const { admin } = operator
  const name = `hooked ${randomUUID()}`
  const { id } = read(yield* admin("/organizations", { body: { name } }), 201)
  const org = OrgId.make(id)
  const sql = yield* SqlClient.SqlClient
  return {
    ...operator,
    org,
    orgName: name,
    add: (url: string, headers = {}) => admin("/webhooks", { body: { organization: name, url }, headers }),
    notify: writeNotice(sql, { org, type: "video.completed", url: undefined, data: {} }),
    ids: (query: string) => Effect.map(admin(query), (answer) => read(answer).data.map(({ id }: Listed) => id))
  }
})

const hook = (path: string) => `https://hooks.example/${path}`

withLayer(layer)("webhooks at the admin API", (it) => {
  it.effect("an endpoint is added with its secret once, listed, enabled and removed", function* () {
    const { add, admin, org, orgName } = yield* prepared
    const { secret, ...endpoint } = read(yield* add(hook("a")), 201)
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    const expected = { org, org_name: orgName, url: hook("a"), disabled_at: null, pending: 0, failure: null }
    assert.deepInclude(endpoint, expected)
    const listed = read(yield* admin(`/webhooks?organization=${org}`))
    assert.deepStrictEqual(listed, { data: [endpoint], has_more: false, next: null })
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE webhook_endpoints SET disabled_at = now() WHERE id = ${endpoint.id}`
    assert.deepStrictEqual(read(yield* admin(`/webhooks/${endpoint.id}/enable`, { method: "POST" })), endpoint)
    const headers = { "idempotency-key": randomUUID() }
    const remove = admin(`/webhooks/${endpoint.id}`, { method: "DELETE", headers })
    assert.deepStrictEqual(read(yield* remove), endpoint)
    const repeated = yield* remove
    assert.strictEqual(repeated.headers.get("idempotency-replayed"), "true")
    assert.deepStrictEqual(read(repeated), endpoint)
    assert.isEmpty(read(yield* admin(`/webhooks?organization=${org}`)).data)

    const rows = yield* (yield* Audit).list(OrganizationScope.all, { org, action: "webhooks", limit: 10 })
    assert.deepStrictEqual(
      rows.map(({ action, target }) => [action, target]),
      ["remove", "enable", "add"].map((action) => [`webhooks.${action}`, endpoint.id])
    )
    const { org_name, ...record } = endpoint
    assert.strictEqual(org_name, orgName)
    assert.deepStrictEqual([rows[0]?.before, rows[2]?.before, rows[2]?.after], [record, null, record])
  })

  it.effect("a secret is neither in the audit nor in a repeated answer", function* () {
    const { admin, org, orgName } = yield* prepared
    const body = { organization: orgName, url: hook("once") }
    const add = admin("/webhooks", { body, headers: { "idempotency-key": randomUUID() } })
    const first = read(yield* add, 201)
    const org_name = `${orgName} once more`
    read(yield* admin(`/organizations/${org}`, { method: "PATCH", body: { name: org_name } }))
    const repeated = yield* add
    assert.strictEqual(repeated.headers.get("idempotency-replayed"), "true")
    assert.deepStrictEqual(read(repeated, 201), { ...first, org_name, secret: null })
    const sql = yield* SqlClient.SqlClient
    const kept = JSON.stringify(yield* sql`SELECT audit::text FROM audit WHERE org_id = ${org}`)
    assert.include(kept, first.id)
    assert.notInclude(kept, first.secret)
  })

  it.effect("endpoints come page by page, newest first", function* () {
    const { add, admin, ids, org } = yield* prepared
    const made: Array<string> = []
    for (const path of ["1", "2", "3"]) made.unshift(read(yield* add(hook(path)), 201).id)
    const list = `/webhooks?organization=${org}&limit=2`
    const { data, has_more, next } = read(yield* admin(list))
    assert.isTrue(has_more)
    const rest = yield* ids(`${list}&after=${next}`)
    assert.deepStrictEqual([...data.map(({ id }: Listed) => id), ...rest], made)
  })

  it.effect("deliveries are found by state and endpoint, page by page, and replayed", function* () {
    const { add, admin, ids, notify, org, orgName } = yield* prepared
    const [first, second] = [read(yield* add(hook("1")), 201), read(yield* add(hook("2")), 201)]
    yield* notify
    yield* notify
    const list = `/webhooks/deliveries?organization=${org}`
    const { data } = read(yield* admin(list))
    assert.lengthOf(data, 4)
    assert.deepInclude(data[0], { org, org_name: orgName, type: "video.completed", state: "pending", tries: 0 })
    const pages: Array<Listed> = []
    let after = ""
    for (let turn = 0; turn < 2; turn++) {
      const page = read(yield* admin(`${list}&limit=2${after}`))
      assert.strictEqual(page.has_more, turn === 0)
      pages.push(...page.data)
      after = `&after=${page.next}`
    }
    assert.deepStrictEqual(pages, data)
    assert.lengthOf(yield* ids(`${list}&endpoint=${second.id}`), 2)
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE webhook_deliveries SET state = 'failed', next_at = NULL WHERE endpoint_id = ${first.id}`
    yield* sql`UPDATE webhook_deliveries SET state = 'delivered', next_at = NULL WHERE endpoint_id = ${second.id}`
    assert.lengthOf(yield* ids(`${list}&state=failed`), 2)
    assert.lengthOf(yield* ids(`${list}&state=delivered&endpoint=${second.id}`), 2)
    assert.isEmpty(yield* ids(`${list}&state=pending`))

    const [event] = yield* ids(`${list}&state=failed&limit=1`)
    const replayed = read(yield* admin(`/webhooks/deliveries/${event}/replay`, { method: "POST" }))
    assert.deepStrictEqual(
      replayed.data.map(({ id, state }: Listed) => [id, state]),
      [
        [event, "pending"],
        [event, "pending"]
      ]
    )
    const [row] = yield* (yield* Audit).list(OrganizationScope.all, { target: event, limit: 1 })
    assert.deepInclude(row, { action: "webhooks.replay", target: event, org })
  })

  it.effect("an endpoint is tested, and a member does not see what its server answered", function* () {
    const { add, admin, org } = yield* prepared
    const { id } = read(yield* add(hook("tried")), 201)
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE webhook_endpoints SET url = 'http://10.0.0.1/' WHERE id = ${id}`
    const test = { method: "POST" }
    const tried = read(yield* admin(`/webhooks/${id}/test`, test))
    assert.deepInclude(tried, { id, url: "http://10.0.0.1/", delivered: false, status: null, answer: "" })
    assert.include(tried.failure, "10.0.0.1")
    const member = yield* asOperator("write", org)
    const seen = read(yield* member.admin(`/webhooks/${id}/test`, test))
    assert.deepInclude(seen, { id, delivered: false })
    assert.notProperty(seen, "answer")
    const reader = yield* asOperator("read", org)
    assertRefused(yield* reader.admin(`/webhooks/${id}/test`, test), refusals.needs("write"))
    const none = refusals.notFound("There is no webhook endpoint whe_none.")
    assertRefused(yield* admin("/webhooks/whe_none/test", test), none)
  })

  it.effect("an organization has twenty endpoints at most", function* () {
    const { add } = yield* prepared
    for (let count = 0; count < 20; count++) read(yield* add(hook(`${count}`)), 201)
    const message = "An organization may have 20 webhook endpoints. Remove one first."
    assertRefused(yield* add(hook("one too many")), badRequest(message))
  })

  it.effect("what is wrong is named", function* () {
    const { add, admin, orgName } = yield* prepared
    const inside = yield* add("http://127.0.0.1:9000/")
    assert.strictEqual(inside.status, 400)
    assert.include(inside.text, "The URL is refused: 127.0.0.1:9000: 127.0.0.1 is loopback")
    assert.include(inside.text, '"param":"url"')
    assertRefused(
      yield* admin("/webhooks", { body: { organization: "none", url: hook("a") } }),
      badRequest("There is no organization none.", "organization")
    )
    assertRefused(
      yield* admin("/webhooks", { body: { organization: orgName } }),
      badRequest("`url` must be a string.", "url")
    )
    assert.include((yield* admin("/webhooks/deliveries?state=lost")).text, '"param":"state"')
    assert.include((yield* admin("/webhooks/deliveries?after=x")).text, '"param":"after"')
    const none = refusals.notFound("There is no webhook endpoint whe_none.")
    assertRefused(yield* admin("/webhooks/whe_none", { method: "DELETE" }), none)
    assertRefused(yield* admin("/webhooks/whe_none/enable", { method: "POST" }), none)
    const replay = yield* admin("/webhooks/deliveries/evt_none/replay", { method: "POST" })
    assert.strictEqual(replay.status, 404)
    for (const text of hostileTexts) {
      const urls = [yield* add(text), yield* add(hook(text))]
      const bodies = [...urls, yield* admin("/webhooks", { body: { organization: text, url: hook("a") } })]
      for (const { status, text: answer } of bodies) assert.include([201, 400], status, answer)
      const path = inAddress(text)
      const lists = [`/webhooks?after=${path}`, `/webhooks/deliveries?endpoint=${path}`]
      for (const list of lists) assert.include([200, 400], (yield* admin(list)).status)
      assert.include([400, 404], (yield* admin(`/webhooks/${path}`, { method: "DELETE" })).status)
    }
  })

  it.effect("a reader sees them and changes none", function* () {
    const { admin } = yield* asOperator("read")
    read(yield* admin("/webhooks"))
    read(yield* admin("/webhooks/deliveries"))
    assertRefused(yield* admin("/webhooks/whe_a", { method: "DELETE" }), refusals.needs("write"))
    assertRefused(yield* admin("/webhooks", { body: {} }), refusals.needs("write"))
  })
})
