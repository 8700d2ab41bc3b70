import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { adminAt, hire, read } from "../../harness/client/AdminClient.ts"
import { callAt } from "../../harness/client/HttpCalls.ts"
import { eventually, times } from "../../harness/database/Money.ts"
import { customer, layer, ServedGateway } from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import * as FakeStripe from "../../harness/stripe/FakeStripe.ts"
import type { StripeEvent } from "../../harness/stripe/StripeAccount.ts"
import * as StripeGateway from "../../harness/stripe/StripeGateway.ts"

/** An organization, its operator, and a payment of it. */
const setUp = Effect.fnUntraced(function* (amount = 20) {
  const { url } = yield* ServedGateway
  const payer = yield* customer({ nanoUsd: 0n })
  const { token } = yield* hire("write")
  const admin = adminAt(url, token)
  const body = { organization: payer.org, amount_usd: amount }
  const page = read(yield* admin("/checkout", { body }), 201)
  const shown = read(yield* admin(`/payments/${page.id}`))
  return { ...payer, admin, page, session: String(shown.session), url }
})

const counted = Effect.map(
  Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT id FROM payment_events`),
  ({ length }) => length
)

withLayer(StripeGateway.layer())("a gateway that takes payments by Stripe", (it) => {
  it.effect("makes a page for a payment that it has written down", function* () {
    const { account, calls } = yield* StripeGateway.Stripe
    const { org, page, session } = yield* setUp(12.5)
    assert.match(page.id, /^pay_[0-9a-f]{32}$/)
    assert.strictEqual(page.url, account.sessions.get(session)?.["url"])
    const made = calls.findLast(({ method }) => method === "POST")
    assert.strictEqual(made?.idempotencyKey, page.id)
    const expected = {
      mode: "payment",
      "line_items[0][price_data][currency]": "usd",
      "line_items[0][price_data][unit_amount]": "1250",
      "line_items[0][quantity]": "1",
      "metadata[payment]": page.id,
      "metadata[organization]": org
    }
    for (const [name, value] of Object.entries(expected)) assert.strictEqual(made?.form.get(name), value)
  })

  it.effect("finds the page of a payment again as long as it is open", function* () {
    const { account } = yield* StripeGateway.Stripe
    const { admin, page, session, url } = yield* setUp()
    const again = (id: string) => admin(`/payments/${id}/checkout`, { method: "POST" })
    const sessions = account.sessions.size
    assert.deepStrictEqual(read(yield* again(page.id)), page)
    assert.strictEqual(account.sessions.size, sessions)
    const other = adminAt(url, (yield* hire("write", (yield* customer()).org)).token)
    assert.strictEqual((yield* other(`/payments/${page.id}/checkout`, { method: "POST" })).status, 404)
    yield* FakeStripe.deliver(url, account.complete(session))
    const { status, text } = yield* again(page.id)
    assert.strictEqual(status, 409)
    assert.include(text, "is completed. Do not pay it again.")
  })

  it.effect("tries a page again under the same key, and makes one session", function* () {
    const { account, calls, troubles } = yield* StripeGateway.Stripe
    const before = account.sessions.size
    troubles.push("break after", 500)
    const { page } = yield* setUp()
    const keys = calls.flatMap(({ idempotencyKey }) => (idempotencyKey === page.id ? [idempotencyKey] : []))
    assert.lengthOf(keys, 3)
    assert.strictEqual(account.sessions.size, before + 1)
  })

  it.effect("refuses amounts beyond its bounds and in parts of cents", function* () {
    const { admin, org } = yield* setUp()
    for (const amount_usd of [4.99, 5000.01, 20.001, -5, "x"]) {
      const { status, text } = yield* admin("/checkout", { body: { organization: org, amount_usd } })
      assert.strictEqual(status, 400, text)
      assert.strictEqual(JSON.parse(text).error.param, "amount_usd")
    }
    const unnamed = yield* admin("/checkout", { body: { amount_usd: 20 } })
    assert.deepInclude(JSON.parse(unnamed.text).error, { param: "organization" })
  })

  it.effect("credits what was paid, however many deliveries come at once", function* () {
    const { account } = yield* StripeGateway.Stripe
    const { admin, funds, page, session, url } = yield* setUp()
    const event = account.complete(session)
    const answers = yield* Effect.forEach(times(20), () => FakeStripe.deliver(url, event), { concurrency: 20 })
    assert.deepStrictEqual([...new Set(answers.map(({ status }) => status))], [200])
    assert.strictEqual((yield* funds).balance, 20_000_000_000n)
    const shown = read(yield* admin(`/payments/${page.id}`))
    assert.deepInclude(shown, { status: "paid", amount_usd: 20, reversed_usd: 0 })
    assert.deepStrictEqual(shown.events.length, 1)
    const [listed] = read(yield* admin(`/payments?status=paid&limit=1`)).data
    assert.strictEqual(listed.id, page.id)
  })

  it.effect("refuses what Stripe did not sign for it now, and keeps nothing of it", function* () {
    const { account } = yield* StripeGateway.Stripe
    const { funds, session, url } = yield* setUp()
    const event = account.complete(session)
    const body = JSON.stringify(event)
    const live = JSON.stringify({ ...event, livemode: true })
    const odd = [
      { id: "evt_\0" },
      { id: "e".repeat(256) },
      { type: "a\0" },
      { created: -1 },
      { created: Number.MAX_SAFE_INTEGER },
      { data: { object: { id: "cs_\0" } } }
    ].map((fields) => JSON.stringify({ ...event, ...fields }))
    const large = JSON.stringify({ ...event, padding: "x".repeat(256_000) })
    const before = yield* counted
    const send = (text: string, signature?: string) =>
      callAt(`${url}/stripe/webhook`, {
        body: text,
        headers: signature === undefined ? {} : { "stripe-signature": signature }
      })
    const tooLong = yield* send(large, FakeStripe.sign(large))
    assert.strictEqual(tooLong.status, 413)
    const refused = [
      yield* send(body),
      yield* send(body, "t=1,v1=none"),
      yield* send(body, FakeStripe.sign(body, { secret: "whsec_other" })),
      yield* send(body, FakeStripe.sign(body, { secret: "" })),
      yield* send(body, FakeStripe.sign(body, { age: 310 })),
      yield* send(body, FakeStripe.sign(body, { age: -310 })),
      yield* send(`${body} `, FakeStripe.sign(body)),
      yield* send(live, FakeStripe.sign(live)),
      yield* send("{", FakeStripe.sign("{")),
      ...(yield* Effect.forEach(odd, (text) => send(text, FakeStripe.sign(text))))
    ]
    assert.deepStrictEqual(
      refused.map(({ status }) => status),
      refused.map(() => 400)
    )
    assert.strictEqual(yield* counted, before)
    assert.strictEqual((yield* funds).balance, 0n)
    assert.strictEqual((yield* FakeStripe.deliver(url, event)).status, 200)
    assert.strictEqual((yield* funds).balance, 20_000_000_000n)
  })

  it.effect(
    "writes an event of an unknown type down, and asks for one again while Stripe cannot be asked",
    function* () {
      const { account, troubles } = yield* StripeGateway.Stripe
      const { funds, session, url } = yield* setUp()
      const event = account.complete(session)
      const unknown: StripeEvent = { ...event, id: `${event.id}y`, type: "customer.created" }
      const before = yield* counted
      assert.strictEqual((yield* FakeStripe.deliver(url, unknown)).status, 200)
      assert.strictEqual((yield* FakeStripe.deliver(url, unknown)).status, 200)
      assert.strictEqual(yield* counted, before + 1)
      troubles.push(500, 500, 500)
      assert.strictEqual((yield* FakeStripe.deliver(url, event)).status, 503)
      assert.strictEqual(yield* counted, before + 1)
      assert.strictEqual((yield* FakeStripe.deliver(url, event)).status, 200)
      assert.strictEqual((yield* funds).balance, 20_000_000_000n)
    }
  )

  it.effect("answers 503 to an event whose data cannot be read or stored", function* () {
    const { account } = yield* StripeGateway.Stripe
    const { admin, funds, org, page, session, url } = yield* setUp()
    const sql = yield* SqlClient.SqlClient
    const event = account.complete(session)
    const before = yield* counted
    const real = account.sessions.get(session)
    for (const amount_total of [1e15, -1, 0.5, "2000"]) {
      account.sessions.set(session, { ...event.data.object, amount_total })
      assert.strictEqual((yield* FakeStripe.deliver(url, event)).status, 503, String(amount_total))
    }
    if (real !== undefined) account.sessions.set(session, real)
    const setBalance = (balance: bigint) => sql`
      WITH entered AS (
        INSERT INTO ledger_entries (org_id, kind, amount, note)
        SELECT id, 'adjustment', ${balance}::bigint - balance, 'test' FROM organizations WHERE id = ${org}
      )
      UPDATE organizations SET balance = ${balance}::bigint WHERE id = ${org}`
    yield* setBalance(2n ** 63n - 1n)
    const full = yield* FakeStripe.deliver(url, event)
    assert.deepStrictEqual(
      [full.status, JSON.parse(full.text).error.message],
      [503, "The gateway is busy; retry later."]
    )
    assert.strictEqual(yield* counted, before)
    yield* setBalance(0n)
    assert.strictEqual((yield* FakeStripe.deliver(url, event)).status, 200)
    assert.strictEqual((yield* funds).balance, 20_000_000_000n)
    assert.strictEqual(read(yield* admin(`/payments/${page.id}`)).status, "paid")
  })

  it.effect("suspends an organization's requests while a payment is disputed", function* () {
    const { account } = yield* StripeGateway.Stripe
    const { openai, session, url } = yield* setUp()
    yield* FakeStripe.deliver(url, account.complete(session))
    const ask = Effect.promise(() =>
      openai.chat.completions
        .create({ model: "gemini-3.6-flash", messages: [{ role: "user", content: "hi" }] })
        .then(() => "answered")
        .catch((error: { status: number; code: string; type: string; error: { message: string } }) => error)
    )
    assert.strictEqual(yield* ask, "answered")
    const dispute = account.dispute(account.intentOf(session), 2000)
    yield* FakeStripe.deliver(url, account.events.at(-1) ?? account.complete(session))
    const refused = yield* eventually(ask, (answer) => answer !== "answered")
    assert.deepInclude(refused, { status: 402, type: "insufficient_quota", code: "payment_disputed" })
    const { admin } = yield* setUp()
    const { attention } = read(yield* admin("/now"))
    assert.include(
      attention.map(({ kind }: { kind: string }) => kind),
      "payment_disputed"
    )
    yield* FakeStripe.deliver(url, account.close(dispute, "won"))
    yield* eventually(ask, (answer) => answer === "answered")
  })

  it.effect("says that a payment was not credited until it is given back", function* () {
    const { account } = yield* StripeGateway.Stripe
    const { admin, url } = yield* setUp()
    const { id } = account.createSession({ cents: 700 })
    yield* FakeStripe.deliver(url, account.complete(id))
    const refused = Effect.map(admin("/now"), (answer) =>
      read(answer).attention.filter(({ kind }: { kind: string }) => kind === "payment_refused")
    )
    const [told] = yield* eventually(refused, ({ length }) => length === 1)
    assert.strictEqual(told.detail, "The session belongs to no payment that was started here.")
    account.refund(account.intentOf(id), 700)
    yield* FakeStripe.deliver(url, account.events.at(-1) ?? account.complete(id))
    yield* eventually(refused, ({ length }) => length === 0)
  })

  it.effect("charges refunds of a credited payment, and shows those without an amount in USD", function* () {
    const { account } = yield* StripeGateway.Stripe
    const { admin, funds, org, url } = yield* setUp()
    const { id } = account.createSession({ cents: 700 })
    yield* FakeStripe.deliver(url, account.complete(id))
    const intent = account.intentOf(id)
    const body = { organization: org, type: "top_up", amount_usd: 7, ref: `stripe:${intent}` }
    read(yield* admin("/credits", { body }), 201)
    const [payment] = read(yield* admin(`/payments?organization=${org}&status=paid`)).data
    assert.deepInclude(payment, { amount_usd: 7, session: id, payment_intent: intent })
    account.refund(intent, 200)
    const euros = account.refund(intent, 150, "succeeded", { currency: "eur" })
    for (const event of account.events) yield* FakeStripe.deliver(url, event)
    assert.strictEqual((yield* funds).balance, 5_000_000_000n)
    const needed = Effect.map(admin("/now"), (answer) =>
      read(answer).attention.filter(({ kind }: { kind: string }) => kind === "payment_reversal_amount")
    )
    const [told] = yield* eventually(needed, ({ length }) => length === 1)
    assert.deepStrictEqual(told, {
      kind: "payment_reversal_amount",
      title: `The refund ${euros} of 1.50 EUR is not charged yet`,
      detail: `Stripe states no USD amount. Enter it with: gateway payments reverse ${payment.id} ${euros} USD`,
      org,
      org_name: payment.org_name,
      href: `#/payments/${payment.id}`
    })
    const reverse = (id: string, amount_usd: unknown) =>
      admin(`/payments/${payment.id}/reversals/${id}`, { body: { amount_usd } })
    assert.strictEqual((yield* reverse("re_none", 1)).status, 404)
    assert.strictEqual(JSON.parse((yield* reverse(euros, -1)).text).error.param, "amount_usd")
    const member = adminAt(url, (yield* hire("write", org)).token)
    const path = `/payments/${payment.id}/reversals/${euros}`
    assert.include([403, 404], (yield* member(path, { body: { amount_usd: 0 } })).status)
    assert.strictEqual(read(yield* reverse(euros, 1.6)).reversed_usd, 3.6)
    assert.strictEqual((yield* funds).balance, 3_400_000_000n)
    yield* eventually(needed, ({ length }) => length === 0)
  })
})

withLayer(layer(Effect.succeed({ env: { SANDBOX: "true" } })))("a gateway without Stripe", (it) => {
  it.effect("has none of its paths", function* () {
    const { url } = yield* ServedGateway
    const { token } = yield* hire("owner")
    const unknown = yield* adminAt(url, token)("/no-such")
    for (const path of ["/payments", "/payments/pay_1", "/checkout"]) {
      const body = path === "/checkout" ? { body: { amount_usd: 20 } } : {}
      const { status, text } = yield* adminAt(url, token)(path, body)
      assert.deepStrictEqual([status, text], [404, unknown.text], path)
      assert.strictEqual((yield* callAt(`${url}/admin/v1${path}`, body)).status, 404)
    }
    const posted = yield* callAt(`${url}/stripe/webhook`, { body: "{}", headers: { "stripe-signature": "t=1,v1=x" } })
    assert.strictEqual(posted.status, 404)
    assert.strictEqual(JSON.parse(posted.text).error.code, "unknown_endpoint")
  })
})
