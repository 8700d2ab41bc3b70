import { Effect, Redacted } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Operators } from "../../../src/services/admin/Operators.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { adminAt, hire, read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest, callAt } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer, layerWith, MediaServer } from "../MediaServer.ts"

const proxied = { via: "1.1 proxy" }
const noSuch = { status: 404, type: "not_found_error", code: "unknown_endpoint", message: "Unknown endpoint." } as const

const signIn = (body: object, headers = {}) =>
  Effect.flatMap(MediaServer, ({ url }) =>
    callAt(`${url}/admin/v1/session`, {
      body: JSON.stringify(body),
      headers: { "content-type": "application/json", ...headers }
    })
  )

const sessionOf = (headers: Headers) => ({ cookie: headers.get("set-cookie")?.split(";")[0] ?? "" })

withLayer(layer)("members", (it) => {
  it.effect("are made, listed and revoked as operators are, with their organization", function* () {
    const { url } = yield* MediaServer
    const { org } = yield* openAccount({})
    const { admin } = yield* asOperator("owner")
    const { name: org_name } = read(yield* admin(`/organizations/${org}`))
    const name = `mia of ${org}`
    const body = { name, role: "write", organization: org_name }
    const { link, token, ...made } = read(yield* admin("/operators", { body }), 201)
    assert.deepInclude(made, { name, role: "write", org, org_name })
    const listed = read(yield* admin("/operators")).data.find(({ id }: { id: string }) => id === made.id)
    assert.deepInclude(listed, { org, org_name })
    const { organization } = read(yield* signIn({ link: link.split("#link=")[1] }))
    assert.deepStrictEqual(organization, { id: org, name: org_name })
    read(yield* adminAt(url, token)("/keys"))
    const [row] = read(yield* admin(`/audit?target=${made.id}`)).data
    assert.deepInclude(row, { action: "operators.create", org })
    read(yield* admin(`/operators/${made.id}`, { method: "DELETE" }))
    assert.strictEqual((yield* adminAt(url, token)("/keys")).status, 401)
  })

  it.effect("have the role read or write, in an organization that there is", function* () {
    const { org } = yield* openAccount({})
    const { admin } = yield* asOperator("owner")
    const make = (role: string, organization: string) =>
      admin("/operators", { body: { name: `${role} of ${organization}`, role, organization } })
    const owners =
      "A member of an organization has the role read or write. Only operators of the gateway can be owners."
    assertRefused(yield* make("owner", org), badRequest(owners, "role"))
    const unknown = badRequest("There is no organization org_none.", "organization")
    assertRefused(yield* make("read", "org_none"), unknown)
  })

  it.effect("of a suspended organization go on, and end with one that is deleted", function* () {
    const { url } = yield* MediaServer
    const { org } = yield* openAccount({ nanoUsd: 0n })
    const { token } = yield* hire("write", org)
    const session = sessionOf((yield* signIn({ token })).headers)
    const { admin } = yield* asOperator("owner")
    read(yield* admin(`/organizations/${org}/suspend`, { method: "POST" }))
    const member = adminAt(url, token)
    assert.isTrue(read(yield* member(`/organizations/${org}`)).suspended)
    read(yield* admin(`/organizations/${org}`, { method: "DELETE" }))
    assert.strictEqual((yield* member("/keys")).status, 401)
    assert.strictEqual((yield* callAt(`${url}/admin/v1/keys`, { headers: session })).status, 401)
  })

  it.effect("are not let in from elsewhere", function* () {
    const { url } = yield* MediaServer
    const { org } = yield* openAccount({})
    const { token } = yield* hire("read", org)
    assertRefused(yield* adminAt(url, token)("/keys", { headers: proxied }), noSuch)
    assertRefused(yield* callAt(`${url}/console`, { headers: proxied }), noSuch)
  })
})

withLayer(layerWith({ areMembersPublic: true }))("a gateway that is public for members", (it) => {
  it.effect("answers members from elsewhere, and operators at home", function* () {
    const { url } = yield* MediaServer
    const { org } = yield* openAccount({})
    const member = yield* hire("read", org)
    const operator = yield* hire("owner")
    const elsewhere = { headers: proxied }
    read(yield* adminAt(url, member.token)("/keys", elsewhere))
    const answers = yield* Effect.forEach([operator.token, "ggo_made-up"], (token) =>
      Effect.forEach(["/keys", "/operators", "/no-such"], (path) => adminAt(url, token)(path, elsewhere))
    )
    const [known, unknown] = answers.map((all) => all.map(({ status, text }) => [status, text]))
    assert.deepStrictEqual(known, unknown)
    const refused = refusals.notSignedIn("The operator's token is not valid.")
    assertRefused(yield* adminAt(url, operator.token)("/keys", elsewhere), refused)
    read(yield* adminAt(url, operator.token)("/keys"))
    assert.strictEqual((yield* callAt(`${url}/admin/v1/openapi.json`, elsewhere)).status, 404)
  })

  it.effect("opens sessions of members from elsewhere, and says of operators what it says of nobody", function* () {
    const { url } = yield* MediaServer
    const { link } = yield* Operators
    const { org } = yield* openAccount({})
    const member = yield* hire("read", org)
    const operator = yield* hire("owner")
    const linkOf = (id: string) => Effect.map(link(OrganizationScope.all, id), Redacted.value)
    const opened = yield* signIn({ link: yield* linkOf(member.id) }, proxied)
    assert.strictEqual(read(opened).operator.id, member.id)
    const session = { ...proxied, ...sessionOf(opened.headers) }
    assert.strictEqual(read(yield* callAt(`${url}/admin/v1/session`, { headers: session })).operator.id, member.id)
    read(yield* callAt(`${url}/admin/v1/keys`, { headers: session }))

    const theirs = yield* linkOf(operator.id)
    const unknown = yield* signIn({ link: "made-up" }, proxied)
    const refused = yield* signIn({ link: theirs }, proxied)
    assert.deepStrictEqual([refused.status, refused.text], [unknown.status, unknown.text])
    assert.strictEqual((yield* signIn({ token: operator.token }, proxied)).status, 401)
    const home = yield* signIn({ link: theirs })
    assert.strictEqual(read(home).operator.id, operator.id)
    const away = { headers: { ...proxied, ...sessionOf(home.headers) } }
    assertRefused(yield* callAt(`${url}/admin/v1/session`, away), refusals.notSignedIn("You are not signed in."))
    assertRefused(
      yield* callAt(`${url}/admin/v1/keys`, away),
      refusals.notSignedIn("The session has expired. Sign in again.")
    )
  })
})
