import { createServer } from "node:http"
import { Context, Effect, Layer } from "effect"
import { adminAt, hire, read } from "../harness/client/AdminClient.ts"
import { callAt, chat, talk } from "../harness/client/HttpCalls.ts"
import { eventually } from "../harness/database/Money.ts"
import * as Served from "../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../harness/It.ts"
import { freePort, listen } from "../harness/Listening.ts"
import { standIn } from "../harness/stripe/StandIn.ts"

type StandIn = Effect.Effect.Success<ReturnType<typeof standIn>>
class Stripe extends Context.Tag("test/StandIn")<Stripe, StandIn>() {}

/** Both need the other's address before they start. */
const suite = Layer.unwrapScoped(
  Effect.gen(function* () {
    const [port, own] = [yield* freePort, yield* freePort]
    const secrets = { secretKey: "sk_test_stand_in", webhookSecret: "whsec_stand_in" }
    const stripe = yield* standIn({ port: own, gateway: `http://127.0.0.1:${port}`, ...secrets })
    const env = {
      PORT: String(port),
      SANDBOX: "true",
      STRIPE_SECRET_KEY: secrets.secretKey,
      STRIPE_WEBHOOK_SECRET: secrets.webhookSecret,
      STRIPE_API_BASE: stripe.url
    }
    return Layer.merge(Layer.succeed(Stripe, stripe), Served.layer(Effect.succeed({ env })))
  })
)

/** An organization without credits, whose page for 20 USD is open. */
const begin = Effect.gen(function* () {
  const { url } = yield* Stripe
  const gateway = yield* Served.ServedGateway
  const payer = yield* Served.customer({ nanoUsd: 0n })
  const admin = adminAt(gateway.url, (yield* hire("write")).token)
  const made = read(yield* admin("/checkout", { body: { organization: payer.org, amount_usd: 20 } }), 201)
  const page = String(made.url)
  const act = (path: string, fields: Readonly<Record<string, string>>) =>
    callAt(path.startsWith("http") ? path : `${url}${path}`, {
      body: new URLSearchParams(fields).toString(),
      headers: { "content-type": "application/x-www-form-urlencoded" }
    })
  const session = page.split("/").at(-1) ?? ""
  const becomes = (expected: object) =>
    Effect.map(
      eventually(
        Effect.map(admin(`/payments/${made.id}`), (answer) => read(answer)),
        (payment) => Object.entries(expected).every(([name, value]) => payment[name] === value)
      ),
      (payment) => assert.deepInclude(payment, expected)
    )
  const balance = Effect.map(payer.funds, (funds) => Number(funds.balance) / 1e9)
  return { account: payer, act, balance, becomes, page, session, url }
})

