import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Struct } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Audit } from "../../../src/services/admin/AuditLog.ts"
import { Operators } from "../../../src/services/admin/Operators.ts"
import { adminAt, hire, hostileTexts, inAddress, read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest, callAt } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer, MediaServer } from "../MediaServer.ts"

const revokeAll = Effect.gen(function* () {
  const { list, revoke } = yield* Operators
  for (const { id } of yield* list(OrganizationScope.all)) yield* revoke(OrganizationScope.all, id)
})

const linkStart = "http://gateway.test/console#link="

withLayer(layer)("operators, managed at the admin API", (it) => {
  it.effect("one gets a token and a link once, and both work", function* () {
    const { url } = yield* MediaServer
    const { admin } = yield* asOperator("owner")
    const name = `ada ${randomUUID()}`
    const { link, token, ...record } = read(yield* admin("/operators", { body: { name, role: "read" } }), 201)
    assert.deepInclude(record, { name, role: "read", used_at: null, revoked_at: null })
    read(yield* adminAt(url, token)("/organizations"))
    assert.isTrue(link.startsWith(linkStart))
    const signIn = (link: string) =>
      callAt(`${url}/admin/v1/session`, {
        body: JSON.stringify({ link: link.slice(linkStart.length) }),
        headers: { "content-type": "application/json" }
      })
    assert.strictEqual(read(yield* signIn(link)).operator.id, record.id)
    const another = read(yield* admin(`/operators/${record.id}/link`, { method: "POST" }), 201)
    assert.strictEqual(another.id, record.id)
    assert.strictEqual(read(yield* signIn(another.link)).operator.id, record.id)
    assert.strictEqual((yield* signIn(another.link)).status, 401)

    const { data, has_more } = read(yield* admin("/operators"))
    assert.isFalse(has_more)
    assert.deepInclude(
      data.map(({ id }: { id: string }) => id),
      record.id
    )
    const revoked = read(yield* admin(`/operators/${record.id}`, { method: "DELETE" }))
    assert.isNumber(revoked.revoked_at)
    assert.strictEqual((yield* adminAt(url, token)("/organizations")).status, 401)
  })

  it.effect("a secret is neither in the audit nor in a repeated answer", function* () {
    const { admin, name: actor } = yield* asOperator("owner")
    const headers = { "idempotency-key": randomUUID() }
    const body = { name: `grace ${randomUUID()}`, role: "write" }
    const first = read(yield* admin("/operators", { body, headers }), 201)
    const repeated = yield* admin("/operators", { body, headers })
    assert.strictEqual(repeated.headers.get("idempotency-replayed"), "true")
    assert.deepStrictEqual(read(repeated, 201), { ...first, token: null, link: null })
    const linkKey = { "idempotency-key": randomUUID() }
    const { link } = read(yield* admin(`/operators/${first.id}/link`, { method: "POST", headers: linkKey }), 201)
    const again = read(yield* admin(`/operators/${first.id}/link`, { method: "POST", headers: linkKey }), 201)
    assert.isNull(again.link)
    const rows = yield* (yield* Audit).list(OrganizationScope.all, { actor, limit: 10 })
    assert.deepStrictEqual(rows.map(Struct.get("action")), ["operators.link", "operators.create"])
    const sql = yield* SqlClient.SqlClient
    const kept = JSON.stringify(yield* sql`SELECT audit::text FROM audit`)
    const secrets = [first.token, first.link.slice(linkStart.length), link.slice(linkStart.length)]
    for (const secret of secrets) assert.isFalse(kept.includes(secret))
  })

  it.effect("a repeated revocation by name has its first result", function* () {
    const { admin } = yield* asOperator("owner")
    const { id, name } = yield* hire("read")
    const revoke = admin(`/operators/${name}`, { method: "DELETE", headers: { "idempotency-key": randomUUID() } })
    const revoked = read(yield* revoke)
    assert.deepInclude(revoked, { id, name })
    assert.deepStrictEqual(read(yield* revoke), revoked)
    const [row] = yield* (yield* Audit).list(OrganizationScope.all, { target: id, limit: 10 })
    assert.deepStrictEqual([row?.before, row?.after], [{ ...revoked, revoked_at: null }, revoked])
  })

  it.effect("nobody but an owner sees or changes operators", function* () {
    const { id } = yield* hire("read")
    for (const role of ["read", "write"] as const) {
      const { admin } = yield* asOperator(role)
      assertRefused(yield* admin("/operators"), refusals.needs("owner"))
      assertRefused(yield* admin("/operators", { body: { name: "x", role } }), refusals.needs("owner"))
      assertRefused(yield* admin(`/operators/${id}/link`, { method: "POST" }), refusals.needs("owner"))
      assertRefused(yield* admin(`/operators/${id}`, { method: "DELETE" }), refusals.needs("owner"))
      const change = { method: "PATCH", body: { role: "read" } }
      assertRefused(yield* admin(`/operators/${id}`, change), refusals.needs("owner"))
    }
  })

  it.effect("no owner revokes themselves, and not the last one", function* () {
    yield* revokeAll
    const first = yield* asOperator("owner")
    const revoke = (who: typeof first, id: string) => who.admin(`/operators/${id}`, { method: "DELETE" })
    const last = `${first.name} is the last owner. To revoke it, run gateway operators revoke on the gateway's machine.`
    assertRefused(yield* revoke(first, first.id), refusals.conflict(last))
    const second = yield* asOperator("owner")
    assertRefused(yield* revoke(first, first.name), refusals.conflict("You cannot revoke yourself. Ask another owner."))
    const answers = yield* Effect.all([revoke(first, second.id), revoke(second, first.id)], {
      concurrency: "unbounded"
    })
    const [status, refused] = answers.map((answer) => answer.status).toSorted((a, b) => a - b)
    assert.strictEqual(status, 200)
    assert.include([401, 409], refused)
    const owners = (yield* (yield* Operators).list(OrganizationScope.all)).filter(
      ({ revoked_at }) => revoked_at === null
    )
    assert.lengthOf(owners, 1)
  })

  it.effect(
    "a changed role is in the audit log, and counts for the next request of a token or a session",
    function* () {
      const { url } = yield* MediaServer
      const { admin, name: actor } = yield* asOperator("owner")
      const { id, name, token } = yield* hire("read")
      const credential = { body: JSON.stringify({ token }), headers: { "content-type": "application/json" } }
      const signedIn = yield* callAt(`${url}/admin/v1/session`, credential)
      const cookie = signedIn.headers.get("set-cookie")?.split(";")[0] ?? ""
      const own = adminAt(url, token)
      const bySession = (method: string) =>
        callAt(`${url}/admin/v1/operators`, { method, headers: { cookie, origin: url } })
      const headers = { "idempotency-key": randomUUID() }
      const changeTo = (role: string) => admin(`/operators/${name}`, { method: "PATCH", body: { role }, headers })
      for (const answer of [yield* own("/operators"), yield* bySession("GET")]) {
        assertRefused(answer, refusals.needs("owner"))
      }
      const changed = read(yield* changeTo("owner"))
      assert.deepInclude(changed, { id, name, role: "owner", org: null, revoked_at: null })
      for (const answer of [yield* own("/operators"), yield* bySession("GET")]) read(answer)
      assert.deepStrictEqual(read(yield* changeTo("owner")), changed)
      assertRefused(yield* changeTo("write"), badRequest("The `Idempotency-Key` was used for another change.", null))
      read(yield* admin(`/operators/${id}`, { method: "PATCH", body: { role: "read" } }))
      for (const answer of [yield* own("/operators"), yield* bySession("GET")]) {
        assertRefused(answer, refusals.needs("owner"))
      }
      const rows = yield* (yield* Audit).list(OrganizationScope.all, { actor, limit: 10 })
      assert.deepStrictEqual(
        rows.map(({ action, after, before, target }) => [action, target, before, after]),
        [
          ["operators.update", id, changed, { ...changed, role: "read" }],
          ["operators.update", id, { ...changed, role: "read" }, changed]
        ]
      )
    }
  )

  it.effect("no role of a revoked operator changes, and none to an unknown role", function* () {
    const { admin } = yield* asOperator("owner")
    const { id } = yield* hire("read")
    const changeTo = (body: object) => admin(`/operators/${id}`, { method: "PATCH", body })
    for (const body of [{}, { role: "root" }]) {
      assertRefused(yield* changeTo(body), badRequest("`role` must be one of read, write, owner.", "role"))
    }
    assert.strictEqual((yield* changeTo({ role: "write", organization: "org" })).status, 400)
    read(yield* admin(`/operators/${id}`, { method: "DELETE" }))
    assertRefused(yield* changeTo({ role: "write" }), refusals.notFound(`There is no operator ${id}.`))
  })

  it.effect("no owner changes their own role, and two of them cannot demote each other", function* () {
    yield* revokeAll
    const first = yield* asOperator("owner")
    const changeTo = (role: string, who: typeof first, id: string) =>
      who.admin(`/operators/${id}`, { method: "PATCH", body: { role } })
    const last = `${first.name} is the last owner. To change its role, run gateway operators update on the gateway's machine.`
    assertRefused(yield* changeTo("write", first, first.id), refusals.conflict(last))
    const second = yield* asOperator("owner")
    for (const role of ["read", "owner"]) {
      assertRefused(
        yield* changeTo(role, first, first.name),
        refusals.conflict("You cannot change your own role. Ask another owner.")
      )
    }
    const answers = yield* Effect.all(
      [changeTo("write", first, second.id), second.admin(`/operators/${first.id}`, { method: "DELETE" })],
      { concurrency: "unbounded" }
    )
    const [status, refused] = answers.map((answer) => answer.status).toSorted((a, b) => a - b)
    assert.strictEqual(status, 200)
    assert.include([401, 403, 409], refused)
    const owners = (yield* (yield* Operators).list(OrganizationScope.all)).filter(
      ({ revoked_at, role }) => revoked_at === null && role === "owner"
    )
    assert.lengthOf(owners, 1)
  })

  it.effect("what is wrong is named", function* () {
    const { admin } = yield* asOperator("owner")
    const send = (body: unknown) => admin("/operators", { body })
    assertRefused(yield* send({ role: "read" }), badRequest("`name` must be a string.", "name"))
    assertRefused(
      yield* send({ name: "a", role: "root" }),
      badRequest("`role` must be one of read, write, owner.", "role")
    )
    const taken = { name: `taken ${randomUUID()}`, role: "read" }
    read(yield* send(taken), 201)
    assertRefused(yield* send(taken), refusals.conflict(`An operator named ${taken.name} already exists.`, "name"))
    for (const method of ["POST", "DELETE"]) {
      const path = `/operators/nobody${method === "POST" ? "/link" : ""}`
      assertRefused(yield* admin(path, { method }), refusals.notFound("There is no operator nobody."))
    }
    for (const name of hostileTexts) {
      const made = yield* send({ name, role: "read" })
      assert.include([201, 400], made.status, made.text)
      const path = inAddress(name)
      const { status } = yield* admin(`/operators/${path}`, { method: "DELETE" })
      assert.include([200, 400, 404], status)
    }
  })
})
