import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { openAccount } from "../../harness/client/Account.ts"
import { adminAt, hire, read } from "../../harness/client/AdminClient.ts"
import { assertRefused, badRequest } from "../../harness/client/HttpCalls.ts"
import { logRequest } from "../../harness/database/Rows.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { layer, MediaServer } from "../MediaServer.ts"
import { nanoOf, parseCsv } from "./CsvText.ts"

const reader = Effect.gen(function* () {
  const { url } = yield* MediaServer
  const { token } = yield* hire("read")
  return adminAt(url, token)
})

const amounts = [1_000_000_001, 7, 250_000_000, 3_000_000_000, 1]

/** Five models on five days, each with one request that is paid for and one that is refused. */
const used = Effect.gen(function* () {
  const { key, org } = yield* openAccount({})
  const owned = { org_id: org, key_id: key, hold_id: randomUUID(), route: "r@p", provider: "p" }
  for (const [index, charge] of amounts.entries()) {
    const at = new Date(Date.UTC(2026, 2, 1 + index, 23, 59, 59, 999))
    const cost = index === 1 ? {} : { cost: charge - 1 }
    yield* logRequest({ ...owned, model: `m${index}`, at, charge, ...cost, prompt_tokens: 10, cached_tokens: 3 })
    yield* logRequest({ ...owned, hold_id: null, model: `m${index}`, at, status: 429, code: "rate_limit_exceeded" })
  }
  return { key, org }
})

withLayer(layer)("usage at the admin API", (it) => {
  it.effect("adds up by one or two things, the largest charge first, with totals over every page", function* () {
    const admin = yield* reader
    const { key, org } = yield* used
    const { name } = read(yield* admin(`/organizations/${org}`))
    const one = read(yield* admin(`/usage?organization=${org}&by=org`))
    assert.lengthOf(one.data, 1)
    assert.deepInclude(one.data[0], { org, name, requests: 10, refusals: 5, errors: 0, cost_unknown: 1 })
    assert.strictEqual(nanoOf(one.data[0].spend_usd), BigInt(amounts.reduce((sum, amount) => sum + amount, 0)))
    assert.strictEqual(nanoOf(one.data[0].margin_usd), 4n)

    const seen: Array<string> = []
    let after = ""
    do {
      const page = read(yield* admin(`/usage?organization=${org}&limit=2${after && `&after=${after}`}`))
      seen.push(...page.data.map(({ model }: { model: string }) => model))
      assert.deepInclude(page.totals, { requests: 10, prompt_tokens: 50, cache_hit_rate: 0.3 })
      assert.strictEqual(page.has_more, page.next !== null)
      after = page.next
    } while (after !== null)
    assert.deepStrictEqual(seen, ["m3", "m0", "m2", "m1", "m4"])
    const both = read(yield* admin(`/usage?organization=${org}&by=day,key&key=${key}`))
    assert.deepStrictEqual(
      both.data.map(({ day, key }: { day: string; key: string }) => [day, key]),
      [1, 2, 3, 4, 5].map((day) => [`2026-03-0${day}`, key])
    )
    const none = read(yield* admin(`/usage?organization=${org}&model=other`))
    assert.deepInclude(none, { data: [], has_more: false, next: null })
    assert.deepInclude(none.totals, { requests: 0, spend_usd: 0, margin_usd: null })
  })

  it.effect("is filtered and sorted on the server", function* () {
    const admin = yield* reader
    const { org } = yield* used
    const models = (query: string) =>
      Effect.map(admin(`/usage?organization=${org}&${query}`), (answer) =>
        read(answer).data.map(({ model }: { model: string }) => model)
      )
    assert.deepStrictEqual(yield* models("model=m3"), ["m3"])
    assert.deepStrictEqual(yield* models("since=2026-03-02&until=2026-03-04"), ["m2", "m1"])
    assert.deepStrictEqual(yield* models("since=2026-03-02T23:59:59.999Z&until=2026-03-03T23:59:59Z"), ["m1"])
    assert.lengthOf(yield* models("status=4xx&route=r@p&surface=chat"), 5)
    assert.lengthOf(yield* models("status=5xx"), 0)
    assert.strictEqual((yield* models("sort=cost"))[0], "m3")
    assert.lengthOf(yield* models("sort=margin"), 5)
    assert.lengthOf(read(yield* admin(`/usage?organization=${org}&by=hour,status`)).data, 10)
  })

  it.effect("comes as CSV that equals the pages to the nano-dollar", function* () {
    const admin = yield* reader
    const { org } = yield* used
    for (const by of ["model", "org,model", "day,status", "key,hour"]) {
      const { data, totals } = read(yield* admin(`/usage?organization=${org}&by=${by}&limit=1000`))
      const answer = yield* admin(`/usage.csv?organization=${org}&by=${by}`)
      assert.strictEqual(answer.headers.get("content-disposition"), 'attachment; filename="usage.csv"')
      const rows = parseCsv(answer.text)
      assert.lengthOf(rows, data.length)
      let spend = 0n
      for (const [index, record] of data.entries()) {
        for (const [name, cell] of Object.entries(rows[index] ?? {})) {
          if (name.endsWith("_usd")) assert.strictEqual(nanoOf(cell), nanoOf(record[name] ?? 0))
          else assert.strictEqual(cell, String(record[name] ?? ""))
        }
        spend += nanoOf(rows[index]?.["spend_usd"] ?? "")
      }
      assert.strictEqual(spend, nanoOf(totals.spend_usd))
    }
  })

  it.effect("is refused by the name of what is wrong", function* () {
    const admin = yield* reader
    const { next } = read(yield* admin(`/usage?organization=${(yield* used).org}&limit=1`))
    const groups =
      "must be one or two of model, key, day, hour, provider, org, route, surface, status, tag, such as org,model."
    for (const [query, param, problem] of [
      ["by=teapot", "by", groups],
      ["by=org,org", "by", groups],
      ["by=org,model,day", "by", groups],
      ["by=", "by", groups],
      ["status=teapot", "status", "must be an HTTP status, 4xx or 5xx."],
      ["sort=name", "sort", "must be one of charge, requests, cost, margin."],
      [`by=org,model&after=${next}`, "after", "must be the `next` of a page."],
      ["after=x", "after", "must be the `next` of a page."],
      ["after=WyJcdTAwMDAiLG51bGxd", "after", "must be the `next` of a page."]
    ] as const) {
      assertRefused(yield* admin(`/usage?${query}`), badRequest(`\`${param}\` ${problem}`, param))
    }
    assertRefused(
      yield* admin("/usage.csv?organization=nobody"),
      badRequest("There is no organization nobody.", "organization")
    )
  })

  it.effect("reaches back as far as a date can", function* () {
    const admin = yield* reader
    const { totals } = read(yield* admin("/usage?since=0000-01-01"))
    assert.deepStrictEqual(read(yield* admin("/usage")).totals, totals)
    assert.deepStrictEqual(read(yield* admin("/usage?until=0000-01-01T00:00:00Z")).data, [])
  })
})