withLayer(suite)("the stand-in for Stripe", (it) => {
  it.effect("has a page to pay, decline, cancel or expire, and sends the events", function* () {
    const { act, balance, becomes, page, session, url } = yield* begin
    assert.isTrue(page.startsWith(`${url}/pay/`))
    assert.include((yield* callAt(page)).text, "Pay 20.00 USD")
    const declined = yield* act(page, { action: "decline" })
    assert.include((yield* callAt(`${url}${declined.headers.get("location")}`)).text, "declined")
    const left = yield* act(page, { action: "cancel" })
    assert.match(left.headers.get("location") ?? "", /\/console#\/payments\/pay_\w+\?result=cancelled$/)
    yield* becomes({ status: "open" })
    const paid = yield* act(page, { action: "pay" })
    assert.strictEqual(paid.status, 303)
    assert.match(paid.headers.get("location") ?? "", /\/console#\/payments\/pay_\w+\?result=paid$/)
    yield* becomes({ status: "paid" })
    assert.strictEqual(yield* balance, 20)
    assert.strictEqual((yield* act(page, { action: "pay" })).status, 400)
    const overview = (yield* callAt(url)).text
    assert.include(overview, session)
    assert.include(overview, "checkout.session.completed")
    const other = yield* begin
    yield* other.act(other.page, { action: "expire" })
    yield* other.becomes({ status: "expired" })
  })

  it.effect("has bank debits that succeed or fail later", function* () {
    for (const [action, status, credits] of [
      ["debit-succeeds", "paid", 20],
      ["debit-fails", "failed", 0]
    ] as const) {
      const { act, balance, becomes, page, session } = yield* begin
      yield* act(page, { action: "debit" })
      assert.strictEqual((yield* act(`/sessions/${session}`, { action: "refund" })).status, 400)
      assert.strictEqual((yield* act(`/sessions/${session}`, { action })).status, 303)
      yield* becomes({ status })
      assert.strictEqual(yield* balance, credits)
      assert.strictEqual((yield* act(`/sessions/${session}`, { action: "debit-succeeds" })).status, 400, "it is over")
    }
  })

  it.effect("refunds a part and the rest, and has refunds that fail", function* () {
    const { act, balance, becomes, page, session } = yield* begin
    const stripe = yield* Stripe
    yield* act(page, { action: "pay" })
    yield* becomes({ status: "paid" })
    for (const amount of ["0", "20.01", "x"])
      assert.strictEqual((yield* act(`/sessions/${session}`, { action: "refund", amount })).status, 400)
    yield* act(`/sessions/${session}`, { action: "refund", amount: "5.00" })
    yield* becomes({ reversed_usd: 5 })
    yield* act(`/sessions/${session}`, { action: "refund" })
    yield* becomes({ reversed_usd: 20 })
    assert.strictEqual(yield* balance, 0)
    const intent = stripe.account.intentOf(session)
    const [first] = [...stripe.account.refunds.values()].filter((refund) => refund["payment_intent"] === intent)
    yield* act(`/refunds/${first?.id}`, { action: "fail" })
    yield* becomes({ reversed_usd: 15 })
    assert.strictEqual(yield* balance, 5)
  })

  it.effect("disputes a payment, which suspends its organization until it is closed", function* () {
    const stripe = yield* Stripe
    for (const [action, credits] of [
      ["win", 20],
      ["lose", 0]
    ] as const) {
      const { account, act, balance, becomes, page, session } = yield* begin
      yield* act(page, { action: "pay" })
      yield* becomes({ status: "paid" })
      yield* act(`/sessions/${session}`, { action: "dispute" })
      yield* becomes({ reversed_usd: 20 })
      const refused = yield* chat(account, talk("gemini-3.6-flash"))
      assert.deepStrictEqual([refused.status, refused.text.includes("payment_disputed")], [402, true])
      const intent = stripe.account.intentOf(session)
      const dispute = [...stripe.account.disputes.values()].find((one) => one["payment_intent"] === intent)
      yield* act(`/disputes/${dispute?.id}`, { action })
      yield* becomes({ reversed_usd: 20 - credits })
      assert.strictEqual(yield* balance, credits)
    }
  })

  it.scoped("retries an event until the gateway accepts it", function* () {
    const answers: Array<number> = []
    const server = createServer((_, response) => {
      answers.push(answers.length === 0 ? 503 : 200)
      response.writeHead(answers.at(-1) ?? 200).end()
    })
    const gateway = `http://127.0.0.1:${yield* listen(server)}`
    const secrets = { secretKey: "sk_test_other", webhookSecret: "whsec_other" }
    const { account, url } = yield* standIn({ port: yield* freePort, gateway, ...secrets })
    const { id } = account.createSession({ cents: 500 })
    yield* callAt(`${url}/pay/${id}`, { body: "action=pay" })
    const overview = Effect.map(callAt(url), ({ text }) => text)
    assert.include(yield* eventually(overview, (text) => text.includes("503")), "not taken yet")
    yield* eventually(overview, (text) => text.includes("<td>taken</td>"))
    assert.deepStrictEqual(answers, [503, 200])
  })

  it.effect("resends an event on request, which moves no money twice", function* () {
    const { act, balance, becomes, page, session } = yield* begin
    const stripe = yield* Stripe
    yield* act(page, { action: "pay" })
    yield* becomes({ status: "paid" })
    const event = stripe.account.events.findLast(({ data }) => data.object.id === session)
    assert.strictEqual((yield* act(`/events/${event?.id}`, { action: "send" })).status, 303)
    assert.strictEqual((yield* act("/events/evt_none", { action: "send" })).status, 404)
    assert.strictEqual(yield* balance, 20)
  })
})
