import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { hasAllCases } from "../../harness/Cases.ts"
import { read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"
import { fieldNames, fullOrganization, hiddenFields } from "./Customers.ts"

interface Parameter {
  readonly name: string
  readonly in: string
}

interface Described {
  readonly parameters?: ReadonlyArray<Parameter>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: unknown }>> }
}

/** Every endpoint of the document that operators get, but for those of signing in. */
const endpoints = Effect.gen(function* () {
  const { admin } = yield* asOperator("read")
  const { paths } = read(yield* admin("/openapi.json"))
  return Object.entries<Record<string, Described>>(paths).flatMap(([path, methods]) =>
    path.endsWith("/session")
      ? []
      : Object.entries(methods).map(([method, described]) => ({
          method: method.toUpperCase(),
          path: path.replace("/admin/v1", ""),
          parameters: (described.parameters ?? [])
            .filter((parameter) => parameter.in === "query")
            .map(({ name }) => name),
          hasBody: described.requestBody !== undefined
        }))
  )
})

/** The endpoints of members: all that there are for them. */
const openToMembers = [
  "DELETE /operators/{operator}",
  "DELETE /webhooks/{id}",
  "GET /keys",
  "GET /keys/{id}",
  "GET /ledger",
  "GET /models",
  "GET /models/{id}",
  "GET /operators",
  "GET /organizations/{org}",
  "GET /organizations/{org}/receipts/{entry}",
  "GET /organizations/{org}/statement",
  "GET /organizations/{org}/statement.csv",
  "GET /payments",
  "GET /payments/{id}",
  "GET /requests",
  "GET /requests.csv",
  "GET /requests/failures",
  "GET /requests/{id}",
  "GET /usage",
  "GET /usage.csv",
  "GET /videos",
  "GET /videos/{id}",
  "GET /webhooks",
  "GET /webhooks/deliveries",
  "PATCH /keys/{id}",
  "PATCH /operators/{operator}",
  "POST /checkout",
  "POST /keys",
  "POST /keys/{id}/reissue",
  "POST /keys/{id}/revoke",
  "POST /operators",
  "POST /operators/{operator}/link",
  "POST /payments/{id}/checkout",
  "POST /webhooks",
  "POST /webhooks/deliveries/{event}/replay",
  "POST /webhooks/{id}/enable",
  "POST /webhooks/{id}/test"
]

/** Those that show the catalog, which all organizations share. */
const ofNobody = ["GET /models", "GET /models/{id}"]

const publicId = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const nameOf = ({ method, path }: { readonly method: string; readonly path: string }) => `${method} ${path}`

type Body = (value: string) => object

/** By the first part of the path of an endpoint that shows one. */
const idsOf = ({
  key,
  org,
  payment,
  row,
  video
}: Record<"key" | "org" | "payment" | "row" | "video", string>): Readonly<Record<string, string>> => ({
  keys: key,
  models: "talk",
  organizations: org,
  payments: payment,
  requests: row,
  videos: video
})

const moreFor: Readonly<Record<string, object>> = {
  "/operators": { name: "mia", role: "read" },
  "/webhooks": { url: "https://hooks.example/" },
  "/checkout": { amount_usd: 5 }
}
const bodyFor = (path: string) => (organization: string) => ({ organization, ...moreFor[path] })

/** One of the same form that nobody has. */
const strangerTo = (value: string) => `${value.slice(0, -1)}${value.endsWith("1") ? "2" : "1"}`

