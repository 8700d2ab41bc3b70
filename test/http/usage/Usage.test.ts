import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Deferred, Effect, Fiber } from "effect"
import type { Account } from "../../harness/client/Account.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { assertRefused, badRequest, bearer, callAt, refusals } from "../../harness/client/HttpCalls.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { logIdAt } from "../../harness/LogId.ts"
import { layer, MediaServer } from "../MediaServer.ts"

const form = "must be a date such as 2026-11-01, or a time such as 2026-11-01T12:00:00Z."
const busy = {
  status: 503,
  type: "service_unavailable",
  code: null,
  message: "The gateway is busy; retry later.",
  retryAfter: "5"
} as const

const ask = Effect.fnUntraced(function* ({ secret }: Pick<Account, "secret">, below: string, accept?: string) {
  const { url } = yield* MediaServer
  return yield* callAt(`${url}/v1/usage${below}`, { headers: { ...bearer(secret), ...(accept && { accept }) } })
})

interface Row {
  readonly at: string
  readonly requestId?: string
  readonly status?: number
  readonly model?: string
  readonly charge?: bigint
  readonly tokens?: number
  readonly tag?: string
  readonly attempts?: ReadonlyArray<object>
}

const log = Effect.fnUntraced(function* ({ key, org }: Account, row: Row) {
  const sql = yield* SqlClient.SqlClient
  const { at, attempts = [], charge = 0n, model = null, requestId = "r", status = 200, tag = null, tokens = null } = row
  yield* sql`
    INSERT INTO request_log (id, request_id, at, surface, status, org_id, key_id, model, charge, prompt_tokens,
      completion_tokens, cached_tokens, attempts, first_byte_ms, total_ms, end_user, tag)
    VALUES (${logIdAt(Date.parse(at))}, ${requestId}, ${at}, 'chat', ${status}, ${org}, ${key}, ${model}, ${charge},
      ${tokens && 3 * tokens}, ${tokens && 2 * tokens}, ${tokens}, ${JSON.stringify(attempts)}::text::jsonb, 3, 5,
      ${tag && "ann"}, ${tag})`
})

const dataOf = ({ status, text }: { readonly status: number; readonly text: string }) => {
  assert.strictEqual(status, 200, text)
  const { data, object } = JSON.parse(text)
  assert.strictEqual(object, "list")
  return data
}

