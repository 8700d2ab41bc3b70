import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { hostileTexts, inAddress, read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"

interface Row {
  readonly id: number
  readonly action: string
}

/** Three changes by one operator: an organization made, suspended and resumed. */
const changes = Effect.gen(function* () {
  const operator = yield* asOperator("write")
  const { admin } = operator
  const name = `audited ${randomUUID()}`
  const { id } = read(yield* admin("/organizations", { body: { name } }), 201)
  const suspended = read(yield* admin(`/organizations/${id}/suspend`, { method: "POST" }))
  read(yield* admin(`/organizations/${id}/resume`, { method: "POST" }))
  const list = (query: string) => Effect.map(admin(`/audit?${query}`), (answer) => read(answer))
  const actions = (query: string) =>
    Effect.map(list(query), ({ data }) => data.map(({ action }: Row) => action.replace("organizations.", "")))
  return { actor: operator.name, org: id, suspended, list, actions }
})

const all = ["resume", "suspend", "create"]

withLayer(layer)("the audit at the admin API", (it) => {
  it.effect("a row has who, how, what, and the records before and after", function* () {
    const { actor, list, org, suspended } = yield* changes
    const { data, has_more, next } = yield* list(`organization=${org}`)
    assert.deepStrictEqual({ has_more, next }, { has_more: false, next: null })
    const { after, at, before, id, org_name, ...row } = data[1]
    assert.isNumber(id)
    assert.approximately(at, Date.now() / 1000, 60)
    assert.deepStrictEqual(after, suspended)
    assert.deepStrictEqual(before, { ...suspended, suspended: false })
    assert.strictEqual(org_name, suspended.name)
    assert.deepInclude(row, { actor, via: "api", action: "organizations.suspend", target: org, org })
  })

  it.effect("each filter leaves out what it should", function* () {
    const { actions, org, suspended } = yield* changes
    const named = encodeURIComponent(suspended.name)
    assert.deepStrictEqual(yield* actions(`organization=${named}`), all)
    assert.deepStrictEqual(yield* actions(`target=${org}&action=organizations`), all)
    assert.deepStrictEqual(yield* actions(`target=${org}&action=organizations.suspend`), ["suspend"])
    assert.isEmpty(yield* actions(`target=${org}&action=organization`))
    assert.isEmpty(yield* actions(`target=${org}&action=organizations.s%25`))
    assert.isEmpty(yield* actions(`target=${org}&actor=somebody`))
    assert.deepStrictEqual(yield* actions(`target=${org}&since=1m`), all)
    assert.isEmpty(yield* actions(`target=${org}&until=1h`))
    const tomorrow = Math.ceil(Date.now() / 1000) + 86_400
    assert.deepStrictEqual(yield* actions(`target=${org}&until=${tomorrow}`), all)
    assert.isEmpty(yield* actions(`target=${org}&since=${tomorrow}`))
  })

  it.effect("pages follow each other without a gap or a repeat", function* () {
    const { list, org } = yield* changes
    const seen: Array<string> = []
    let after = ""
    for (let turn = 0; turn < 3; turn++) {
      const page = yield* list(`organization=${org}&limit=1${after}`)
      seen.push(...page.data.map(({ action }: Row) => action.replace("organizations.", "")))
      assert.strictEqual(page.has_more, turn < 2)
      after = `&after=${page.next}`
    }
    assert.deepStrictEqual(seen, all)
  })

  it.effect("a wrong filter is named, and a hostile one finds nothing", function* () {
    const { admin } = yield* asOperator("read")
    const refuse = (query: string, message: string, param: string) =>
      Effect.map(admin(`/audit?${query}`), (answer) => assertRefused(answer, badRequest(message, param)))
    yield* refuse("after=x", "`after` must be the `next` of a page.", "after")
    yield* refuse("organization=none", "There is no organization none.", "organization")
    yield* refuse("limit=1001", "`limit` must be an integer from 1 to 1000.", "limit")
    assert.include((yield* admin("/audit?since=tomorrow")).text, '"param":"since"')
    for (const text of hostileTexts) {
      for (const name of ["actor", "action", "target", "organization", "after", "since"]) {
        const { status } = yield* admin(`/audit?${name}=${inAddress(text)}`)
        assert.include([200, 400], status, `${name}=${JSON.stringify(text.slice(0, 20))}`)
      }
    }
  })

  it.effect("nobody reads it without signing in", function* () {
    const { admin } = yield* asOperator("read")
    assertRefused(yield* admin("/audit", { headers: { authorization: "" } }), refusals.notSignedIn())
  })
})