withLayer(layer)("members at the admin API", (it) => {
  it.effect("have the endpoints that say so, and find nothing at any other", function* () {
    const ours = yield* fullOrganization
    const { admin } = yield* asOperator("write", ours.org)
    const open: Array<string> = []
    const unknown = yield* admin("/nothing-of-this-name")
    for (const endpoint of yield* endpoints) {
      const path = endpoint.path.replace(/\{\w+\}/, "made-up")
      const body = endpoint.hasBody ? { body: {} } : {}
      const answer = yield* admin(path, { method: endpoint.method, ...body })
      assert.notStrictEqual(answer.status, 403, nameOf(endpoint))
      if (answer.status === 404 && JSON.parse(answer.text).error.code === "unknown_endpoint") {
        assert.deepStrictEqual([answer.status, answer.text], [404, unknown.text], nameOf(endpoint))
      } else open.push(nameOf(endpoint))
    }
    assert.deepStrictEqual(open.toSorted(), openToMembers.toSorted())
  })

  it.effect(
    "get nothing of another organization, and its ids are unknown to them",
    function* () {
      const ours = yield* fullOrganization
      const theirs = yield* fullOrganization
      const { admin: owner } = yield* asOperator("owner")
      const { admin } = yield* asOperator("write", ours.org)
      const sql = yield* SqlClient.SqlClient
      const stateOf = Effect.map(
        sql`
        SELECT (SELECT json_agg(k ORDER BY id) FROM api_keys AS k WHERE org_id = ${theirs.org})::text AS keys,
          (SELECT json_agg(w ORDER BY id) FROM webhook_endpoints AS w WHERE org_id = ${theirs.org})::text AS webhooks,
          (SELECT json_agg(d ORDER BY id) FROM webhook_deliveries AS d WHERE org_id = ${theirs.org})::text AS deliveries,
          (SELECT json_agg(v ORDER BY id) FROM videos AS v WHERE org_id = ${theirs.org})::text AS videos,
          (SELECT json_agg(o ORDER BY id) FROM operators AS o WHERE org_id = ${theirs.org})::text AS members`,
        JSON.stringify
      )
      const before = yield* stateOf
      const words = theirs.canaries
      let turn = 0
      /** Each parameter gets other words in the short form. */
      const someWords = () =>
        hasAllCases ? words : [words[turn++ % words.length] ?? "", words[turn++ % words.length] ?? ""]
      let seenByOwner = 0
      for (const { hasBody, method, parameters, path } of yield* endpoints) {
        /** The answer to what is theirs is word for word that to what nobody has. */
        const compare = Effect.fnUntraced(function* (value: string, at: (value: string) => string, body?: Body) {
          const ask = Effect.fnUntraced(function* (one: string) {
            const sent = body === undefined ? {} : { body: body(one) }
            const { status, text } = yield* admin(at(one), { method, ...sent })
            return { status, text: text.replaceAll(one, "VALUE") }
          })
          const answer = yield* ask(value)
          assert.deepStrictEqual(answer, yield* ask(strangerTo(value)), `${method} ${path} ${value}`)
          for (const canary of theirs.canaries) assert.notInclude(answer.text, canary, `${method} ${path} ${value}`)
        })
        const isOpen = openToMembers.includes(`${method} ${path}`)
        if (path.includes("{")) {
          const body = hasBody ? () => ({}) : undefined
          for (const value of isOpen ? someWords() : words.slice(0, 2))
            yield* compare(value, (one) => path.replace(/\{\w+\}/, one.replaceAll(" ", "%20")), body)
        } else if (hasBody) {
          for (const value of [theirs.org, theirs.name]) yield* compare(value, () => path, bodyFor(path))
        }
        if (method !== "GET" || !isOpen) continue
        const pathOf = (ids: Readonly<Record<string, string>>) =>
          path.replace(/\{\w+\}/, ids[path.split("/")[1] ?? ""] ?? "")
        for (const name of parameters.filter((name) => name !== "limit")) {
          for (const value of someWords()) {
            yield* compare(value, (one) => `${pathOf(idsOf(ours))}?${name}=${one.replaceAll(" ", "%20")}`)
          }
        }
        const whole = yield* owner(pathOf(idsOf(theirs)))
        if ([...theirs.canaries, "payment", "top-up"].some((canary) => whole.text.includes(canary))) seenByOwner++
        const { text } = yield* admin(pathOf(idsOf(ours)))
        for (const canary of theirs.canaries) assert.notInclude(text, canary, `${method} ${path}`)
      }
      assert.strictEqual(yield* stateOf, before)
      assert.strictEqual(seenByOwner, openToMembers.filter((name) => name.startsWith("GET ")).length - ofNobody.length)
    },
    480_000
  )

  it.effect("read what is theirs, and no field that is the operators' own", function* () {
    const ours = yield* fullOrganization
    const { admin: owner } = yield* asOperator("owner")
    const { admin } = yield* asOperator("read", ours.org)
    const hidden = new Set<string>()
    const [payment] = read(yield* admin(`/organizations/${ours.org}/statement`)).payments
    for (const name of openToMembers.filter((name) => name.startsWith("GET "))) {
      const path = name
        .slice(4)
        .replace("{entry}", payment.id)
        .replace(/\{\w+\}/, idsOf(ours)[name.split("/")[1] ?? ""] ?? "")
      const own = path.includes("usage") ? `?organization=${ours.org}` : ""
      const seen = yield* admin(path)
      assert.strictEqual(seen.status, 200, `${path} ${seen.text}`)
      const known = [ours.org, ours.model, ours.name, ours.code, "top-up"].some((one) => seen.text.includes(one))
      assert.isTrue(known || ofNobody.includes(name), `${path} has nothing of its own: ${seen.text}`)
      const whole = yield* owner(`${path}${own}`)
      const namesIn = (text: string) =>
        path.endsWith(".csv") ? (text.split("\r\n")[0] ?? "").split(",") : fieldNames(JSON.parse(text))
      for (const field of namesIn(whole.text)) if (hiddenFields.includes(field)) hidden.add(field)
      for (const field of namesIn(seen.text)) assert.notInclude(hiddenFields, field, path)
      assert.notInclude(seen.text, "canary", path)
    }
    assert.isAbove(hidden.size, 12)
  })

  it.effect(
    "know entries and deliveries by public ids, and page by them, or by the sealed numbers of before",
    function* () {
      const ours = yield* fullOrganization
      const { admin: owner } = yield* asOperator("owner")
      const { admin } = yield* asOperator("read", ours.org)
      const pagesOf = Effect.fnUntraced(function* (path: string) {
        const seen: Array<string> = []
        let after = ""
        for (let more = true; more; ) {
          const page = read(yield* admin(`${path}?limit=1${after}`))
          for (const { id } of page.data) seen.push(id)
          if (page.next !== null) assert.match(page.next, publicId)
          after = `&after=${page.next}`
          more = page.has_more
        }
        return seen
      })
      const entries = yield* pagesOf("/ledger")
      const whole = read(yield* owner(`/ledger?organization=${ours.org}`)).data
      assert.lengthOf(new Set(entries), whole.length)
      assert.include(entries, ours.numbers.entry)
      for (const id of entries) assert.match(id, publicId)
      read(yield* owner(`/webhooks/deliveries/${ours.event}/replay`, { method: "POST" }))
      read(yield* owner("/credits", { body: { organization: ours.org, type: "top_up", amount_usd: 2 } }), 201)
      const told = yield* pagesOf("/webhooks/deliveries")
      assert.lengthOf(new Set(told), 2)
      const { payments } = read(yield* admin(`/organizations/${ours.org}/statement`))
      assert.include(yield* pagesOf("/ledger"), payments.at(-1).id)
      const sql = yield* SqlClient.SqlClient
      const [before] = yield* sql<{ readonly entry: string; readonly delivery: string }>`
      SELECT seal('ledger_entries', max(e.id), ${ours.org}) AS entry,
        (SELECT seal('webhook_deliveries', max(id), ${ours.org}) FROM webhook_deliveries WHERE org_id = ${ours.org}) AS delivery
      FROM ledger_entries AS e WHERE org_id = ${ours.org}`
      for (const [path, after] of [
        ["/ledger", before?.entry],
        ["/webhooks/deliveries", before?.delivery]
      ]) {
        const { data } = read(yield* admin(`${path}?limit=1`))
        const rest = read(yield* admin(`${path}?after=${after}`)).data
        assert.isAbove(rest.length, 0)
        assert.notInclude(
          rest.map(({ id }: { readonly id: string }) => id),
          data[0].id
        )
      }
      for (const path of ["/ledger", "/webhooks/deliveries"])
        assertRefused(yield* admin(`${path}?after=1`), badRequest("`after` must be the `next` of a page.", "after"))
    }
  )

  it.effect("are refused what would tell them of hidden fields", function* () {
    const ours = yield* fullOrganization
    const { admin } = yield* asOperator("read", ours.org)
    const cases: ReadonlyArray<readonly [string, string, string]> = [
      ["/usage?sort=margin", "sort", "`sort` must be one of charge, requests."],
      ["/usage?by=provider", "by", "`by` must be one of model, key, day, hour, surface, status, tag."],
      ["/usage.csv?by=model,route", "by", "`by` must be one of model, key, day, hour, surface, status, tag."],
      ["/usage?route=m@p", "route", "`route` is not available to members of an organization."],
      ["/requests?route=m@p", "route", "`route` is not available to members of an organization."],
      ["/requests.csv?address=203.0.113.7", "address", "`address` is not available to members of an organization."],
      ["/requests;route=m@p", "route", "`route` is not available to members of an organization."],
      ["/usage;by=route&limit=1", "by", "`by` must be one of model, key, day, hour, surface, status, tag."],
      ["/usage?by=model&by=provider", "by", "`by` must be one of model, key, day, hour, surface, status, tag."]
    ]
    for (const [path, param, message] of cases) assertRefused(yield* admin(path), badRequest(message, param))
    read(yield* admin("/usage?by=day,model&sort=requests"))
    read(yield* admin(`/requests?status=ok&tag=${ours.tag}`))
  })

  it.effect("change keys and webhooks with the role write only", function* () {
    const ours = yield* fullOrganization
    const { admin: reader } = yield* asOperator("read", ours.org)
    const { admin, name: actor } = yield* asOperator("write", ours.org)
    const body = { organization: ours.name, name: "ours" }
    assertRefused(yield* reader("/keys", { body }), refusals.needs("write"))
    const headers = { "idempotency-key": randomUUID() }
    const made = read(yield* admin("/keys", { body, headers }), 201)
    assert.isString(made.key)
    assert.deepStrictEqual(read(yield* admin("/keys", { body, headers }), 201), { ...made, key: null })
    assert.strictEqual(read(yield* admin(`/keys/${made.id}`, { method: "PATCH", body: { rpm: 7 } })).rpm, 7)
    assert.isNumber(read(yield* admin(`/keys/${made.id}/revoke`, { method: "POST" })).revoked_at)
    const hook = read(yield* admin("/webhooks", { body: { organization: ours.org, url: "https://a.example/" } }), 201)
    assert.match(hook.secret, /^whsec_/)
    read(yield* admin(`/webhooks/${hook.id}`, { method: "DELETE" }))
    const { admin: owner } = yield* asOperator("owner")
    const written = read(yield* owner(`/audit?actor=${actor}`)).data
    assert.deepStrictEqual(new Set(written.map(({ org }: { org: string }) => org)), new Set([ours.org]))
    assert.lengthOf(written, 5)
  })
})
