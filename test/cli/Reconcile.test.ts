import { writeFileSync } from "node:fs"
import path from "node:path"
import { Effect, Layer, Redacted, Schema } from "effect"
import { Database } from "../../src/database/Database.ts"
import { logRequest } from "../harness/database/Rows.ts"
import { assert, withLayer } from "../harness/It.ts"
import { type BooksAnswer, type BooksCall, fakeBooks } from "../harness/upstream/FakeBooks.ts"
import { Cli } from "./Cli.ts"

const database = Layer.unwrapEffect(Effect.map(Cli, ({ url }) => Layer.orDie(Database.layerUrl(Redacted.make(url)))))
const suite = Layer.provideMerge(database, Cli.layer)

const catalog = `
providers:
  router: {adapter: openai-chat, base_url: https://openrouter.ai/api/v1, credential: ROUTER_KEY}
  openai: {adapter: openai-chat, base_url: https://api.openai.com/v1, credential: ACME_KEY}
  claude: {adapter: anthropic, base_url: https://api.anthropic.com, credential: CLAUDE_KEY}
  renders: {adapter: openai-chat, base_url: https://queue.fal.run, credential: FAL_KEY}
  grok: {adapter: openai-chat, base_url: https://api.x.ai/v1, credential: XAI_KEY}
  acme: {adapter: openai-chat, base_url: https://acme.test/v1, credential: OTHER_KEY}
families:
  A: {sampling: false, max_output_policy: clamp}
models:
  - id: talk
    surface: chat
    family: A
    context_length: 1000000
    max_output: 64000
    pricing: {prompt_per_1m_usd: 2, completion_per_1m_usd: 4}
    reasoning: none
    capabilities: [tools]
    created: 2026-07-21
    routes:
      - {provider: openai, model: gpt-9}
      - {provider: router, model: maker/gpt-9}
      - {provider: claude, model: claude-9}
      - {provider: renders, model: fal-ai/nine}
      - {provider: grok, model: grok-9}
      - {provider: acme, model: nine}
`

const hour = 3_600_000
const day = 24 * hour
// Recent enough for a vendor that keeps 30 days, old enough to be final.
const from = Math.floor(Date.now() / day) * day - 5 * day
const dateOf = (at: number) => new Date(at).toISOString().slice(0, 10)
const secret = "admin-secret-4711"

const Document = Schema.parseJson(
  Schema.Struct({
    provider: Schema.String,
    since: Schema.Number,
    until: Schema.Number,
    tolerance: Schema.Number,
    verdicts: Schema.Record({ key: Schema.String, value: Schema.Number }),
    ours_usd: Schema.Number,
    theirs_usd: Schema.Number,
    data: Schema.Array(
      Schema.Struct({
        at: Schema.Number,
        model: Schema.NullOr(Schema.String),
        request_id: Schema.NullOr(Schema.String),
        ours_usd: Schema.NullOr(Schema.Number),
        theirs_usd: Schema.NullOr(Schema.Number),
        ours_tokens: Schema.NullOr(Schema.Number),
        theirs_tokens: Schema.NullOr(Schema.Number),
        verdict: Schema.String
      })
    )
  })
)

const period = ["--since", dateOf(from), "--until", dateOf(from + 2 * day)]

const reconcile = Effect.fnUntraced(function* (
  provider: string,
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {}
) {
  const { directory, run } = yield* Cli
  writeFileSync(path.join(directory, "books.yaml"), catalog)
  const finished = yield* run(["reconcile", provider, ...period, ...args], {
    CATALOG_FILE: "books.yaml",
    ...environment
  })
  assert.notInclude(finished.stdout + finished.stderr, secret)
  return finished
})

const documentOf = Effect.fnUntraced(function* (
  provider: string,
  baseUrl: string,
  environment: Readonly<Record<string, string>>
) {
  const finished = yield* reconcile(provider, ["--base-url", baseUrl, "--json"], environment)
  const document = yield* Effect.orDie(Schema.decode(Document)(finished.stdout))
  return { ...document, code: finished.code, stderr: finished.stderr }
})

const logAt = (provider: string, at: number, more: Readonly<Record<string, unknown>> = {}) => {
  const route = `talk@${provider}`
  return logRequest({
    at: new Date(at),
    model: "talk",
    route,
    provider,
    attempts: [{ route, provider, outcome: "ok", ms: 1 }],
    prompt_tokens: 1_000,
    completion_tokens: 100,
    cost: 2_000_000_000,
    ...more
  })
}

