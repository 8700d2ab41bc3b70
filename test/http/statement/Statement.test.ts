import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { receiptNumber } from "../../../src/domain/Documents.ts"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { monthAt } from "../../../src/domain/Month.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { type Account, openAccount } from "../../harness/client/Account.ts"
import { read } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest, bearer, callAt } from "../../harness/client/HttpCalls.ts"
import { chargeOne } from "../../harness/database/Rows.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer, MediaServer } from "../MediaServer.ts"

const ask = Effect.fnUntraced(function* ({ secret }: Pick<Account, "secret">, below = "") {
  const { url } = yield* MediaServer
  return yield* callAt(`${url}/v1/statement${below}`, { headers: bearer(secret) })
})

/** A charge whose row of the log names a model and its tokens. */
const chargeFor = Effect.fnUntraced(function* (account: Account, amount: bigint) {
  const sql = yield* SqlClient.SqlClient
  const charge = yield* chargeOne(account, amount)
  yield* sql`UPDATE request_log SET model = '=m', prompt_tokens = 3, completion_tokens = 2 WHERE id = ${charge.hold}`
  return charge
})

withLayer(layer)("the statement of an organization", (it) => {
  it.effect("is the same for its customer and for operators, and of its own money alone", function* () {
    const { admin } = yield* asOperator("write")
    const account = yield* openAccount({ nanoUsd: 10_000_000_000n })
    const { org } = account
    const { requestId } = yield* chargeFor(account, 2_000_000_003n)
    const refund = { request_id: requestId, amount_usd: 0.5, note: "inner matters" }
    read(yield* admin("/credits/refunds", { body: refund }), 201)
    yield* (yield* LedgerAdmin).adjust({ org, amount: NanoUsd(-1n), note: "inner matters", force: false })
    yield* chargeFor(yield* openAccount({}), 1n)

    const answer = yield* ask(account)
    const statement = read(answer)
    assert.deepInclude(statement, {
      object: "statement",
      organization: org,
      month: monthAt(Date.now()).name,
      opening_usd: 0,
      closing_usd: 8.499999996,
      reversals: [],
      total_charge_usd: 2.000000003
    })
    const { adjustments, payments, refunds, usage } = statement
    assert.deepStrictEqual(
      [...payments, ...refunds, ...adjustments].map(({ amount_usd }: { readonly amount_usd: number }) => amount_usd),
      [10, 0.5, -0.000000001]
    )
    assert.deepStrictEqual(usage, [
      {
        model: "=m",
        surface: "chat",
        requests: 1,
        prompt_tokens: 3,
        completion_tokens: 2,
        images: 0,
        seconds: 0,
        charge_usd: 2.000000003
      }
    ])
    assert.notMatch(answer.text, /inner matters|cost|provider|route/)
    assert.deepStrictEqual(read(yield* ask(account, `?month=${statement.month}`)), statement)
    assert.deepStrictEqual(read(yield* admin(`/organizations/${org}/statement`)), statement)
    assert.strictEqual(read(yield* admin(`/organizations/${org}`)).balance_usd, statement.closing_usd)

    const { text } = yield* admin(`/organizations/${org}/statement.csv?month=${statement.month}`)
    const lines = text.trimEnd().split("\r\n")
    assert.strictEqual(
      lines[0],
      "line,at,model,surface,requests,prompt_tokens,completion_tokens,images,seconds,amount_usd,ref"
    )
    assert.strictEqual(lines[1], "opening balance,,,,,,,,,0,")
    assert.isTrue(lines.some((line) => line.startsWith("top-up,")))
    assert.isFalse(lines.some((line) => line.startsWith("payment,")))
    assert.include(lines, "usage,,'=m,chat,1,3,2,0,0,-2.000000003,")
    assert.strictEqual(lines.at(-1), "closing balance,,,,,,,,,8.499999996,")
  })

  it.effect("of a month that there is none of is refused, and says why", function* () {
    const { admin } = yield* asOperator("read")
    const account = yield* openAccount({})
    const form = badRequest("`month` must be a month such as 2026-11.", "month")
    const future = badRequest("There is no statement of 9999-01: it has not begun.", "month")
    const { name } = monthAt(Date.now())
    const before = badRequest(`There is no statement of 2001-01: the organization was created in ${name}.`, "month")
    for (const [month, refusal] of [
      ["2026-13", form],
      ["", form],
      ["2026-01&month=2026-02", form],
      ["9999-01", future],
      ["2001-01", before]
    ] as const) {
      assertRefused(yield* ask(account, `?month=${month}`), refusal)
      assertRefused(yield* admin(`/organizations/${account.org}/statement?month=${month}`), refusal)
      assertRefused(yield* admin(`/organizations/${account.org}/statement.csv?month=${month}`), refusal)
    }
    assert.strictEqual((yield* admin("/organizations/nobody/statement")).status, 404)
  })

  it.effect("leads to the receipts of its payments, for its own organization only", function* () {
    const { admin } = yield* asOperator("read")
    const account = yield* openAccount({ nanoUsd: 10_000_000_000n })
    const { org } = account
    const statement = read(yield* ask(account))
    const [payment] = statement.payments
    assert.strictEqual(statement.number, `${org.slice(-12).toUpperCase()}-${statement.month}`)
    const receipt = read(yield* admin(`/organizations/${org}/receipts/${payment.id}`))
    assert.deepStrictEqual(receipt, {
      number: receiptNumber(payment.id),
      currency: "USD",
      org,
      org_name: statement.organization_name,
      payment: null,
      paid_at: payment.at,
      amount_usd: 10,
      method: "entered",
      reference: payment.ref,
      reversed_usd: 0,
      disputed: false,
      reversals: []
    })
    const member = yield* asOperator("read", org)
    assert.deepStrictEqual(read(yield* member.admin(`/organizations/${org}/receipts/${payment.id}`)), receipt)
    const other = yield* openAccount({ nanoUsd: 1n })
    const stranger = yield* asOperator("read", other.org)
    const { hold } = yield* chargeFor(account, 1n)
    for (const [client, path] of [
      [stranger.admin, `/organizations/${org}/receipts/${payment.id}`],
      [stranger.admin, `/organizations/${other.org}/receipts/${payment.id}`],
      [admin, `/organizations/${other.org}/receipts/${payment.id}`],
      [admin, `/organizations/${org}/receipts/${hold}`],
      [admin, `/organizations/${org}/receipts/1`]
    ] as const) {
      assert.strictEqual((yield* client(path)).status, 404, path)
    }
    const { text } = yield* admin(`/organizations/${org}/receipts/1`)
    assert.include(text, "There is no payment or top-up with the ledger entry 1.")
  })
})
