import { SqlClient } from "@effect/sql"
import { Effect, Redacted } from "effect"
import { maxStored } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Operators } from "../../../src/services/admin/Operators.ts"
import { adminAt, hire, read } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest, callAt, type Sent } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { layer, MediaServer } from "../MediaServer.ts"

const unauthenticated = (message: string) =>
  ({ status: 401, type: "authentication_error", code: "not_signed_in", message }) as const

const notSignedIn = unauthenticated("Sign in, or send an operator's token.")
const ended = unauthenticated("The session has expired. Sign in again.")
const noSuch = { status: 404, type: "not_found_error", code: "unknown_endpoint", message: "Unknown endpoint." } as const
const foreign = {
  status: 403,
  type: "permission_error",
  code: "foreign_origin",
  message: "The request comes from another site."
} as const

const ask = (path: string, sent: Sent = {}) =>
  Effect.flatMap(MediaServer, ({ url }) =>
    callAt(`${url}/admin/v1${path}`, {
      ...sent,
      headers: { ...(sent.body !== undefined && { "content-type": "application/json" }), ...sent.headers }
    })
  )

const signIn = Effect.fnUntraced(function* (body: object, headers = {}) {
  const answer = yield* ask("/session", { body, headers })
  const cookie = answer.headers.get("set-cookie") ?? ""
  return { answer, cookie, session: { cookie: cookie.split(";")[0] ?? "" } }
})

const ownOrigin = Effect.map(MediaServer, ({ url }) => ({ origin: url }))

