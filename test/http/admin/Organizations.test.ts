import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Audit } from "../../../src/services/admin/AuditLog.ts"
import { read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"

const usd = "must be an amount in USD, 0 or more, up to 1000000000, with at most 9 decimals."

withLayer(layer)("organizations at the admin API", (it) => {
  it.effect("one is made, changed and deleted, each change with its row of the audit", function* () {
    const { admin, name: actor } = yield* asOperator("owner")
    const name = `acme ${randomUUID()}`
    const made = read(yield* admin("/organizations", { body: { name, credits_usd: 2.5 } }), 201)
    const { available_usd, balance_usd, held_usd, id } = made
    assert.deepStrictEqual(
      { available_usd, balance_usd, held_usd },
      { available_usd: 2.5, balance_usd: 2.5, held_usd: 0 }
    )
    const changed = { name: `${name} 2`, notify_below_usd: 1, fit_holds: true, cap_usd: 7.5, cap_period: "total" }
    const updated = read(yield* admin(`/organizations/${id}`, { method: "PATCH", body: changed }))
    assert.deepStrictEqual(updated, { ...made, ...changed, cap_spent_usd: 0 })
    assert.isTrue(read(yield* admin(`/organizations/${id}/suspend`, { method: "POST" })).suspended)
    assert.isFalse(read(yield* admin(`/organizations/${id}/resume`, { method: "POST" })).suspended)
    const inUse = yield* admin(`/organizations/${id}`, { method: "DELETE" })
    assert.strictEqual(inUse.status, 409)
    assert.include(inUse.text, "has a balance of 2.5 USD")

    const rows = yield* (yield* Audit).list(OrganizationScope.all, { org: id, limit: 10 })
    assert.deepStrictEqual(
      rows.map(({ action, actor, target, via }) => ({ action, actor, target, via })),
      ["resume", "suspend", "update", "create"].map((action) => ({
        action: `organizations.${action}`,
        actor,
        target: id,
        via: "api"
      }))
    )
    assert.deepStrictEqual(rows[2]?.before, made)
    assert.deepStrictEqual(rows[2]?.after, updated)
  })

  it.effect("a threshold above the balance is kept, with a warning", function* () {
    const { admin } = yield* asOperator("write")
    const made = read(yield* admin("/organizations", { body: { name: randomUUID(), credits_usd: 3 } }), 201)
    const change = (body: object) => admin(`/organizations/${made.id}`, { method: "PATCH", body })
    const changed = read(yield* change({ notify_below_usd: 5 }))
    assert.strictEqual(changed.notify_below_usd, 5)
    assert.lengthOf(changed.warnings, 1)
    assert.include(changed.warnings[0], "The balance of 3 USD is already below 5 USD")
    assert.notProperty(read(yield* change({ fit_holds: true })), "warnings")
    assert.notProperty(read(yield* change({ notify_below_usd: 3 })), "warnings")
  })

  it.effect("a discount below the cost is kept, with a warning, and listed with the catalog's losses", function* () {
    const { admin } = yield* asOperator("write")
    const made = read(yield* admin("/organizations", { body: { name: randomUUID() } }), 201)
    assert.strictEqual(made.discount_percent, 0)
    const change = (discount_percent: unknown) =>
      admin(`/organizations/${made.id}`, { method: "PATCH", body: { discount_percent } })
    const loss = "bare@clips: the price of 6 s clip is below what the provider charges"
    const changed = read(yield* change(20.01))
    assert.strictEqual(changed.discount_percent, 20.01)
    assert.deepStrictEqual(changed.warnings, [`At a discount of 20.01 %, ${loss}.`])
    assert.include(read(yield* admin("/catalog")).losses, `at a discount of 20.01 %, ${loss}`)
    const create = (discount_percent: unknown) =>
      admin("/organizations", { method: "POST", body: { name: "discounted at once", discount_percent } })
    assert.strictEqual((yield* create(100.5)).status, 400)
    const atOnce = read(yield* create(20.01), 201)
    assert.deepStrictEqual([atOnce.discount_percent, atOnce.warnings], [20.01, [`At a discount of 20.01 %, ${loss}.`]])
    const alert = read(yield* admin("/now")).attention.at(-1)
    assert.deepStrictEqual(alert, {
      kind: "discount_below_cost",
      title: "1 price is below cost at the discounts of 2 organizations",
      detail: "The largest discount is 20.01 %. Lower it, or raise the prices.",
      href: "#/models"
    })
    yield* admin(`/organizations/${atOnce.id}`, { method: "PATCH", body: { discount_percent: 0 } })
    for (const harmless of [20, -20.01, 0]) assert.notProperty(read(yield* change(harmless)), "warnings")
    assert.notInclude(read(yield* admin("/catalog")).losses.join(), "discount")
  })

  it.effect("a discount is a percentage from -100 to 100 with two decimals", function* () {
    const { admin } = yield* asOperator("write")
    const made = read(yield* admin("/organizations", { body: { name: randomUUID() } }), 201)
    const change = (body: string) =>
      admin(`/organizations/${made.id}`, { method: "PATCH", body, headers: { "content-type": "application/json" } })
    for (const [json, stored] of [
      ["100", 100],
      ["-100", -100],
      ["12.50", 12.5],
      ["1e1", 10],
      ["0.01", 0.01],
      ["99.99", 99.99],
      ["-0", 0]
    ] as const) {
      assert.strictEqual(read(yield* change(`{"discount_percent": ${json}}`)).discount_percent, stored, json)
    }
    const message = "`discount_percent` must be a percentage from -100 to 100 with at most two decimals."
    for (const json of [
      "100.01",
      "-100.01",
      "1000",
      "1e300",
      "33.333333",
      "0.001",
      "1e-7",
      "12.5000001",
      '"10"',
      '"NaN"',
      "null",
      "[10]",
      "true"
    ]) {
      assertRefused(yield* change(`{"discount_percent": ${json}}`), badRequest(message, "discount_percent"))
    }
    assert.strictEqual(read(yield* admin(`/organizations/${made.id}`)).discount_percent, 0)
  })

  it.effect("a cap and its period come, stay and go together", function* () {
    const { admin } = yield* asOperator("write")
    const made = read(yield* admin("/organizations", { body: { name: randomUUID() } }), 201)
    const none = { cap_usd: null, cap_period: null, cap_spent_usd: null, cap_resets_at: null }
    assert.deepInclude(made, none)
    const change = (body: object) => admin(`/organizations/${made.id}`, { method: "PATCH", body })
    for (const [body, message, param] of [
      [{ cap_usd: 1 }, "`cap_usd` needs `cap_period`: day, week, month or total.", "cap_period"],
      [{ cap_period: "day" }, "`cap_period` needs `cap_usd`.", "cap_usd"],
      [{ cap_usd: null, cap_period: "day" }, "`cap_period` needs a spending cap.", "cap_period"],
      [{ cap_period: "year" }, "`cap_period` must be one of day, week, month, total.", "cap_period"]
    ] as const) {
      assertRefused(yield* change(body), badRequest(message, param))
    }
    const capped = read(yield* change({ cap_usd: "0.000000001", cap_period: "month" }))
    assert.deepInclude(capped, { cap_usd: 1e-9, cap_period: "month", cap_spent_usd: 0 })
    assert.isAbove(capped.cap_resets_at, Date.now() / 1000)
    assert.deepInclude(read(yield* change({ cap_usd: 2 })), { cap_usd: 2, cap_period: "month" })
    const missing = "`cap_usd` needs `cap_period`: day, week, month or total."
    assertRefused(yield* change({ cap_period: null }), badRequest(missing, "cap_period"))
    assert.deepInclude(read(yield* change({ cap_period: "total" })), {
      cap_usd: 2,
      cap_period: "total",
      cap_resets_at: null
    })
    assert.deepStrictEqual(read(yield* change({ cap_usd: null })), made)
  })

  it.effect("a repeated write with its key answers the first result and changes nothing", function* () {
    const { admin } = yield* asOperator("write")
    const body = { name: `twice ${randomUUID()}`, credits_usd: 1 }
    const headers = { "idempotency-key": randomUUID() }
    const answers = yield* Effect.all(
      [1, 2, 3].map(() => admin("/organizations", { body, headers })),
      {
        concurrency: "unbounded"
      }
    )
    assert.strictEqual(new Set(answers.map(({ text }) => text)).size, 1)
    const replayed = answers.filter((answer) => answer.headers.get("idempotency-replayed") === "true")
    assert.strictEqual(replayed.length, 2)
    assertRefused(
      yield* admin("/organizations", { body: { ...body, credits_usd: 2 }, headers }),
      badRequest("The `Idempotency-Key` was used for another change.")
    )
    const other = yield* asOperator("write")
    assertRefused(
      yield* other.admin("/organizations", { body, headers }),
      refusals.conflict(`An organization named ${body.name} already exists.`, "name")
    )
  })

  it.effect(
    "a repeated change of one that was named has its first result, whatever has that name by now",
    function* () {
      const { admin } = yield* asOperator("owner")
      const [first, second] = [`named ${randomUUID()}`, `named ${randomUUID()}`]
      const at = (name: string) => `/organizations/${encodeURIComponent(name)}`
      const { id } = read(yield* admin("/organizations", { body: { name: first } }), 201)
      const rename = admin(at(first), {
        method: "PATCH",
        body: { name: second },
        headers: { "idempotency-key": "rename" }
      })
      const remove = admin(at(second), { method: "DELETE", headers: { "idempotency-key": "delete" } })
      for (const change of [rename, remove]) {
        const made = yield* change
        assert.strictEqual(read(made).id, id)
        const again = yield* change
        assert.deepStrictEqual(read(again), read(made))
        assert.strictEqual(again.headers.get("idempotency-replayed"), "true")
      }
      const successor = read(yield* admin("/organizations", { body: { name: second } }), 201)
      assert.strictEqual(read(yield* remove).id, id)
      assert.deepStrictEqual(read(yield* admin(at(second))), successor)
      const rows = yield* (yield* Audit).list(OrganizationScope.all, { target: id, limit: 10 })
      assert.deepStrictEqual(
        rows.map(({ action }) => action),
        ["organizations.delete", "organizations.update", "organizations.create"]
      )
    }
  )

  it.effect("a change that is refused leaves no row and frees its key", function* () {
    const { admin, name } = yield* asOperator("write")
    const headers = { "idempotency-key": randomUUID() }
    const refused = yield* admin("/organizations/none/suspend", { method: "POST", headers })
    assertRefused(refused, refusals.notFound("There is no organization none."))
    assert.isEmpty(yield* (yield* Audit).list(OrganizationScope.all, { actor: name, limit: 10 }))
    read(yield* admin("/organizations", { body: { name: randomUUID() }, headers }), 201)
  })

  it.effect("a role allows what it says", function* () {
    const reader = yield* asOperator("read")
    const writer = yield* asOperator("write")
    assertRefused(yield* reader.admin("/organizations", { body: { name: "x" } }), refusals.needs("write"))
    const { id } = read(yield* writer.admin("/organizations", { body: { name: randomUUID() } }), 201)
    assert.strictEqual(read(yield* reader.admin(`/organizations/${id}`)).id, id)
    assertRefused(yield* writer.admin(`/organizations/${id}`, { method: "DELETE" }), refusals.needs("owner"))
  })

  it.effect("a list comes page by page, newest first, by a part of the name", function* () {
    const { admin } = yield* asOperator("write")
    const mark = `100%_${randomUUID()}`
    for (const number of [1, 2, 3]) read(yield* admin("/organizations", { body: { name: `${mark} ${number}` } }), 201)
    const search = `search=${encodeURIComponent(mark)}&limit=2`
    const first = read(yield* admin(`/organizations?${search}`))
    const rest = read(yield* admin(`/organizations?${search}&after=${first.next}`))
    const names = [...first.data, ...rest.data].map(({ name }) => name)
    assert.deepStrictEqual(
      names,
      [3, 2, 1].map((number) => `${mark} ${number}`)
    )
    assert.deepStrictEqual([first.has_more, rest.has_more, rest.next], [true, false, null])
  })

  it.effect("one that is deleted while it gets credits and a key keeps neither", function* () {
    const { admin } = yield* asOperator("owner")
    const once = Effect.gen(function* () {
      const { id } = read(yield* admin("/organizations", { body: { name: randomUUID() } }), 201)
      const changes = [
        admin(`/organizations/${id}`, { method: "DELETE" }),
        admin("/credits", { body: { organization: id, type: "top_up", amount_usd: 1 } }),
        admin("/keys", { body: { organization: id } })
      ] as const
      const [deleted, paid] = yield* Effect.all(changes, { concurrency: "unbounded" })
      assert.deepStrictEqual([deleted.status, paid.status], paid.status === 201 ? [409, 201] : [200, 400])
      const { data } = read(yield* admin(`/keys?organization=${id}&state=live`))
      assert.lengthOf(data, deleted.status === 409 ? 1 : 0)
    })
    yield* Effect.replicateEffect(once, 20, { concurrency: 2, discard: true })
  })

  it.effect("what is wrong is named", function* () {
    const { admin } = yield* asOperator("write")
    const send = (body: unknown) => admin("/organizations", { body })
    assertRefused(yield* send({}), badRequest("`name` must be a string.", "name"))
    assertRefused(yield* send({ name: 5 }), badRequest("`name` must be a string.", "name"))
    assertRefused(yield* send({ name: "a", credits_usd: -1 }), badRequest(`\`credits_usd\` ${usd}`, "credits_usd"))
    assertRefused(yield* send({ name: "a", credits_usd: 1e-10 }), badRequest(`\`credits_usd\` ${usd}`, "credits_usd"))
    const refused = yield* send({ name: " a" })
    assert.strictEqual(refused.status, 400)
    assert.include(refused.text, '"param":"name"')
    assertRefused(yield* send("{"), badRequest("The body is not valid JSON."))
    assertRefused(yield* send("[]"), badRequest("The body must be a JSON object."))
    const plain = { "content-type": "text/plain" }
    assert.strictEqual((yield* admin("/organizations", { body: `{"name":"b"}`, headers: plain })).status, 400)
    assertRefused(
      yield* admin("/organizations?limit=0"),
      badRequest("`limit` must be an integer from 1 to 1000.", "limit")
    )
    const headers = { "idempotency-key": "ä".repeat(3) }
    assert.strictEqual((yield* admin("/organizations", { body: { name: randomUUID() }, headers })).status, 400)
  })
})
