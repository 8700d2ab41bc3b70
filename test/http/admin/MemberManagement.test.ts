import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { openAccount } from "../../harness/client/Account.ts"
import { adminAt, hire, read, refusals } from "../../harness/client/AdminClient.ts"
import { type Answer, assertRefused, badRequest, callAt } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer, MediaServer } from "../MediaServer.ts"

const signIn = (body: object) =>
  Effect.flatMap(MediaServer, ({ url }) =>
    callAt(`${url}/admin/v1/session`, {
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" }
    })
  )

const secretOf = (link: string) => link.split("#link=")[1] ?? ""

const cookieOf = ({ headers }: Answer) => headers.get("set-cookie")?.split(";")[0] ?? ""

const nameNew = () => `mia ${randomUUID()}`

/** An organization with a member of each role. */
const makeOrganization = Effect.gen(function* () {
  const { org } = yield* openAccount({})
  return { org, writer: yield* asOperator("write", org), reader: yield* asOperator("read", org) }
})

const remove = { method: "DELETE" }
const post = { method: "POST" }
const roleChange = (role: string) => ({ method: "PATCH", body: { role } })

withLayer(layer)("members who manage members", (it) => {
  it.effect("list the members of their organization, and no operators of the gateway", function* () {
    const { org, reader, writer } = yield* makeOrganization
    const stranger = yield* makeOrganization
    const owner = yield* asOperator("owner")
    for (const { admin } of [reader, writer]) {
      const listed = yield* admin("/operators")
      const { data, has_more } = read(listed)
      assert.isFalse(has_more)
      assert.deepStrictEqual(
        data.map(({ id, org, role }: Record<string, unknown>) => ({ id, org, role })),
        [
          { id: writer.id, org, role: "write" },
          { id: reader.id, org, role: "read" }
        ]
      )
      for (const { id, name } of [owner, stranger.writer, stranger.reader]) {
        assert.notInclude(listed.text, id)
        assert.notInclude(listed.text, name)
      }
      assert.deepStrictEqual(read(yield* admin(`/operators?organization=${org}`)).data, data)
      assertRefused(
        yield* admin(`/operators?organization=${stranger.org}`),
        badRequest(`There is no organization ${stranger.org}.`, "organization")
      )
      assert.deepStrictEqual(read(yield* owner.admin(`/operators?organization=${org}`)).data, data)
    }
  })

  it.effect("invite others, who sign in by the link", function* () {
    const { url } = yield* MediaServer
    const { org, writer } = yield* makeOrganization
    for (const [role, body] of [
      ["read", { organization: org }],
      ["write", {}]
    ] as const) {
      const name = nameNew()
      const { link, token, ...invited } = read(
        yield* writer.admin("/operators", { body: { name, role, ...body } }),
        201
      )
      assert.deepInclude(invited, { name, role, org, revoked_at: null })
      const { operator, organization } = read(yield* signIn({ link: secretOf(link) }))
      assert.deepInclude(operator, { id: invited.id, role })
      assert.strictEqual(organization.id, org)
      read(yield* adminAt(url, token)("/keys"))
      const again = read(yield* writer.admin(`/operators/${invited.id}/link`, post), 201)
      assert.strictEqual(read(yield* signIn({ link: secretOf(again.link) })).operator.id, invited.id)
    }
  })

  it.effect("revoke others, whose sessions, tokens and links end at once", function* () {
    const { url } = yield* MediaServer
    const { org, reader, writer } = yield* makeOrganization
    const { id, link, token } = read(
      yield* writer.admin("/operators", { body: { name: nameNew(), role: "write" } }),
      201
    )
    const headers = { cookie: cookieOf(yield* signIn({ link: secretOf(link) })) }
    const unused = read(yield* writer.admin(`/operators/${id}/link`, post), 201).link
    read(yield* callAt(`${url}/admin/v1/keys`, { headers }))
    const revoked = read(yield* writer.admin(`/operators/${id}`, remove))
    assert.isNumber(revoked.revoked_at)
    assert.strictEqual((yield* callAt(`${url}/admin/v1/keys`, { headers })).status, 401)
    assert.strictEqual((yield* adminAt(url, token)("/keys")).status, 401)
    assert.strictEqual((yield* signIn({ link: secretOf(unused) })).status, 401)
    assertRefused(yield* writer.admin(`/operators/${id}/link`, post), refusals.notFound(`There is no operator ${id}.`))
    read(yield* writer.admin(`/operators/${reader.id}`, remove))
    assert.strictEqual((yield* reader.admin("/operators")).status, 401)

    const owner = yield* asOperator("owner")
    const { data } = read(yield* owner.admin(`/audit?actor=${writer.name}`))
    assert.deepStrictEqual(
      data.map((row: Record<string, unknown>) => [row["action"], row["target"], row["org"], row["via"]]),
      [
        ["operators.revoke", reader.id, org, "api"],
        ["operators.revoke", id, org, "api"],
        ["operators.link", id, org, "api"],
        ["operators.create", id, org, "api"]
      ]
    )
    assert.strictEqual((yield* writer.admin("/audit")).status, 404)
  })

  it.effect("need the role write for changes", function* () {
    const { reader, writer } = yield* makeOrganization
    const needsWrite = refusals.needs("write")
    assertRefused(yield* reader.admin("/operators", { body: { name: nameNew(), role: "read" } }), needsWrite)
    for (const { id } of [reader, writer]) {
      assertRefused(yield* reader.admin(`/operators/${id}/link`, post), needsWrite)
      assertRefused(yield* reader.admin(`/operators/${id}`, remove), needsWrite)
      assertRefused(yield* reader.admin(`/operators/${id}`, roleChange("write")), needsWrite)
    }
  })

  it.effect("reach no operator of the gateway and no member of another organization", function* () {
    const { writer } = yield* makeOrganization
    const stranger = yield* makeOrganization
    const operators = [yield* hire("owner"), yield* hire("read"), stranger.writer, stranger.reader]
    for (const { id, name } of operators) {
      for (const reference of [id, name]) {
        const missing = refusals.notFound(`There is no operator ${reference}.`)
        assertRefused(yield* writer.admin(`/operators/${reference}/link`, post), missing)
        assertRefused(yield* writer.admin(`/operators/${reference}`, remove), missing)
        assertRefused(yield* writer.admin(`/operators/${reference}`, roleChange("write")), missing)
      }
    }
    const owner = yield* asOperator("owner")
    const { data } = read(yield* owner.admin("/operators"))
    for (const { id, role } of operators) {
      const operator = data.find((operator: { readonly id: string }) => operator.id === id)
      assert.deepInclude(operator, { role, revoked_at: null })
    }
  })

  it.effect("get neither a higher role nor another organization", function* () {
    const { org, writer } = yield* makeOrganization
    const stranger = yield* makeOrganization
    const invite = (body: object) => writer.admin("/operators", { body: { name: nameNew(), ...body } })
    const owners =
      "A member of an organization has the role read or write. Only operators of the gateway can be owners."
    for (const body of [{ role: "owner" }, { role: "owner", organization: org }]) {
      assertRefused(yield* invite(body), badRequest(owners, "role"))
    }
    assertRefused(yield* invite({ role: "root" }), badRequest("`role` must be one of read, write, owner.", "role"))
    assertRefused(
      yield* invite({ role: "read", organization: stranger.org }),
      badRequest(`There is no organization ${stranger.org}.`, "organization")
    )
    for (const organization of [null, ""]) {
      assert.strictEqual((yield* invite({ role: "read", organization })).status, 400)
    }
    assert.strictEqual((yield* invite({ role: "read", org: stranger.org })).status, 400)
    assert.lengthOf(read(yield* writer.admin("/operators")).data, 2)
  })

  it.effect("change the roles of others, who are never owners, and not their own", function* () {
    const { org, reader, writer } = yield* makeOrganization
    const owner = yield* asOperator("owner")
    const owners =
      "A member of an organization has the role read or write. Only operators of the gateway can be owners."
    for (const { admin } of [writer, owner]) {
      assertRefused(yield* admin(`/operators/${reader.id}`, roleChange("owner")), badRequest(owners, "role"))
    }
    const changed = read(yield* writer.admin(`/operators/${reader.id}`, roleChange("write")))
    assert.deepInclude(changed, { id: reader.id, role: "write", org })
    for (const role of ["read", "write"]) {
      assertRefused(
        yield* writer.admin(`/operators/${writer.id}`, roleChange(role)),
        refusals.conflict("You cannot change your own role. Ask another member with the role write.")
      )
    }
    const [row] = read(yield* owner.admin(`/audit?actor=${writer.name}`)).data
    assert.deepInclude(row, { action: "operators.update", target: reader.id, org })
    assert.deepStrictEqual([row.before.role, row.after.role], ["read", "write"])
    read(yield* reader.admin(`/operators/${writer.id}`, roleChange("read")))
    assertRefused(yield* writer.admin(`/operators/${reader.id}`, roleChange("read")), refusals.needs("write"))
    read(yield* owner.admin(`/operators/${reader.id}`, roleChange("read")))
  })

  it.effect("cannot demote each other at the same time", function* () {
    const { org, writer } = yield* makeOrganization
    const other = yield* asOperator("write", org)
    const answers = yield* Effect.all(
      [
        writer.admin(`/operators/${other.id}`, roleChange("read")),
        other.admin(`/operators/${writer.id}`, roleChange("read"))
      ],
      { concurrency: "unbounded" }
    )
    const [status, refused] = answers.map((answer) => answer.status).toSorted((a, b) => a - b)
    assert.strictEqual(status, 200)
    assert.include([403, 409], refused)
    const owner = yield* asOperator("owner")
    const { data } = read(yield* owner.admin(`/operators?organization=${org}`))
    assert.lengthOf(
      data.filter(({ role }: Record<string, unknown>) => role === "write"),
      1
    )
  })

  it.effect("cannot revoke themselves, not even two of them each other", function* () {
    const { org, writer } = yield* makeOrganization
    const message = "You cannot revoke yourself. Ask another member with the role write."
    for (const reference of [writer.id, writer.name]) {
      assertRefused(yield* writer.admin(`/operators/${reference}`, remove), refusals.conflict(message))
    }
    const other = yield* asOperator("write", org)
    const answers = yield* Effect.all(
      [writer.admin(`/operators/${other.id}`, remove), other.admin(`/operators/${writer.id}`, remove)],
      { concurrency: "unbounded" }
    )
    const [status, refused] = answers.map((answer) => answer.status).toSorted((a, b) => a - b)
    assert.strictEqual(status, 200)
    assert.include([401, 409], refused)
    const owner = yield* asOperator("owner")
    const { data } = read(yield* owner.admin(`/operators?organization=${org}`))
    const writers = data.filter(
      ({ revoked_at, role }: Record<string, unknown>) => role === "write" && revoked_at === null
    )
    assert.lengthOf(writers, 1)
  })

  it.effect("learn the same of every name that is taken, and nothing of who has it", function* () {
    const { reader, writer } = yield* makeOrganization
    const stranger = yield* makeOrganization
    const owner = yield* hire("owner")
    const invite = (name: string) => writer.admin("/operators", { body: { name, role: "read" } })
    for (const { name } of [reader, stranger.reader, owner]) {
      assertRefused(
        yield* invite(name),
        refusals.conflict(`The name ${name} is not available. Choose another one.`, "name")
      )
    }
    const form =
      "An operator's name has 1 to 100 printable characters, no space at its ends, and starts neither with cli: nor with a dash."
    for (const name of ["", "-x", "cli:root", "CLI:root"]) assertRefused(yield* invite(name), badRequest(form, "name"))
  })

  it.effect("cannot make an operator's id ambiguous by a name", function* () {
    const { writer } = yield* makeOrganization
    const victim = yield* hire("read")
    const { admin } = yield* asOperator("owner")
    read(yield* writer.admin("/operators", { body: { name: victim.id, role: "read" } }), 201)
    assert.strictEqual(read(yield* admin(`/operators/${victim.id}`, remove)).id, victim.id)
  })

  it.effect("repeat an invitation with its key, without secrets", function* () {
    const { writer } = yield* makeOrganization
    const headers = { "idempotency-key": randomUUID() }
    const body = { name: nameNew(), role: "read" }
    const first = read(yield* writer.admin("/operators", { body, headers }), 201)
    const repeated = yield* writer.admin("/operators", { body, headers })
    assert.strictEqual(repeated.headers.get("idempotency-replayed"), "true")
    assert.deepStrictEqual(read(repeated, 201), { ...first, link: null, token: null })
    assertRefused(
      yield* writer.admin("/operators", { body: { ...body, role: "write" }, headers }),
      badRequest("The `Idempotency-Key` was used for another change.", null)
    )
  })

  it.effect("change nothing from a page of another origin", function* () {
    const { url } = yield* MediaServer
    const { reader, writer } = yield* makeOrganization
    const cookie = cookieOf(yield* signIn({ token: writer.token }))
    const send = (path: string, method: string, headers: object, body?: object) =>
      callAt(`${url}/admin/v1/operators${path}`, {
        method,
        headers: { cookie, "content-type": "application/json", ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) })
      })
    const invitation = { name: nameNew(), role: "write" }
    for (const headers of [{ origin: "https://evil.test" }, {}]) {
      for (const answer of [
        yield* send("", "POST", headers, invitation),
        yield* send(`/${reader.id}/link`, "POST", headers),
        yield* send(`/${reader.id}`, "PATCH", headers, { role: "write" }),
        yield* send(`/${reader.id}`, "DELETE", headers)
      ]) {
        assert.strictEqual(answer.status, 403)
        assert.strictEqual(JSON.parse(answer.text).error.code, "foreign_origin")
      }
    }
    read(yield* send("", "POST", { origin: url }, invitation), 201)
    const owner = yield* asOperator("owner")
    const [row] = read(yield* owner.admin(`/audit?actor=${writer.name}`)).data
    assert.deepInclude(row, { via: "console", action: "operators.create", actor: writer.name })
  })

  it.effect("are at most 100, with those revoked within a day", function* () {
    const { org, writer } = yield* makeOrganization
    const sql = yield* SqlClient.SqlClient
    yield* sql`
      INSERT INTO operators (id, name, role, org_id, token_hash, revoked_at)
      SELECT ${org} || n, ${org} || n, 'read', ${org}, sha256((${org}::text || n)::bytea),
        CASE WHEN n % 2 = 0 THEN now() - interval '1 hour' END
      FROM generate_series(1, 98) AS n`
    const body = { name: nameNew(), role: "read" }
    const message = "An organization may have 100 members, including those revoked within the last day."
    assertRefused(yield* writer.admin("/operators", { body }), badRequest(message, null))
    yield* sql`UPDATE operators SET revoked_at = now() - interval '25 hours' WHERE id = ${`${org}2`}`
    read(yield* writer.admin("/operators", { body }), 201)
  })
})