withLayer(layer)("operators at the admin API", (it) => {
  it.effect("a token opens a session in a cookie that scripts cannot read", function* () {
    const { id, name, token } = yield* hire("write")
    const { answer, cookie, session } = yield* signIn({ token })
    const { expires_at, operator, payments, sandbox } = read(answer)
    assert.deepStrictEqual(operator, { id, name, role: "write" })
    assert.isFalse(sandbox)
    assert.deepStrictEqual(payments, { minimum_usd: 0, maximum_usd: Number(maxStored) / 1e9 })
    assert.approximately(expires_at, Date.now() / 1000 + 12 * 3600, 60)
    assert.match(cookie, /^gateway_session=[\w-]{43}; HttpOnly; SameSite=Strict; Max-Age=43200$/)
    assert.strictEqual(answer.headers.get("cache-control"), "no-store")
    assert.deepStrictEqual(read(yield* ask("/session", { headers: session })).operator, { id, name, role: "write" })
    assert.include(yield* Effect.map(ask("/organizations", { headers: session }), ({ text }) => text), '"data"')
  })

  it.effect("a link opens one session, and never a second", function* () {
    const { link } = yield* Operators
    const { id } = yield* hire("read")
    const secret = Redacted.value(yield* link(OrganizationScope.all, id))
    assert.strictEqual(read((yield* signIn({ link: secret })).answer).operator.id, id)
    const { answer } = yield* signIn({ link: secret })
    assertRefused(answer, unauthenticated("The link was already used or has expired."))
  })

  it.effect("signing in and requests by session change when an operator was last seen, once a minute", function* () {
    const sql = yield* SqlClient.SqlClient
    const { find, link } = yield* Operators
    const { id } = yield* hire("read")
    const lastSeen = Effect.map(find(OrganizationScope.all, id), ({ used_at }) => used_at?.getTime())
    assert.isUndefined(yield* lastSeen)
    const { answer, session } = yield* signIn({ link: Redacted.value(yield* link(OrganizationScope.all, id)) })
    read(answer)
    assert.isDefined(yield* lastSeen)
    for (const [age, isMarked] of [
      ["30 seconds", false],
      ["61 seconds", true]
    ] as const) {
      yield* sql`UPDATE operators SET used_at = now() - ${age}::interval WHERE id = ${id}`
      const before = yield* lastSeen
      read(yield* ask("/organizations", { headers: session }))
      assert.strictEqual((yield* lastSeen) !== before, isMarked, age)
    }
  })

  it.effect("a session that was closed on the server is of no use to who copied it", function* () {
    const { token } = yield* hire("write")
    const { session } = yield* signIn({ token })
    const closed = yield* ask("/session", { method: "DELETE", headers: { ...session, ...(yield* ownOrigin) } })
    assert.strictEqual(closed.status, 204)
    assert.include(closed.headers.get("set-cookie") ?? "", "Max-Age=0")
    assertRefused(yield* ask("/organizations", { headers: session }), ended)
  })

  it.effect("a revoked operator's sessions, links and token end at once", function* () {
    const { link, revoke } = yield* Operators
    const { id, token } = yield* hire("owner")
    const { session } = yield* signIn({ token })
    const secret = Redacted.value(yield* link(OrganizationScope.all, id))
    yield* revoke(OrganizationScope.all, id)
    assertRefused(yield* ask("/organizations", { headers: session }), ended)
    const { url } = yield* MediaServer
    const refused = yield* adminAt(url, token)("/organizations")
    assertRefused(refused, unauthenticated("The operator's token is not valid."))
    assert.strictEqual((yield* signIn({ link: secret })).answer.status, 401)
  })

  it.effect("a write of a session needs the origin of its own page", function* () {
    const { token } = yield* hire("write")
    const { session } = yield* signIn({ token })
    const create = (headers: object) =>
      ask("/organizations", { body: { name: `of ${token}` }, headers: { ...session, ...headers } })
    assertRefused(yield* create({}), foreign)
    assertRefused(yield* create({ origin: "https://evil.test" }), foreign)
    assertRefused(yield* create({ origin: "null" }), foreign)
    assertRefused(yield* create({ "sec-fetch-site": "same-site" }), foreign)
    assertRefused((yield* signIn({ token }, { origin: "https://evil.test" })).answer, foreign)
    read(yield* create({ ...(yield* ownOrigin) }), 201)
  })

  it.effect("a session counts beside a token that a proxy adds, and an operator's own token before it", function* () {
    const { token } = yield* hire("write")
    const { session } = yield* signIn({ token })
    for (const added of [{ authorization: "Bearer eyJhbGciOiJSUzI1NiJ9.e30.c2ln" }, { "x-api-key": "of-the-proxy" }]) {
      const headers = { ...session, ...added }
      read(yield* ask("/organizations", { headers }))
      const body = { name: `${Object.keys(added).join()} of ${token}` }
      assertRefused(yield* ask("/organizations", { body, headers }), foreign)
      read(yield* ask("/organizations", { body, headers: { ...headers, ...(yield* ownOrigin) } }), 201)
      assertRefused(yield* ask("/organizations", { headers: { cookie: "gateway_session=x", ...added } }), ended)
    }
    const wrong = { ...session, authorization: "Bearer ggo_wrong" }
    assertRefused(
      yield* ask("/organizations", { headers: wrong }),
      unauthenticated("The operator's token is not valid.")
    )
  })

  it.effect("a caller without credentials learns only that it has to sign in", function* () {
    assertRefused(yield* ask("/organizations"), notSignedIn)
    assertRefused(yield* ask("/session"), unauthenticated("You are not signed in."))
    assertRefused(yield* ask("/organizations", { headers: { cookie: "gateway_session=" } }), notSignedIn)
    assertRefused(yield* ask("/organizations", { headers: { cookie: "gateway_session=x" } }), ended)
    assertRefused(yield* ask("/session", { body: {} }), badRequest("Send either `link` or `token`."))
    assertRefused(yield* ask("/session", { body: { token: 5 } }), badRequest("`token` must be a string.", "token"))
  })

  it.effect("a request through a proxy finds no admin API", function* () {
    const { token } = yield* hire("owner")
    for (const path of ["/organizations", "/session", "/openapi.json"]) {
      const headers = { authorization: `Bearer ${token}`, "x-forwarded-for": "127.0.0.1" }
      assertRefused(yield* ask(path, { headers }), noSuch)
    }
    for (const body of [{ token }, { token: 5 }, "{"]) {
      assertRefused(yield* ask("/session", { body, headers: { via: "1.1 proxy" } }), noSuch)
    }
  })

  it.effect("the document describes each endpoint and how it is refused", function* () {
    const { components, paths } = read(yield* ask("/openapi.json"))
    const { "/admin/v1/organizations": organizations } = paths
    assert.hasAllKeys(organizations, ["get", "post"])
    const { parameters, responses } = organizations.post
    assert.containsAllKeys(responses, ["201", "400", "401", "403", "404", "409"])
    assert.deepStrictEqual(
      parameters.map(({ name }: { readonly name: string }) => name),
      ["idempotency-key"]
    )
    const { examples } = responses[409].content["application/json"]
    assert.deepStrictEqual(examples.conflict_1.value.error, {
      message: "An organization named acme already exists.",
      type: "invalid_request_error",
      param: "name",
      code: "conflict"
    })
    assert.hasAllKeys(components.securitySchemes, ["token", "session"])
    assert.notInclude(JSON.stringify(paths), "HttpApiDecodeError")
  })

  it.effect(
    "after ten wrong secrets in a minute further ones are 429; others at the address still sign in",
    function* () {
      const { link } = yield* Operators
      const { id, token } = yield* hire("read")
      const wrong = yield* Effect.replicateEffect(ask("/session", { body: { token: "ggo_wrong" } }), 12)
      assert.deepStrictEqual([...new Set(wrong.map(({ status }) => status))], [401, 429])
      assert.isAtLeast(Number(wrong.at(-1)?.headers.get("retry-after")), 1)
      const { url } = yield* MediaServer
      assert.strictEqual((yield* adminAt(url, "ggo_wrong")("/organizations")).status, 429)
      assert.strictEqual((yield* signIn({ link: "wrong" })).answer.status, 429)
      read(yield* adminAt(url, token)("/organizations"))
      read((yield* signIn({ token })).answer)
      read((yield* signIn({ link: Redacted.value(yield* link(OrganizationScope.all, id)) })).answer)
    }
  )
})