const rowsOf = (data: ReadonlyArray<{ readonly model: string | null; readonly verdict: string }>) =>
  data.map(({ model, verdict }) => [model, verdict])

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
    const { baseUrl, calls } = yield* fakeBooks(({ url }): BooksAnswer => {
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
    assert.strictEqual(stderr, "gateway: 3 rows differ by more than 1 %.\n")
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
    const { baseUrl, calls } = yield* fakeBooks(({ url }) => ({
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
    const { baseUrl } = yield* fakeBooks(({ url }) => ({
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
    const { baseUrl, calls } = yield* fakeBooks(({ url }) => ({
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
    const answerOf = ({ url }: BooksCall): BooksAnswer =>
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
    const { baseUrl, calls } = yield* fakeBooks(answerOf)
    const { code, data } = yield* documentOf("grok", baseUrl, { XAI_MANAGEMENT_KEY: secret })
    assert.deepStrictEqual(rowsOf(data), [["grok-9", "matched"]])
    assert.strictEqual(code, 0)
    assert.strictEqual(calls[1]?.url.pathname, "/v1/billing/teams/team%2F1/usage")
  })

  it.scoped("a file: any provider by the columns that are named", function* () {
    const { directory } = yield* Cli
    yield* logAt("acme", from)
    writeFileSync(
      path.join(directory, "acme.csv"),
      `when,"the model",price,in,out\r\n${dateOf(from)},nine,$1.5,600,60\r\n${dateOf(from)},nine,0.5,400,40\r\n`
    )
    const columns = "time=when,model=the model,usd=price,prompt_tokens=in,completion_tokens=out"
    const { code, stdout } = yield* reconcile("acme", ["--file", "acme.csv", "--columns", columns, "--csv"])
    assert.strictEqual(
      stdout.replaceAll("\r\n", "\n"),
      `at,model,request_id,ours_usd,theirs_usd,ours_tokens,theirs_tokens,verdict\n${dateOf(from)}T00:00:00Z,nine,,2,2,1100,1100,matched\n`
    )
    assert.strictEqual(code, 0)
  })

  it.scoped("books that cannot be read end the command with 2, without the key", function* () {
    const answers: ReadonlyArray<readonly [BooksAnswer, string]> = [
      [
        { status: 401, body: { error: { message: `bad key ${secret}` } } },
        "refused the key in OPENROUTER_MANAGEMENT_KEY"
      ],
      [{ body: "<html>down</html>", headers: { "content-type": "text/html" } }, "is no JSON"],
      [{ body: '{"data": [{"date":' }, "is no JSON"],
      [{ body: { data: [{ date: dateOf(from), model: "m", usage: 1e300 }] } }, "usage is no plausible amount"],
      [{ body: '{"data": [{"date": "2026-01-01", "model": "m", "usage": 1e999}]}' }, "usage is no plausible amount"],
      [
        { body: { data: [{ date: dateOf(from), model: "m", usage: 1, prompt_tokens: -4 }] } },
        "prompt_tokens is no plausible count"
      ],
      [{ status: 302, headers: { location: "http://elsewhere.test/" }, body: "" }, "answered with status 302"],
      [{ status: 429, headers: { "retry-after": "86400" }, body: "" }, "pause of 86400 seconds"],
      [{ status: 503, headers: { "retry-after": "0" }, body: "" }, "answered with status 503"]
    ]
    for (const [answer, message] of answers) {
      const { baseUrl } = yield* fakeBooks(() => answer)
      const finished = yield* reconcile("router", ["--base-url", baseUrl], { OPENROUTER_MANAGEMENT_KEY: secret })
      assert.strictEqual(finished.code, 2)
      assert.include(finished.stderr, message)
      assert.strictEqual(finished.stdout, "")
    }
  })

  it.scoped("a busy vendor is asked again", function* () {
    const { baseUrl, calls } = yield* fakeBooks((_, number) =>
      number === 1 ? { status: 429, headers: { "retry-after": "0" }, body: "" } : { body: { data: [] } }
    )
    const { code } = yield* reconcile("router", ["--base-url", baseUrl, "--json"], {
      OPENROUTER_MANAGEMENT_KEY: secret
    })
    assert.strictEqual(code, 1)
    assert.lengthOf(calls, 3)
  })

  it.scoped("what is missing or wrong is named, with 2", function* () {
    const { directory } = yield* Cli
    const bad = path.join(directory, "bad.csv")
    writeFileSync(bad, "time,model,usd\n2026-13-01,m,1\n")
    const columns = ["--columns", "time=time,model=model,usd=usd"]
    const misuses: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
      [["openai"], "OPENAI_ADMIN_KEY is not set"],
      [["nobody"], "The catalog has no provider nobody."],
      [["acme"], "The books of acme are not known"],
      [["acme", "--file", "bad.csv"], "--file and --columns go together."],
      [["acme", "--file", "bad.csv", ...columns], "bad.csv:2: time is no date or time"],
      [["acme", "--file", "none.csv", ...columns], "none.csv"]
    ]
    for (const [[provider = "", ...args], message] of misuses) {
      const { code, stderr } = yield* reconcile(provider, args)
      assert.include(stderr, message)
      assert.strictEqual(code, 2)
    }
    const { run } = yield* Cli
    const broken = yield* run(["reconcile", "openai", "--since", `${dateOf(from)}T05:00:00Z`], {
      CATALOG_FILE: "books.yaml",
      OPENAI_ADMIN_KEY: secret
    })
    assert.deepStrictEqual([broken.code, broken.stderr], [2, "gateway: --since must be the beginning of a UTC day.\n"])
  })
})
