import { HttpApi } from "@effect/platform"
import { Effect, Option, SchemaAST } from "effect"
import type { Role } from "../../../src/domain/Organization.ts"
import {
  OwnerAccess,
  OwnerOrMemberRead,
  OwnerOrMemberWrite,
  ReadAccess,
  WriteAccess
} from "../../../src/http/admin/AdminAccess.ts"
import { AdminApi } from "../../../src/http/admin/AdminApi.ts"
import { findServed } from "../../../src/http/server/PathTable.ts"
import { inAddress, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest, bearer, callAt } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer, MediaServer } from "../MediaServer.ts"

interface Declared {
  readonly group: string
  readonly method: string
  readonly path: string
  readonly parameters: ReadonlyArray<string>
  readonly access: ReadonlyArray<Role>
}

const levels: ReadonlyArray<readonly [Role, string]> = [
  ["read", ReadAccess.key],
  ["write", WriteAccess.key],
  ["owner", OwnerAccess.key],
  // An operator of the gateway, other than a member, needs to be an owner.
  ["owner", OwnerOrMemberRead.key],
  ["owner", OwnerOrMemberWrite.key]
]

const endpoints: Array<Declared> = []
HttpApi.reflect(AdminApi, {
  onGroup: () => {},
  onEndpoint: ({ endpoint: { method, path, urlParamsSchema }, group, middleware }) => {
    const parameters = Option.match(urlParamsSchema, {
      onNone: () => [],
      onSome: ({ ast }) => SchemaAST.getPropertySignatures(ast).map(({ name }) => String(name))
    })
    const keys = [...middleware].map(({ key }) => key)
    const access = levels.flatMap(([role, key]) => (keys.includes(key) ? role : []))
    endpoints.push({ group: group.identifier, method, path, parameters, access })
  }
})

const guarded = endpoints.filter(({ group }) => group !== "session")
const titleOf = ({ method, path }: Declared) => `${method} ${path}`

/** It proves and changes nothing. */
const isRead = ({ method, path }: Declared) => method === "GET" || path === "/admin/v1/ledger/verify"

/** The path with made-up parameters, below `/admin/v1`. */
const addressOf = ({ path }: Declared, parameter = "made-up") =>
  path.replace("/admin/v1", "").replaceAll(/:\w+/g, parameter)

const hostile = ["a\u0000b", "\u202eevil<script>", "%", "x".repeat(10_000), "999999999w"]

withLayer(layer)("every endpoint of the admin API", (it) => {
  it("says who may ask", () => {
    assert.isAbove(guarded.length, 20)
    for (const endpoint of guarded) {
      const [needed, ...others] = endpoint.access
      assert.isEmpty(others, titleOf(endpoint))
      if (endpoint.group === "operators") assert.strictEqual(needed, "owner", titleOf(endpoint))
      else if (isRead(endpoint)) assert.strictEqual(needed, "read", titleOf(endpoint))
      else assert.oneOf(needed, ["write", "owner"], titleOf(endpoint))
    }
  })

  it.effect("refuses nobody in particular before it looks at anything else", function* () {
    const { url } = yield* MediaServer
    for (const endpoint of guarded) {
      const { method } = endpoint
      const answer = yield* callAt(`${url}/admin/v1${addressOf(endpoint)}`, { method })
      assert.strictEqual(answer.status, 401, titleOf(endpoint))
      assertRefused(answer, refusals.notSignedIn())
    }
  })

  it.effect("refuses a role that is too small", function* () {
    const reader = yield* asOperator("read")
    const writer = yield* asOperator("write")
    for (const endpoint of guarded) {
      const { access, method } = endpoint
      const ask = (admin: typeof reader.admin) => admin(addressOf(endpoint), { method })
      const isOwners = access.includes("owner")
      if (isOwners || !isRead(endpoint)) {
        assertRefused(yield* ask(reader.admin), refusals.needs(isOwners ? "owner" : "write"))
      }
      if (isOwners) assertRefused(yield* ask(writer.admin), refusals.needs("owner"))
    }
  })

  it.effect("takes any text in its address, or says what is wrong with it", function* () {
    const { admin } = yield* asOperator("owner")
    const addresses = guarded.flatMap((endpoint) =>
      hostile.flatMap((text) => {
        const { method, parameters, path } = endpoint
        const value = inAddress(text)
        const inPath = path.includes(":") ? [{ method, address: addressOf(endpoint, value) }] : []
        const inQuery = parameters.map((name) => ({ method, address: `${addressOf(endpoint)}?${name}=${value}` }))
        return [...inPath, ...inQuery]
      })
    )
    yield* Effect.forEach(
      addresses,
      ({ address, method }) =>
        Effect.map(admin(address, { method }), ({ status, text }) =>
          assert.isBelow(status, 500, `${method} ${address.slice(0, 80)}: ${text}`)
        ),
      { concurrency: 8 }
    )
  })

  it.effect("refuses a span that ends before it begins", function* () {
    const { admin } = yield* asOperator("read")
    const spanned = guarded.filter(({ parameters }) => parameters.includes("since"))
    assert.includeMembers(
      spanned.map(({ path }) => path.replace("/admin/v1/", "")),
      ["audit", "ledger", "ledger.csv", "requests", "requests.csv", "usage", "usage.csv", "videos"]
    )
    for (const endpoint of spanned) {
      for (const until of ["2026-03-01", "2026-03-02"]) {
        const answer = yield* admin(`${addressOf(endpoint)}?since=2026-03-02&until=${until}`)
        assertRefused(answer, badRequest("`since` must be before `until`.", "since"))
      }
    }
  })

  it.effect("is one and the same however its path is written", function* () {
    const { url } = yield* MediaServer
    const { token } = yield* asOperator("read")
    for (const path of [
      "//admin/v1/now",
      "/admin//v1/now//",
      "/admin/v1/now;x",
      "/admin/v1/%6eow",
      "/admin/v1/now?;"
    ]) {
      const found = findServed({ method: "GET", url: path, headers: {} })
      assert.deepStrictEqual([found.surface, found.path, found.isServed], ["admin", "/admin/v1/now", true], path)
      const answer = yield* callAt(`${url}${path}`, { headers: bearer(token) })
      assert.deepStrictEqual([answer.status, answer.headers.get("cache-control")], [200, "no-store"], path)
      assertRefused(yield* callAt(`${url}${path}`), refusals.notSignedIn())
    }
  })
})
