import { randomInt, randomUUID } from "node:crypto"
import { Effect } from "effect"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { Audit } from "../../../src/services/admin/AuditLog.ts"
import { Organizations } from "../../../src/services/admin/Organizations.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { hostileTexts, read, refusals } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"

const customer = Effect.flatMap(Organizations, ({ create }) => create({ name: `customer ${randomUUID()}` }))

const amount = (allowed: string) =>
  `\`amount_usd\` must be an amount ${allowed}, up to 1000000000, with at most 9 decimals`

withLayer(layer)("credits at the admin API", (it) => {
  it.effect("payments and corrections are entered to the nano-dollar, each with its row of the audit", function* () {
    const { admin, name: actor } = yield* asOperator("write")
    const { id: org, name } = yield* customer
    const payment = { organization: name, type: "top_up", amount_usd: "12.000000001", ref: `inv ${org}`, note: "bank" }
    const paid = read(yield* admin("/credits", { body: payment }), 201)
    const { amount_usd, kind, note, ref, replayed } = paid
    assert.deepStrictEqual(
      { amount_usd, kind, note, ref, replayed },
      { amount_usd: 12.000000001, kind: "top_up", note: "bank", ref: `inv ${org}`, replayed: false }
    )
    assert.deepStrictEqual(read(yield* admin("/credits", { body: payment }), 201), { ...paid, replayed: true })
    const correction = { organization: org, type: "adjustment", amount_usd: -2.5, note: "wrong way" }
    const corrected = read(yield* admin("/credits", { body: correction }), 201)
    assert.deepInclude(corrected, { org, kind: "adjustment", amount_usd: -2.5, note: "wrong way" })
    assert.strictEqual(read(yield* admin(`/organizations/${org}`)).balance_usd, 9.500000001)

    const rows = yield* (yield* Audit).list(OrganizationScope.all, { org, limit: 10 })
    assert.deepStrictEqual(
      rows.map(({ action, actor, after, target }) => ({ action, actor, after, target })),
      [
        { action: "credits.adjust", actor, after: corrected, target: corrected.id },
        { action: "credits.top_up", actor, after: { ...paid, replayed: true }, target: paid.id },
        { action: "credits.top_up", actor, after: paid, target: paid.id }
      ]
    )
    assert.deepStrictEqual((yield* (yield* LedgerAdmin).verify).violations, [])
  })

  it.effect("the longest reference there may be is entered once, whatever its bytes", function* () {
    const { admin } = yield* asOperator("write")
    const { id: org } = yield* customer
    // Unlike each other, for the database compresses what it compares.
    const ref = String.fromCodePoint(...Array.from({ length: 800 }, () => randomInt(0x4e00, 0x9fff)))
    const body = { organization: org, type: "top_up", amount_usd: 1, ref }
    const paid = read(yield* admin("/credits", { body }), 201)
    assert.deepStrictEqual(read(yield* admin("/credits", { body }), 201), { ...paid, replayed: true })
  })

  it.effect("what is wrong is named, and changes nothing", function* () {
    const { admin } = yield* asOperator("write")
    const { id: org } = yield* customer
    const send = (body: object) => admin("/credits", { body: { organization: org, type: "top_up", ...body } })
    const filled = "must be a non-blank string of at most 1000 characters."
    const reference = "must be a non-blank string of at most 800 characters."
    const nonZero = `${amount("in USD, not 0")}; a negative amount lowers the balance.`
    const refusals = [
      [{ organization: "nobody", amount_usd: 1 }, "There is no organization nobody.", "organization"],
      [{ type: "gift", amount_usd: 1 }, "`type` must be one of top_up, adjustment.", "type"],
      [{}, nonZero, "amount_usd"],
      [{ amount_usd: 0 }, nonZero, "amount_usd"],
      [{ amount_usd: "1e3" }, nonZero, "amount_usd"],
      [{ amount_usd: 1e10 }, nonZero, "amount_usd"],
      [{ amount_usd: "0.0000000001" }, nonZero, "amount_usd"],
      [{ amount_usd: -1 }, `${amount("above 0 in USD")}.`, "amount_usd"],
      [{ amount_usd: 1, ref: " " }, `\`ref\` ${reference}`, "ref"],
      [{ amount_usd: 1, ref: "x".repeat(801) }, `\`ref\` ${reference}`, "ref"],
      [{ amount_usd: 1, note: 5 }, `\`note\` ${filled}`, "note"],
      [{ amount_usd: 1, force: true }, "`force` is only for adjustments.", "force"],
      [{ type: "adjustment", amount_usd: 1, note: "n", ref: "r" }, "`ref` is only for top-ups.", "ref"],
      [{ type: "adjustment", amount_usd: 1 }, "An adjustment needs a `note`.", "note"]
    ] as const
    for (const [body, message, param] of refusals) assertRefused(yield* send(body), badRequest(message, param))
    const reserved = yield* send({ amount_usd: 1, ref: "refund:x" })
    assert.strictEqual(reserved.status, 400)
    assert.include(reserved.text, "is reserved for refunds")
    const taken = yield* send({ amount_usd: 1, ref: "stripe:re_1" })
    assert.include(taken.text, "is reserved for refunds")
    assert.deepStrictEqual(read(yield* admin(`/ledger?organization=${org}`)).data, [])
    assert.deepStrictEqual(yield* (yield* Audit).list(OrganizationScope.all, { org, limit: 1 }), [])
  })

  it.effect("a reference of another payment is a conflict, and so is taking what is not there", function* () {
    const { admin } = yield* asOperator("write")
    const owner = yield* asOperator("owner")
    const { id: org } = yield* customer
    const ref = `inv ${randomUUID()}`
    const pay = (amount_usd: number) => ({ body: { organization: org, type: "top_up", amount_usd, ref } })
    read(yield* admin("/credits", pay(1)), 201)
    const taken = `The reference ${ref} is already used by a payment of another organization or amount.`
    assertRefused(yield* admin("/credits", pay(2)), refusals.conflict(taken, "ref"))
    const take = { organization: org, type: "adjustment", amount_usd: -3, note: "n" }
    const short = "Only 1 USD is available. An owner can set `force` to allow a negative balance."
    assertRefused(yield* admin("/credits", { body: take }), refusals.conflict(short, "amount_usd"))
    const forced = { body: { ...take, force: true } }
    assertRefused(yield* admin("/credits", forced), refusals.needs("owner"))
    assert.strictEqual(read(yield* owner.admin("/credits", forced), 201).amount_usd, -3)
    assert.strictEqual(read(yield* admin(`/organizations/${org}`)).balance_usd, -2)
  })

  it.effect("a payment that is sent again with its key is entered once, however many come at once", function* () {
    const { admin } = yield* asOperator("write")
    const { id: org } = yield* customer
    const headers = { "idempotency-key": randomUUID() }
    const body = { organization: org, type: "top_up", amount_usd: 7 }
    const answers = yield* Effect.all(
      Array.from({ length: 10 }, () => admin("/credits", { body, headers })),
      { concurrency: "unbounded" }
    )
    assert.strictEqual(new Set(answers.map(({ text }) => text)).size, 1)
    assert.lengthOf(
      answers.filter((answer) => answer.headers.get("idempotency-replayed") === "true"),
      9
    )
    assert.lengthOf(read(yield* admin(`/ledger?organization=${org}`)).data, 1)
    const other = yield* admin("/credits", { body: { ...body, amount_usd: 8 }, headers })
    assertRefused(other, badRequest("The `Idempotency-Key` was used for another change."))
  })

  it.effect("notes and references are kept as they are or refused", function* () {
    const { admin } = yield* asOperator("write")
    const { id: org } = yield* customer
    for (const text of hostileTexts) {
      for (const field of ["note", "ref"]) {
        const body = { organization: org, type: "top_up", amount_usd: 1, [field]: text }
        const answer = yield* admin("/credits", { body })
        if (answer.status === 400) assert.include(answer.text, `\`${field}\` must be a non-blank string`)
        else assert.strictEqual(read(answer, 201)[field], text)
      }
      const refund = yield* admin("/credits/refunds", { body: { request_id: text, note: "n" } })
      assert.oneOf(refund.status, [400, 404])
    }
  })

  it.effect("a reader enters nothing", function* () {
    const { admin } = yield* asOperator("read")
    const { id: org } = yield* customer
    const body = { organization: org, type: "top_up", amount_usd: 1 }
    assertRefused(yield* admin("/credits", { body }), refusals.needs("write"))
    assertRefused(yield* admin("/credits/refunds", { body: { request_id: "x", note: "n" } }), refusals.needs("write"))
  })
})
