import { assert, withLayer } from "../harness/It.ts"
import { type BooksAnswer, type InvoiceCall, serveInvoices } from "../harness/upstream/FakeInvoices.ts"
import { dateOf, day, documentOf, from, hour, logAt, rowsOf, secret, suite } from "./Reconciling.ts"

withLayer(suite)("gateway reconcile", (it) => {
  it.scoped("OpenAI: tokens by hour and USD by day, over pages", function* () {
    yield* logAt("openai", from + hour + 5)
    yield* logAt("openai", from + day)
    const buckets = [
      {
        start_time: (from + hour) / 1000,
        results: [{ model: "gpt-9-2026-01-02", input_tokens: 1_000, output_tokens: 100 }]
      },
      { start_time: (from + day) / 1000, results: [{ model: "gpt-9", input_tokens: 1_300, output_tokens: 100 }] }
    ]
    const cost = (item: string, value: number) => ({ amount: { value, currency: "usd" }, line_item: item })
    const costs = [
      {
        start_time: from / 1000,
        results: [cost("gpt-9-2026-01-02, input", 1.5), cost("gpt-9-2026-01-02, output", 0.5)]
      },
      { start_time: (from + day) / 1000, results: [cost("gpt-9, input", 2.5), cost("gpt-9, input", 2.5)] }
    ]
    const { baseUrl, calls } = yield* serveInvoices(({ url }): BooksAnswer => {
      const all = url.pathname === "/organization/costs" ? costs : buckets
      const index = Number(url.searchParams.get("page") ?? 0)
      const hasMore = index + 1 < all.length
      return {
        body: { data: all.slice(index, index + 1), has_more: hasMore, next_page: hasMore ? String(index + 1) : null }
      }
    })
    const { code, data, ours_usd, stderr, theirs_usd, verdicts } = yield* documentOf("openai", baseUrl, {
      OPENAI_ADMIN_KEY: secret
    })
    assert.deepStrictEqual(
      data.map(({ at, ours_tokens, ours_usd, theirs_usd, verdict }) => [
        at,
        ours_tokens,
        ours_usd,
        theirs_usd,
        verdict
      ]),
      [
        [(from + hour) / 1000, 1_100, null, null, "matched"],
        [(from + day) / 1000, 1_100, null, null, "quantity"],
        [from / 1000, null, 2, 2, "matched"],
        [(from + day) / 1000, null, 2, 2.5, "price"],
        [(from + day) / 1000, null, null, 2.5, "theirs_only"]
      ]
    )
    assert.deepStrictEqual(verdicts, { matched: 2, theirs_only: 1, ours_only: 0, quantity: 1, price: 1, open: 0 })
    assert.deepStrictEqual([ours_usd, theirs_usd], [4, 7])
    assert.strictEqual(code, 1)
    const message = "3 rows differ by more than 1 %."
    assert.deepStrictEqual(JSON.parse(stderr), { error: { message, type: "command_failed" } })
    assert.isTrue(calls.every(({ headers }) => headers.authorization === `Bearer ${secret}`))
  })

  it.scoped("Anthropic: cents as text, and all kinds of prompt tokens", function* () {
    yield* logAt("claude", from)
    const usage = {
      uncached_input_tokens: 400,
      cache_read_input_tokens: 300,
      cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 100 },
      output_tokens: 100,
      model: "claude-9"
    }
    const cost = { amount: "199.99999", currency: "USD", model: "claude-9", description: "Claude 9 Usage" }
    const { baseUrl, calls } = yield* serveInvoices(({ url }) => ({
      body: {
        data: [
          { starting_at: new Date(from).toISOString(), results: [url.pathname.endsWith("cost_report") ? cost : usage] }
        ],
        has_more: false,
        next_page: null
      }
    }))
    const { code, data } = yield* documentOf("claude", baseUrl, { ANTHROPIC_ADMIN_KEY: secret })
    assert.deepStrictEqual(rowsOf(data), [
      ["claude-9", "matched"],
      ["claude-9", "matched"]
    ])
    assert.strictEqual(data[1]?.theirs_usd, 1.9999999)
    assert.strictEqual(code, 0)
    assert.isTrue(calls.every(({ headers }) => headers["x-api-key"] === secret))
  })

  it.scoped("OpenRouter: each day by model, and a model past the gateway", function* () {
    yield* logAt("router", from)
    const activity = { date: dateOf(from), usage: 2, prompt_tokens: 1_000, completion_tokens: 100, endpoint_id: "e" }
    const { baseUrl } = yield* serveInvoices(({ url }) => ({
      body: {
        data:
          url.searchParams.get("date") === dateOf(from)
            ? ["maker/gpt-9", "maker/other"].map((model) => ({ ...activity, model }))
            : []
      }
    }))
    const { code, data } = yield* documentOf("router", baseUrl, { OPENROUTER_MANAGEMENT_KEY: secret })
    assert.deepStrictEqual(rowsOf(data), [
      ["maker/gpt-9", "matched"],
      ["maker/other", "theirs_only"]
    ])
    assert.strictEqual(code, 1)
  })

  it.scoped("fal: each call by its id, failed attempts that cost something too", function* () {
    const attempt = { route: "talk@renders", provider: "renders", ms: 1 }
    yield* logAt("renders", from, {
      attempts: [
        { ...attempt, outcome: "retry", provider_request_id: "failed", cost_nano: "500000000" },
        { ...attempt, outcome: "ok", provider_request_id: "first" }
      ]
    })
    yield* logAt("renders", from + 1, { attempts: [{ ...attempt, outcome: "ok", provider_request_id: "lost" }] })
    const event = (request_id: string, cost_total: number) => ({
      request_id,
      endpoint_id: "fal-ai/nine",
      timestamp: new Date(from + 60_000).toISOString(),
      cost_total
    })
    const events = [event("first", 2), event("failed", 0.5), event("past", 1)]
    const { baseUrl, calls } = yield* serveInvoices(({ url }) => ({
      body: {
        billing_events: url.searchParams.get("start") === new Date(from).toISOString() ? events : [],
        has_more: false
      }
    }))
    const { code, data } = yield* documentOf("renders", baseUrl, { FAL_ADMIN_KEY: secret })
    assert.sameDeepMembers(
      data.map(({ ours_usd, request_id, theirs_usd, verdict }) => [request_id, ours_usd, theirs_usd, verdict]),
      [
        ["first", 2, 2, "matched"],
        ["failed", 0.5, 0.5, "matched"],
        ["lost", 2, null, "ours_only"],
        ["past", null, 1, "theirs_only"]
      ]
    )
    assert.strictEqual(code, 1)
    assert.isTrue(calls.every(({ headers }) => headers.authorization === `Key ${secret}`))
  })

  it.scoped("xAI: USD by day of the key's team", function* () {
    yield* logAt("grok", from)
    const answerOf = ({ url }: InvoiceCall): BooksAnswer =>
      url.pathname === "/auth/management-keys/validation"
        ? { body: { teamId: "team/1" } }
        : {
            body: {
              timeSeries: [
                {
                  groupLabels: ["Chat grok-9"],
                  dataPoints: [{ timestamp: new Date(from).toISOString(), values: [2.01] }]
                }
              ],
              limitReached: false
            }
          }
    const { baseUrl, calls } = yield* serveInvoices(answerOf)
    const { code, data } = yield* documentOf("grok", baseUrl, { XAI_MANAGEMENT_KEY: secret })
    assert.deepStrictEqual(rowsOf(data), [["grok-9", "matched"]])
    assert.strictEqual(code, 0)
    assert.strictEqual(calls[1]?.url.pathname, "/v1/billing/teams/team%2F1/usage")
  })
})