withLayer(layer)("the usage of an organization", (it) => {
  const opened = Effect.gen(function* () {
    const account = yield* openAccount({ scopes: ["chat"] })
    yield* log(account, { at: "2026-01-01T23:59:59.999Z", model: "m", charge: 1n, tokens: 3 })
    yield* log(account, { at: "2026-01-02T00:00:00Z", model: "m", charge: 20_000_000_005n, tokens: 4 })
    yield* log(account, { at: "2026-01-02T12:00:00Z", model: "n", charge: 7n, tag: "blue" })
    yield* log(account, { at: "2026-01-02T13:00:00Z", model: "none", status: 404 })
    yield* log(account, { at: "2026-01-03T00:00:00Z", model: "m", charge: 1_000n })
    yield* log(yield* openAccount({}), { at: "2026-01-02T00:00:00Z", model: "m", charge: 99n })
    return account
  })
  const range = "from=2026-01-01&to=2026-01-03"
  const sum = (requests: number, tokens: number, charge_usd: number) => {
    const cached = { cached_tokens: tokens, cache_write_tokens: 0, web_searches: 0, images: 0, seconds: 0 }
    return { requests, prompt_tokens: 3 * tokens, completion_tokens: 2 * tokens, ...cached, charge_usd }
  }

  it.effect("is added up by day, model, key and tag, of its own requests only", function* () {
    const account = yield* opened
    assert.deepStrictEqual(dataOf(yield* ask(account, `?${range}`)), [
      { day: "2026-01-01", ...sum(1, 3, 0.000_000_001) },
      { day: "2026-01-02", ...sum(3, 4, 20.000_000_012) }
    ])
    assert.deepStrictEqual(dataOf(yield* ask(account, `?by=model&${range}`)), [
      { model: "m", ...sum(2, 7, 20.000_000_006) },
      { model: "n", ...sum(1, 0, 0.000_000_007) },
      { model: null, ...sum(1, 0, 0) }
    ])
    assert.deepStrictEqual(dataOf(yield* ask(account, `?by=key&${range}`)), [
      { key: account.key, key_name: "", ...sum(4, 7, 20.000_000_013) }
    ])
    assert.deepStrictEqual(dataOf(yield* ask(account, `?by=tag&${range}`)), [
      { tag: null, ...sum(3, 7, 20.000_000_006) },
      { tag: "blue", ...sum(1, 0, 0.000_000_007) }
    ])
  })

  it.effect("is of the range asked for, by default of the last 30 days", function* () {
    const account = yield* opened
    const requests = (query: string) =>
      Effect.map(ask(account, query), (answer) =>
        dataOf(answer).reduce((all: number, row: { readonly requests: number }) => all + row.requests, 0)
      )
    assert.strictEqual(yield* requests("?from=2026-01-02T00:00:00.000Z&to=2026-01-02T12:00:00Z"), 1)
    assert.strictEqual(yield* requests("?from=2026-01-02t02:00:00%2B02:00&to=2026-01-02T12:00:00.001z"), 2)
    assert.strictEqual(yield* requests("?from=2025-01-02&to=2026-01-03"), 4)
    assert.strictEqual(yield* requests("?to=2026-01-31T12:00:00Z"), 5)
    assert.strictEqual(yield* requests("?to=2026-02-01"), 4)
    assert.strictEqual(yield* requests("?to=2026-02-03"), 0)
    assert.strictEqual(yield* requests(""), 0)
    yield* log(account, { at: new Date().toISOString() })
    assert.strictEqual(yield* requests(""), 1)
  })

  it.effect("comes as CSV to whom that is better", function* () {
    const account = yield* opened
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE api_keys SET name = '=cmd|x, "y"' WHERE id = ${account.key}`
    const line = `${account.key},"'=cmd|x, ""y""",4,21,14,7,0,0,0,0,20.000000013\r\n`
    const columns =
      "key,key_name,requests,prompt_tokens,completion_tokens,cached_tokens,cache_write_tokens,web_searches,images,seconds,charge_usd\r\n"
    for (const accept of ["text/csv", "TEXT/CSV;q=0.8, application/json;q=0.5", "text/html, text/csv, */*"]) {
      const answer = yield* ask(account, `?by=key&${range}`, accept)
      assert.deepStrictEqual([answer.status, answer.text], [200, columns + line], accept)
      assert.strictEqual(answer.headers.get("content-type"), "text/csv; charset=utf-8")
      assert.strictEqual(answer.headers.get("vary"), "accept")
    }
    const nobody = yield* openAccount({})
    assert.strictEqual(
      (yield* ask(nobody, "", "text/csv")).text,
      "day,requests,prompt_tokens,completion_tokens,cached_tokens,cache_write_tokens,web_searches,images,seconds,charge_usd\r\n"
    )
    for (const accept of ["*/*", "text/csv;q=0", "text/csv;q=0.5, application/json", "text/csvx", "application/json"]) {
      dataOf(yield* ask(account, `?by=key&${range}`, accept))
    }
  })

  it.effect.each<readonly [query: string, param: string, message: string]>([
    ["?by=provider", "by", "`by` must be one of day, model, key, tag."],
    ["?by=", "by", "`by` must be one of day, model, key, tag."],
    ["?by=day&by=key", "by", "`by` must be one of day, model, key, tag."],
    ["?by=tag&from=2026-01-01&to=2026-02-02", "from", "`from` and `to` must be at most 31 days apart with `by=tag`."],
    ["?from=yesterday", "from", `\`from\` ${form}`],
    ["?from=2026-02-30", "from", `\`from\` ${form}`],
    ["?from=2026-13-01", "from", `\`from\` ${form}`],
    ["?from=0000-01-01&to=0000-01-02", "from", `\`from\` ${form}`],
    ["?from=1700000000", "from", `\`from\` ${form}`],
    ["?from=2026-01-01T00:00:00+02:00", "from", `\`from\` ${form}`],
    ["?from=2026-01-01T00:00:00", "from", `\`from\` ${form}`],
    ["?to=2026-01-01T25:00:00Z", "to", `\`to\` ${form}`],
    ["?to=", "to", `\`to\` ${form}`],
    ["?to=%00", "to", `\`to\` ${form}`],
    ["?from=2026-01-02&to=2026-01-02", "from", "`from` must be before `to`."],
    ["?from=2026-01-03&to=2026-01-02", "from", "`from` must be before `to`."],
    ["?from=9999-01-01", "from", "`from` must be before `to`."],
    ["?from=2025-01-01&to=2026-01-03", "from", "`from` and `to` must be at most 366 days apart."]
  ])("is not given for %s, which names %s", function* ([query, param, message]) {
    assertRefused(yield* ask(yield* openAccount({}), query), badRequest(message, param))
  })

  it.effect("needs a key", function* () {
    for (const below of ["", "/requests/r"]) {
      assertRefused(yield* ask({ secret: "ggw_nobody" }, below), refusals.invalidKey)
    }
  })

  it.effect("is given up where it takes long, and others do not wait for it", function* () {
    const sql = yield* SqlClient.SqlClient
    const [account, other] = [yield* openAccount({}), yield* openAccount({})]
    const locked = yield* Deferred.make<void>()
    const lock = yield* sql`LOCK TABLE request_log, usage_totals`.pipe(
      Effect.zipRight(Deferred.succeed(locked, undefined)),
      Effect.zipRight(sql`SELECT pg_sleep(7)`),
      sql.withTransaction,
      Effect.fork
    )
    yield* Deferred.await(locked)
    const answers = yield* Effect.all(
      [ask(account, ""), ask(account, ""), ask(account, "/requests/r"), ask(other, "")],
      { concurrency: "unbounded" }
    )
    yield* Fiber.join(lock)
    const [mine, theirs] = [answers.slice(0, 3), answers[3]]
    if (theirs !== undefined) assertRefused(theirs, busy)
    for (const answer of mine) assertRefused(answer, busy)
    assert.deepStrictEqual(dataOf(yield* ask(account, "")), [])
  })
})

