import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Struct } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Audit } from "../../../src/services/admin/AuditLog.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { hostileTexts, read, refusals } from "../../harness/client/AdminClient.ts"
import { type Answer, assertRefused, badRequest, callAt, soon } from "../../harness/client/HttpCalls.ts"
import { times } from "../../harness/database/Money.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer, MediaServer } from "../MediaServer.ts"

const customer = Effect.gen(function* () {
  const { create } = yield* Organizations
  return yield* create({ name: `customer ${randomUUID()}` })
})

const models = (secret: string) =>
  Effect.flatMap(MediaServer, ({ url }) =>
    Effect.map(callAt(`${url}/v1/models`, { headers: { authorization: `Bearer ${secret}` } }), ({ status }) => status)
  )

/** When it was last used is written a while after its use. */
const unused = (record: unknown) => Struct.omit(Object(record), "last_used_at")

/** Refused until the first of a minute's changes is a minute old. */
const assertLimited = (answer: Answer) => {
  const wait = answer.headers.get("retry-after")
  assertRefused(answer, refusals.changesLimited(wait))
  assert.isTrue(Number(wait) >= 1 && Number(wait) <= 60, `${wait}`)
}

withLayer(layer)("keys at the admin API", (it) => {
  it.effect("one is issued, changed, reissued and revoked; its secret is in the answer alone", function* () {
    const { admin, name: actor } = yield* asOperator("write")
    const { id: org, name: org_name } = yield* customer
    const { key, ...made } = read(yield* admin("/keys", { body: { organization: org_name, name: "ci" } }), 201)
    assert.match(key, /^ggw_[\w-]{43}$/)
    const counts = { rpm: null, tpm: null, concurrency: null }
    const limits = { name: "ci", scopes: null, ...counts, cap_usd: null, cap_period: null, expires_at: null }
    assert.deepInclude(made, { org, org_name, hint: key.slice(4, 12), spent_usd: 0, revoked_at: null, ...limits })
    assert.strictEqual(yield* models(key), 200)

    const changedCounts = { rpm: 5, tpm: 90_000, concurrency: 1_000_000_000 }
    const change = {
      name: "cd",
      scopes: ["chat"],
      ...changedCounts,
      cap_usd: 1.5,
      cap_period: "day",
      expires_at: 4_000_000_000
    }
    const changed = read(yield* admin(`/keys/${made.id}`, { method: "PATCH", body: change }))
    assert.deepStrictEqual(unused(changed), unused({ ...made, ...change }))
    assert.deepStrictEqual(unused(read(yield* admin(`/keys/${made.id}`))), unused(changed))
    const freed = read(yield* admin(`/keys/${made.id}`, { method: "PATCH", body: { ...limits, name: "cd" } }))
    assert.deepStrictEqual(unused(freed), unused({ ...made, name: "cd" }))

    const { key: second, ...reissued } = read(yield* admin(`/keys/${made.id}/reissue`, { method: "POST" }))
    assert.deepStrictEqual(unused(reissued), unused({ ...freed, hint: second.slice(4, 12) }))
    assert.isNumber(read(yield* admin(`/keys/${made.id}/revoke`, { method: "POST" })).revoked_at)
    const gone = yield* admin(`/keys/${made.id}`, { method: "PATCH", body: { rpm: 1 } })
    assertRefused(gone, refusals.conflict(`The key ${made.id} is revoked.`))

    const rows = yield* (yield* Audit).list(OrganizationScope.all, { org, limit: 10 })
    assert.deepStrictEqual(
      rows.map(({ action, actor, target, via }) => ({ action, actor, target, via })),
      ["revoke", "reissue", "update", "update", "create"].map((action) => ({
        action: `keys.${action}`,
        actor,
        target: made.id,
        via: "api"
      }))
    )
    assert.deepStrictEqual([rows[3]?.before, rows[3]?.after].map(unused), [made, changed].map(unused))
    for (const secret of [key, second]) assert.notInclude(JSON.stringify(rows), secret.slice(4 + 8))
  })

  it.effect("a reissue leaves the old secret valid for a grace, which a second one or a revocation ends", function* () {
    const { admin } = yield* asOperator("write")
    const { id: org } = yield* customer
    const { id, key } = read(yield* admin("/keys", { body: { organization: org } }), 201)
    const stranger = read(yield* admin("/keys", { body: { organization: (yield* customer).id } }), 201)
    const reissue = (body?: unknown, headers = {}) =>
      admin(`/keys/${id}/reissue`, { method: "POST", headers, ...(body !== undefined && { body }) })
    const ends = (secret: string) => soon(Effect.map(models(secret), (status) => assert.strictEqual(status, 401)))

    const problem = "`grace_seconds` must be an integer from 1 to 2592000 seconds, or null for no grace."
    for (const grace_seconds of [31 * 86_400, 2_592_001, -1, 0, 0.5, "3600", [60], {}]) {
      assertRefused(yield* reissue({ grace_seconds }), badRequest(problem, "grace_seconds"))
    }
    for (const body of ["[", '"x"', "5"]) assert.strictEqual((yield* reissue(body)).status, 400, body)
    assert.strictEqual(yield* models(key), 200)
    assert.isNull(read(yield* admin(`/keys/${id}`)).previous_expires_at)

    const second = read(yield* reissue({ grace_seconds: 30 * 86_400 }))
    assert.closeTo(second.previous_expires_at, Date.now() / 1000 + 30 * 86_400, 60)
    for (const secret of [key, second.key]) assert.strictEqual(yield* models(secret), 200)
    const listed = read(yield* admin(`/keys?organization=${org}&search=${key.slice(0, 12)}`)).data
    assert.deepStrictEqual(listed.map(unused), [unused(read(yield* admin(`/keys/${id}`)))])
    const [row] = yield* (yield* Audit).list(OrganizationScope.all, { target: id, limit: 1 })
    const { key: _, ...after } = second
    assert.deepStrictEqual(row?.after, after)

    const third = read(yield* reissue({ grace_seconds: 60 }))
    yield* ends(key)
    for (const secret of [second.key, third.key]) assert.strictEqual(yield* models(secret), 200)
    for (const body of [undefined, { grace_seconds: null }, {}]) {
      const before = read(yield* reissue({ grace_seconds: 60 })).key
      const { key, previous_expires_at } = read(yield* reissue(body))
      assert.isNull(previous_expires_at)
      yield* ends(before)
      assert.strictEqual(yield* models(key), 200)
    }
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/octet-stream"]) {
      assert.isNull(read(yield* reissue(undefined, { "content-type": type })).previous_expires_at, type)
    }
    const before = read(yield* reissue()).key
    const last = read(yield* reissue({ grace_seconds: 60 })).key
    assert.isNull(read(yield* admin(`/keys/${id}/revoke`, { method: "POST" })).previous_expires_at)
    for (const secret of [before, last]) yield* ends(secret)
    assert.strictEqual(yield* models(stranger.key), 200)
  })

  it.effect("a pattern that matches no model of the catalog is kept, with a warning", function* () {
    const { admin } = yield* asOperator("write")
    const { id: organization } = yield* customer
    const made = read(yield* admin("/keys", { body: { organization, models: ["dra*", "dear", "drwa*", "x"] } }), 201)
    const warnings = ["No model of the catalog matches drwa*, x."]
    assert.deepStrictEqual([made.models, made.warnings], [["dra*", "dear", "drwa*", "x"], warnings])
    const member = yield* asOperator("write", organization)
    const ofMember = read(yield* member.admin("/keys", { body: { organization, models: ["draw", "dear", "x"] } }), 201)
    assert.deepStrictEqual(ofMember.warnings, ["No model of the catalog matches dear, x."])
    assert.notProperty(read(yield* admin(`/keys/${made.id}`)), "warnings")
    const change = (body: object) => admin(`/keys/${made.id}`, { method: "PATCH", body })
    assert.notProperty(read(yield* change({ rpm: 5 })), "warnings")
    assert.notProperty(read(yield* change({ models: ["draw"] })), "warnings")
    assert.deepStrictEqual(read(yield* change({ models: ["Draw"] })).warnings, [
      "No model of the catalog matches Draw."
    ])
    assert.notProperty(read(yield* change({ models: null })), "warnings")
  })

  it.effect("an organization may have 1,000 active keys, whoever issues them", function* () {
    const sql = yield* SqlClient.SqlClient
    const { admin } = yield* asOperator("write")
    const { id: organization } = yield* customer
    const issue = (body: object = {}) => admin("/keys", { body: { organization, ...body } })
    yield* sql`
      INSERT INTO api_keys (id, org_id, hash, expires_at, revoked_at)
      SELECT ${organization} || '-' || state || i, ${organization}, decode(md5(${organization} || state || i), 'hex'),
        CASE state WHEN 'expired' THEN now() END, CASE state WHEN 'revoked' THEN now() END
      FROM (VALUES ('live', 995), ('expired', 50), ('revoked', 50)) AS of (state, many), generate_series(1, many) AS i`
    const issued = yield* Effect.replicateEffect(issue(), 10, { concurrency: "unbounded" })
    const [made] = issued.filter(({ status }) => status === 201)
    assert.lengthOf(
      issued.filter(({ status }) => status === 201),
      5
    )
    const message = "An organization may have 1000 keys: revoke one of them first."
    for (const answer of issued) if (answer.status !== 201) assertRefused(answer, badRequest(message))
    assertRefused(
      yield* (yield* asOperator("write", organization)).admin("/keys", { body: { organization } }),
      badRequest(message)
    )
    read(yield* admin(`/keys/${read(made ?? assert.fail(), 201).id}/revoke`, { method: "POST" }))
    read(yield* issue({ expires_at: 4_000_000_000 }), 201)
    assertRefused(yield* issue(), badRequest(message))
    const revive = (id: string, body: object) => admin(`/keys/${organization}-${id}`, { method: "PATCH", body })
    for (const expires_at of [null, 4_000_000_000]) {
      assertRefused(yield* revive("expired1", { expires_at }), badRequest(message))
    }
    read(yield* revive("expired1", { name: "of before" }))
    read(yield* revive("live1", { expires_at: null }))
    read(yield* admin(`/keys/${organization}-live1/revoke`, { method: "POST" }))
    const revived = yield* Effect.forEach(times(5), (nth) => revive(`expired${nth + 1}`, { expires_at: null }), {
      concurrency: "unbounded"
    })
    assert.lengthOf(
      revived.filter(({ status }) => status === 200),
      1
    )
    // Another organization has its own.
    read(yield* admin("/keys", { body: { organization: (yield* customer).id } }), 201)
  })

  it.effect("all members of an organization together may make 60 changes a minute", function* () {
    const sql = yield* SqlClient.SqlClient
    const { admin } = yield* asOperator("write")
    const { id: organization } = yield* customer
    const [first, second] = [yield* asOperator("write", organization), yield* asOperator("write", organization)]
    const headers = { "idempotency-key": randomUUID() }
    const kept = read(yield* first.admin("/keys", { body: { organization }, headers }), 201)
    const issue = (index: number) =>
      (index % 2 === 0 ? first : second).admin("/keys", { body: { organization, name: `${index}` } })
    const issued = yield* Effect.forEach(times(90), issue, { concurrency: "unbounded" })
    assert.lengthOf(
      issued.filter(({ status }) => status === 201),
      59
    )
    for (const answer of issued.filter(({ status }) => status !== 201)) {
      assertLimited(answer)
    }
    const rows = yield* sql`SELECT id FROM api_keys WHERE org_id = ${organization}`
    assert.lengthOf(rows, 60)
    // Changes of every kind count; repeated ones, and those of others, do not.
    const revoke = () => first.admin(`/keys/${kept.id}/revoke`, { method: "POST" })
    assertLimited(yield* revoke())
    const url = "https://hooks.example/"
    assertLimited(yield* first.admin("/webhooks", { body: { organization, url } }))
    assert.isNull(read(yield* first.admin("/keys", { body: { organization }, headers }), 201).key)
    read(yield* first.admin("/keys"))
    read(yield* admin("/keys", { body: { organization } }), 201)
    const { id: another } = yield* customer
    read(yield* (yield* asOperator("write", another)).admin("/keys", { body: { organization: another } }), 201)
    yield* sql`UPDATE audit SET at = at - interval '1 minute' WHERE org_id = ${organization}`
    read(yield* revoke())
  })

  it.effect("a repeated change shows no secret and makes no second key", function* () {
    const { admin } = yield* asOperator("write")
    const { id: org } = yield* customer
    const headers = { "idempotency-key": randomUUID() }
    const issue = () =>
      admin("/keys", { body: { organization: org, cap_usd: "0.000000001", cap_period: "total" }, headers })
    const first = read(yield* issue(), 201)
    const again = yield* issue()
    assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
    assert.deepStrictEqual(read(again, 201), { ...first, key: null })
    assert.lengthOf(read(yield* admin(`/keys?organization=${org}`)).data, 1)
    const reissue = () =>
      admin(`/keys/${first.id}/reissue`, { method: "POST", headers: { "idempotency-key": "once-more" } })
    assert.isString(read(yield* reissue()).key)
    assert.isNull(read(yield* reissue()).key)
    const revoke = () => admin(`/keys/${first.id}/revoke`, { method: "POST", headers: { "idempotency-key": "gone" } })
    assert.strictEqual((yield* revoke()).text, (yield* revoke()).text)
  })

  it.effect("a list comes page by page, newest first, by organization, state and search", function* () {
    const { admin } = yield* asOperator("write")
    const { id: org, name } = yield* customer
    const ids: Array<string> = []
    for (const number of [1, 2, 3]) {
      ids.unshift(read(yield* admin("/keys", { body: { organization: org, name: `100%_${number}` } }), 201).id)
    }
    const listed = (query: string) =>
      Effect.map(admin(`/keys?organization=${encodeURIComponent(name)}&${query}`), (answer) => read(answer))
    const first = yield* listed("limit=2")
    const rest = yield* listed(`limit=2&after=${first.next}`)
    assert.deepStrictEqual([...first.data, ...rest.data].map(Struct.get("id")), ids)
    assert.deepStrictEqual([first.has_more, rest.has_more, rest.next], [true, false, null])
    read(yield* admin(`/keys/${ids[0]}/revoke`, { method: "POST" }))
    const shown = (query: string) => Effect.map(listed(query), ({ data }) => data.map(({ id }: { id: string }) => id))
    assert.deepStrictEqual(yield* shown("state=revoked"), ids.slice(0, 1))
    assert.deepStrictEqual(yield* shown("state=live"), ids.slice(1))
    assert.deepStrictEqual(yield* shown(`search=${encodeURIComponent("%_2")}`), [ids[1]])
    assert.deepStrictEqual(yield* shown(`search=${first.data[0].hint}`), ids.slice(0, 1))
    assert.deepStrictEqual(yield* shown(`search=${ids[2]}`), ids.slice(2))
  })

  it.effect("what is wrong is named", function* () {
    const { admin } = yield* asOperator("write")
    const { id: org } = yield* customer
    const issue = (limits: object) => admin("/keys", { body: { organization: org, ...limits } })
    const { id } = read(yield* issue({}), 201)
    const period = "`cap_usd` needs `cap_period`: day, week, month or total."
    const wrong = [
      [{ organization: undefined }, "`organization` must be an id or a name.", "organization"],
      [{ organization: "nobody" }, "There is no organization nobody.", "organization"],
      [{ organization: "a\0" }, "`organization` must be an id or a name.", "organization"],
      [{ scopes: ["audio"] }, "`scopes` must be a list of chat, images and videos, or null for all.", "scopes"],
      [{ scopes: [] }, "`scopes` must be a list of chat, images and videos, or null for all.", "scopes"],
      [{ rpm: 0 }, "`rpm` must be an integer of at least 1, or null for the gateway's default.", "rpm"],
      [{ rpm: 1.5 }, "`rpm` must be an integer of at least 1, or null for the gateway's default.", "rpm"],
      ...["tpm", "concurrency"].flatMap((name) =>
        [0, -1, 1.5, 1_000_000_001, "5"].map(
          (value) =>
            [
              { [name]: value },
              `\`${name}\` must be an integer from 1 to 1000000000, or null for no limit.`,
              name
            ] as const
        )
      ),
      [{ cap_usd: 1 }, period, "cap_period"],
      [{ cap_period: "day" }, "`cap_period` needs `cap_usd`.", "cap_usd"],
      [{ cap_usd: null, cap_period: "day" }, "`cap_period` needs a spending cap.", "cap_period"],
      [{ expires_at: 1 }, "`expires_at` must be in the future.", "expires_at"],
      [{ expires_at: 1e300 }, "`expires_at` must be Unix seconds, or null for never.", "expires_at"],
      [{ expires_at: "soon" }, "`expires_at` must be Unix seconds, or null for never.", "expires_at"]
    ] as const
    for (const [limits, message, param] of wrong) assertRefused(yield* issue(limits), badRequest(message, param))
    const change = yield* admin(`/keys/${id}`, { method: "PATCH", body: { cap_usd: 1 } })
    assertRefused(change, badRequest(period, "cap_period"))
    yield* admin(`/keys/${id}`, { method: "PATCH", body: { cap_usd: 1, cap_period: "day" } })
    const without = yield* admin(`/keys/${id}`, { method: "PATCH", body: { cap_period: null } })
    assertRefused(without, badRequest(period, "cap_period"))
    for (const path of ["/keys/key_none", "/keys/%F0%9F%98%80"]) {
      assert.strictEqual((yield* admin(path)).status, 404)
      assert.strictEqual((yield* admin(path, { method: "PATCH", body: {} })).status, 404)
      assert.strictEqual((yield* admin(`${path}/revoke`, { method: "POST" })).status, 404)
    }
    assertRefused(
      yield* admin("/keys/key_none/reissue", { method: "POST" }),
      refusals.notFound("There is no key with the id key_none.")
    )
    assertRefused(
      yield* admin("/keys?organization=nobody"),
      badRequest("There is no organization nobody.", "organization")
    )
  })

  it.effect("a name is kept as it is or refused", function* () {
    const { admin } = yield* asOperator("write")
    const { id: org } = yield* customer
    for (const name of hostileTexts) {
      const answer = yield* admin("/keys", { body: { organization: org, name } })
      if (answer.status === 400) assert.include(answer.text, "`name` must be a string")
      else assert.strictEqual(read(answer, 201).name, name)
      for (const field of ["organization", "search", "after"]) {
        const found = yield* admin(`/keys?${field}=${encodeURIComponent(name.replace(/\p{Cs}/gu, "").slice(0, 5_000))}`)
        assert.oneOf(found.status, [200, 400], field)
      }
    }
  })

  it.effect("a reader sees keys and changes none", function* () {
    const { admin } = yield* asOperator("read")
    const writer = yield* asOperator("write")
    const { id: org } = yield* customer
    const { id } = read(yield* writer.admin("/keys", { body: { organization: org } }), 201)
    assert.strictEqual(read(yield* admin(`/keys/${id}`)).id, id)
    assertRefused(yield* admin("/keys", { body: { organization: org } }), refusals.needs("write"))
    assertRefused(yield* admin(`/keys/${id}`, { method: "PATCH", body: {} }), refusals.needs("write"))
    for (const verb of ["revoke", "reissue"]) {
      assertRefused(yield* admin(`/keys/${id}/${verb}`, { method: "POST" }), refusals.needs("write"))
    }
  })
})
