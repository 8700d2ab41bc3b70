import { parseHash } from "../../src/console/Route.ts"
import { readDimensions, requestsOf, stackOf, type UsageRow } from "../../src/console/views/usage/UsageRow.ts"
import { assert, describe, it } from "../harness/It.ts"

const row = (fields: Partial<UsageRow>): UsageRow => ({
  requests: 1,
  errors: 0,
  refusals: 0,
  prompt_tokens: 0,
  total_tokens: 0,
  cached_tokens: 0,
  cache_write_tokens: 0,
  cache_write_1h_tokens: 0,
  reasoning_tokens: 0,
  web_searches: 0,
  images: 0,
  seconds: 0,
  completion_tokens: 0,
  cache_hit_rate: null,
  spend_usd: 0,
  cost_usd: 0,
  stated_cost_usd: 0,
  margin_usd: null,
  cost_unknown: 0,
  ...fields
})

const [first, second, third] = ["2026-11-20", "2026-11-21", "2026-11-22"]
const day = Date.parse("2026-11-20") / 1000
const always = { since: undefined, until: day + 30 * 86_400 }

describe("the stacked chart", () => {
  it("has every day, the largest groups, and the rest to the nano-dollar", () => {
    const totals = [row({ day: third, spend_usd: 0.3 }), row({ day: first, spend_usd: 21.000000001 })]
    const parts = [6, 5, 4, 3, 2, 1].map((usd) => row({ day: first, model: `m${usd}`, spend_usd: usd }))
    const { series, times } = stackOf(totals, parts, { step: "day", by: "model", measure: "spend_usd", ...always })
    assert.deepStrictEqual(times, [day, day + 86_400, day + 2 * 86_400])
    assert.deepStrictEqual(
      series.map(({ label }) => label),
      ["m6", "m5", "m4", "m3", "m2", "Other"]
    )
    assert.deepStrictEqual(series.at(-1)?.values, [1.000000001, 0, 0.3])
  })

  it("has the days of the range without requests too", () => {
    const rows = [row({ day: second, requests: 3 })]
    const range = { since: day - 86_400 + 3600, until: day + 3 * 86_400 }
    const { series, times } = stackOf(rows, [], { step: "day", by: undefined, measure: "requests", ...range })
    assert.deepStrictEqual(
      times,
      [-1, 0, 1, 2].map((days) => day + days * 86_400)
    )
    assert.deepStrictEqual(series, [{ label: "All", values: [0, 0, 3, 0] }])
    assert.lengthOf(stackOf([], [], { step: "hour", by: "org", measure: "requests", ...range }).times, 95)
  })

  it("has no rest if the groups are complete", () => {
    const rows = [row({ day: first, model: "m", requests: 3 })]
    const { series } = stackOf(rows, rows, { step: "day", by: "model", measure: "requests", ...always })
    assert.deepStrictEqual(series, [{ label: "m", values: [3] }])
  })

  it("distinguishes two keys with the same name", () => {
    const rows = ["key_1", "key_2"].map((key) => row({ hour: "2026-11-22T01:00Z", key, key_name: "prod" }))
    const { series, times } = stackOf([], rows, { step: "hour", by: "key", measure: "requests", ...always })
    assert.deepStrictEqual(
      series.map(({ label }) => label),
      ["prod key_1", "prod key_2"]
    )
    assert.deepStrictEqual(times, [])
  })

  it("is one series without groups, and nothing without usage", () => {
    const rows = [row({ day: second, spend_usd: 2 })]
    assert.deepStrictEqual(stackOf(rows, [], { step: "day", by: undefined, measure: "spend_usd", ...always }).series, [
      { label: "All", values: [2] }
    ])
    assert.deepStrictEqual(stackOf([], [], { step: "day", by: "org", measure: "spend_usd", ...always }).times, [])
  })
})

describe("a row of usage", () => {
  it("links to its requests, with the filters of the view", () => {
    const href = requestsOf(row({ org: "org_1", status: "429" }), ["org", "status"], {
      by: "org",
      and: "status",
      sort: "cost",
      model: "m",
      since: "7d"
    })
    assert.deepStrictEqual(parseHash(href ?? ""), {
      path: ["requests"],
      query: { model: "m", since: "7d", organization: "org_1", status: "429" }
    })
  })

  it("of a day links to that UTC day", () => {
    const href = requestsOf(row({ day: first }), ["day"], { since: "30d" })
    assert.strictEqual(href, "#/requests?since=2026-11-20T00%3A00Z&until=2026-11-21T00%3A00Z")
  })

  it("has no link if no filter finds exactly its requests", () => {
    assert.isUndefined(requestsOf(row({ model: null }), ["model"], {}))
    assert.isUndefined(requestsOf(row({ model: "unknown" }), ["model"], {}))
    assert.isUndefined(requestsOf(row({ model: "m", provider: "p" }), ["model", "provider"], {}))
  })
})

it("one or two different dimensions are read from the address", () => {
  assert.deepStrictEqual(readDimensions(undefined, undefined), ["model"])
  assert.deepStrictEqual(readDimensions("org", "key"), ["org", "key"])
  assert.deepStrictEqual(readDimensions("org", "org"), ["org"])
  assert.deepStrictEqual(readDimensions("<script>", "x"), ["model"])
})