withLayer(layer)("a request of an organization", (it) => {
  it.effect("is shown to its organization, the newest of its id, without providers", function* () {
    const [account, other] = [yield* openAccount({ scopes: ["images"] }), yield* openAccount({})]
    const attempts = [
      { route: "m@secret", provider: "secret", outcome: "retry", status: 503, ms: 12, detail: "secret words" },
      { route: "m@other", provider: "other", outcome: "ok", ms: 3 }
    ]
    const requestId = `own-${randomUUID()}`
    const newest = { at: "2026-01-02T00:00:00Z", requestId, model: "new", tag: "blue" }
    yield* log(account, { ...newest, charge: 5n, tokens: 2, attempts })
    yield* log(account, { at: "2026-01-01T00:00:00Z", requestId, model: "old" })
    yield* log(other, { at: "2026-01-03T00:00:00Z", requestId, model: "foreign" })
    const answer = yield* ask(account, `/requests/${requestId}`)
    assert.deepStrictEqual(
      [answer.status, JSON.parse(answer.text)],
      [
        200,
        {
          id: requestId,
          object: "request",
          created_at: Date.parse("2026-01-02T00:00:00Z") / 1000,
          surface: "chat",
          model: "new",
          stream: false,
          status: 200,
          code: null,
          error: null,
          end_user: "ann",
          tag: "blue",
          prompt_tokens: 6,
          completion_tokens: 4,
          cached_tokens: 2,
          cache_write_tokens: 0,
          cache_write_1h_tokens: 0,
          reasoning_tokens: 0,
          web_searches: 0,
          images: null,
          seconds: null,
          hold_usd: null,
          charge_usd: 0.000_000_005,
          attempts: [
            { outcome: "retry", ms: 12 },
            { outcome: "ok", ms: 3 }
          ],
          first_byte_ms: 3,
          total_ms: 5
        }
      ]
    )
    assertRefused(yield* ask(yield* openAccount({}), `/requests/${requestId}`), refusals.noRequest)
  })

  it.effect("has no counts where nothing was counted, and no charge", function* () {
    const account = yield* openAccount({})
    const requestId = `refused-${randomUUID()}`
    yield* log(account, { at: "2026-01-02T00:00:00Z", requestId, model: "new" })
    const { charge_usd, ...request } = JSON.parse((yield* ask(account, `/requests/${requestId}`)).text)
    assert.strictEqual(charge_usd, 0)
    const counts = Object.entries(request).filter(([name]) => /_tokens$|^(web_searches|images|seconds)$/.test(name))
    assert.lengthOf(counts, 9)
    for (const [name, count] of counts) assert.isNull(count, name)
  })

  it.effect.each(["nothing", "%00", "a%20b", "%F0%9F%98%80", "a".repeat(129), "..%2Fvideos"])(
    "is unknown by the id %s",
    function* (id) {
      assertRefused(yield* ask(yield* openAccount({}), `/requests/${id}`), refusals.noRequest)
    }
  )
})
