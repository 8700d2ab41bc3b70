import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Struct } from "effect"
import { NanoUsd } from "../../../src/domain/Money.ts"
import { OrganizationScope } from "../../../src/domain/OrganizationScope.ts"
import { ApiKeys } from "../../../src/services/access/ApiKeys.ts"
import { LedgerAdmin } from "../../../src/services/ledger/LedgerAdmin.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { read } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest } from "../../harness/client/HttpCalls.ts"
import { chargeOne, holdOne } from "../../harness/database/Rows.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { asOperator, layer } from "../MediaServer.ts"

interface Listed {
  readonly id: string
}

const idsOf = ({ data }: { readonly data: ReadonlyArray<Listed> }) => data.map(({ id }) => id)

withLayer(layer)("the ledger at the admin API", (it) => {
  it.effect("entries name organizations and keys, and the requests behind charges and refunds", function* () {
    const { admin } = yield* asOperator("write")
    const { key, org } = yield* openAccount({ nanoUsd: 5_000_000_000n })
    const { update } = yield* ApiKeys
    yield* Effect.orDie(update(OrganizationScope.all, key, { name: "backend" }))
    const { hold, requestId } = yield* chargeOne({ org, key }, 1_500_000_001n)
    const refund = { request_id: requestId, amount_usd: 0.5, note: "goodwill" }
    const given = read(yield* admin("/credits/refunds", { body: refund }), 201)
    assert.deepInclude(given, { amount_usd: 0.5, request: hold, ref: `refund:${hold}` })
    const name = read(yield* admin(`/organizations/${org}`)).name
    const { data, has_more, next } = read(yield* admin(`/ledger?organization=${encodeURIComponent(name)}`))
    const about = { org, org_name: name }
    assert.deepStrictEqual(
      data.map((entry: Readonly<Record<string, unknown>>) => Struct.omit(entry, "at", "id")),
      [
        {
          ...about,
          kind: "refund",
          amount_usd: 0.5,
          ref: `refund:${hold}`,
          note: "goodwill",
          key_id: null,
          hold_id: null,
          request: hold,
          request_id: requestId,
          key_name: null
        },
        {
          ...about,
          kind: "charge",
          amount_usd: -1.500000001,
          ref: null,
          note: null,
          key_id: key,
          hold_id: hold,
          request: hold,
          request_id: requestId,
          key_name: "backend"
        },
        {
          ...about,
          kind: "top_up",
          amount_usd: 5,
          ref: null,
          note: "opening credits",
          key_id: null,
          hold_id: null,
          request: null,
          request_id: null,
          key_name: null
        }
      ]
    )
    assert.deepStrictEqual([has_more, next], [false, null])
    assert.deepStrictEqual(read(yield* admin(`/ledger?hold=${hold}`)).data, data.slice(0, 2))
    assert.deepStrictEqual(read(yield* admin(`/ledger?hold=${hold}&kind=charge`)).data, data.slice(1, 2))

    const more = (amount_usd: number | undefined) => admin("/credits/refunds", { body: { ...refund, amount_usd } })
    assert.include((yield* more(2)).text, "Only 1.000000001 of the 1.500000001 USD")
    read(yield* more(undefined), 201)
    assert.include((yield* more(undefined)).text, "are already refunded")
    assert.deepStrictEqual((yield* (yield* LedgerAdmin).verify).violations, [])
  })

  it.effect("pages go on where they ended while entries are added", function* () {
    const { admin } = yield* asOperator("read")
    const { key, org } = yield* openAccount({})
    const { adjust } = yield* LedgerAdmin
    const add = adjust({ org, amount: NanoUsd(1n), note: "n", force: false })
    yield* Effect.replicateEffect(add, 3)
    yield* chargeOne({ org, key }, 1n)
    const whole = idsOf(read(yield* admin(`/ledger?organization=${org}`)))
    assert.lengthOf(whole, 5)
    const seen: Array<string> = []
    let after = ""
    do {
      const page = read(yield* admin(`/ledger?organization=${org}&limit=2${after}`))
      seen.push(...idsOf(page))
      after = page.next === null ? "" : `&after=${page.next}`
      yield* add
    } while (after !== "")
    assert.deepStrictEqual(seen, whole)
  })

  it.effect("filters by kind and time, together with an organization or for all", function* () {
    const { admin } = yield* asOperator("read")
    const { key, org } = yield* openAccount({})
    yield* chargeOne({ org, key }, 1n)
    const of = (query: string) =>
      Effect.map(admin(`/ledger?${query}`), (answer) =>
        read(answer).data.map(({ kind }: { readonly kind: string }) => kind)
      )
    assert.deepStrictEqual(yield* of(`organization=${org}&kind=top_up`), ["top_up"])
    assert.deepStrictEqual(yield* of(`organization=${org}&kind=charge`), ["charge"])
    assert.deepStrictEqual(yield* of(`organization=${org}&kind=adjustment`), [])
    assert.deepStrictEqual(yield* of("kind=charge&limit=1"), ["charge"])
    assert.deepStrictEqual(yield* of(`organization=${org}&since=1h`), ["charge", "top_up"])
    assert.deepStrictEqual(yield* of(`organization=${org}&until=1h`), [])
    const [{ at }] = read(yield* admin(`/ledger?organization=${org}&kind=top_up`)).data
    assert.deepStrictEqual(yield* of(`organization=${org}&since=${at}&until=${at + 60}`), ["charge", "top_up"])
    assert.deepStrictEqual(yield* of(`organization=${org}&until=${at}`), [])
  })

  it.effect("each entry is of one of five kinds: what gives back a request's charge is a refund", function* () {
    const { admin } = yield* asOperator("write")
    const sql = yield* SqlClient.SqlClient
    const { key, org } = yield* openAccount({ nanoUsd: 5n })
    const { hold, requestId } = yield* chargeOne({ org, key }, 3n)
    const refund = { request_id: requestId, amount_usd: 2e-9, note: "n" }
    assert.strictEqual(read(yield* admin("/credits/refunds", { body: refund }), 201).kind, "refund")
    yield* (yield* LedgerAdmin).adjust({ org, amount: NanoUsd(1n), note: "n", force: false })
    yield* sql`INSERT INTO ledger_entries (org_id, kind, amount, ref) VALUES (${org}, 'payment_reversal', -1, ${`re_${org}`})`
    yield* sql`UPDATE organizations SET balance = balance - 1 WHERE id = ${org}`
    const kindsOf = (query: string) =>
      Effect.map(admin(`/ledger?organization=${org}${query}`), (answer) =>
        read(answer).data.map(({ kind }: { readonly kind: string }) => kind)
      )
    const kinds = ["payment_reversal", "adjustment", "refund", "charge", "top_up"]
    assert.deepStrictEqual(yield* kindsOf(""), kinds)
    for (const kind of kinds) assert.deepStrictEqual(yield* kindsOf(`&kind=${kind}`), [kind])
    assert.deepStrictEqual(yield* kindsOf(`&hold=${hold}`), ["refund", "charge"])
    assert.deepStrictEqual(yield* kindsOf(`&hold=${hold}&kind=refund`), ["refund"])
    assert.deepStrictEqual(yield* kindsOf(`&hold=${hold}&kind=adjustment`), [])
    const { text } = yield* admin(`/ledger.csv?organization=${org}&kind=refund`)
    assert.include(text, `,refund,0.000000002,refund:${hold},`)
    const unnamed = sql`INSERT INTO ledger_entries (org_id, kind, amount) VALUES (${org}, 'payment_reversal', -1)`
    assert.include(String((yield* Effect.flip(unnamed)).cause), "ledger_entries_reversal_check")
  })

  it.effect("a download has what the pages have, to the nano-dollar, and no formula", function* () {
    const { admin } = yield* asOperator("read")
    const { key, org } = yield* openAccount({ nanoUsd: 3_000_000_000n })
    yield* chargeOne({ org, key }, 1_000_000_001n)
    const { adjust } = yield* LedgerAdmin
    yield* adjust({ org, amount: NanoUsd(-1n), note: '=1+1,"a"', force: false })
    const { data } = read(yield* admin(`/ledger?organization=${org}`))
    const answer = yield* admin(`/ledger.csv?organization=${org}&since=1d`)
    assert.strictEqual(answer.status, 200)
    assert.strictEqual(answer.headers.get("content-type"), "text/csv; charset=utf-8")
    assert.include(answer.headers.get("content-disposition") ?? "", "ledger.csv")
    const [head = "", ...lines] = answer.text.split("\r\n").slice(0, -1)
    assert.deepStrictEqual(head.split(","), Object.keys(data[0]))
    assert.lengthOf(lines, 3)
    const iso = new Date(data[0].at * 1000).toISOString().replace(".000", "")
    const [adjusted, charged] = [data[0], data[1]]
    assert.strictEqual(
      lines[0],
      `${adjusted.id},${iso},${org},adjustment,-0.000000001,,"'=1+1,""a""",,,${adjusted.org_name},,,`
    )
    assert.include(lines[1], `,charge,-1.000000001,,,${key},${charged.hold_id},`)
    assert.isTrue(lines[1]?.endsWith(`,${charged.request},${charged.request_id},${charged.key_name}`))
    assert.strictEqual((yield* admin("/ledger.csv?kind=gift")).status, 400)
  })

  it.effect("open holds are listed oldest first, page by page", function* () {
    const { admin } = yield* asOperator("read")
    const { key, org } = yield* openAccount({})
    const holds = [yield* holdOne({ org, key }, 3n), yield* holdOne({ org, key }, 2n), yield* holdOne({ org, key }, 1n)]
    const first = read(yield* admin(`/ledger/holds?organization=${org}&limit=2&state=open`))
    const rest = read(yield* admin(`/ledger/holds?organization=${org}&after=${first.next}`))
    assert.deepStrictEqual([...idsOf(first), ...idsOf(rest)], holds)
    assert.deepInclude(first.data[0], { org, key_id: key, amount_usd: 3e-9, state: "open", video: null })
    assert.include(idsOf(read(yield* admin("/ledger/holds?limit=1000"))), holds[0])
  })

  it.effect("what is wrong is named", function* () {
    const { admin } = yield* asOperator("read")
    const wrong = [
      ["/ledger?after=x", "`after` must be the `next` of a page.", "after"],
      ["/ledger?after=99999999999999999999", "`after` must be the `next` of a page.", "after"],
      ["/ledger/holds?after=x", "`after` must be the `next` of a page.", "after"],
      ["/ledger?kind=gift", "`kind` must be one of top_up, charge, refund, payment_reversal, adjustment.", "kind"],
      ["/ledger?hold=x", "`hold` must be the id of a hold.", "hold"],
      ["/ledger/holds?state=settled", "`state` must be open.", "state"],
      ["/ledger?organization=nobody", "There is no organization nobody.", "organization"],
      ["/ledger?limit=1001", "`limit` must be an integer from 1 to 1000.", "limit"]
    ] as const
    for (const [path, message, param] of wrong) assertRefused(yield* admin(path), badRequest(message, param))
    assert.strictEqual((yield* admin("/ledger?since=soon")).status, 400)
    assert.strictEqual((yield* admin("/ledger?organization=%00")).status, 400)
    assert.deepStrictEqual(read(yield* admin(`/ledger?hold=${randomUUID()}`)).data, [])
  })
})
