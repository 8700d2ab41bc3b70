import { randomUUID } from "node:crypto"
import { SqlClient } from "@effect/sql"
import { Effect, Struct } from "effect"
import { SearchLimit } from "../../../src/services/telemetry/RequestListing.ts"
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

const account = Effect.map(openAccount({}), ({ key, org }) => ({ org, key, owned: { org_id: org, key_id: key } }))

const attempts = [
  { route: "m@q", provider: "q", outcome: "retry", status: 503, ms: 3, detail: "<b>over</b>loaded", cost_nano: "250" },
  { route: "m@p", provider: "p", outcome: "ok", status: 200, ms: 4, provider_request_id: "theirs" }
]

withLayer(layer)("requests at the admin API", (it) => {
  it.effect("are listed newest first with the names of their organization and key, page by page", function* () {
    const admin = yield* reader
    const { key, org, owned } = yield* account
    const at = (second: number) => new Date(Date.UTC(2026, 2, 1, 0, 0, second))
    const ids: Array<string> = []
    for (const second of [1, 2, 2, 3]) ids.push(yield* logRequest({ ...owned, at: at(second) }))
    const counts = { prompt_tokens: 10, completion_tokens: 4 }
    const more = {
      model: "m",
      route: "m@p",
      preferred_route: "m@q",
      end_user: "ann",
      tag: "blue",
      attempts,
      ...counts,
      cost: 7,
      charge: 1_234_567_891
    }
    ids.push(yield* logRequest({ ...owned, ...more, at: at(4), request_id: "mine" }))
    const first = read(yield* admin(`/requests?organization=${org}&limit=3`))
    const rest = read(yield* admin(`/requests?organization=${org}&limit=3&after=${first.next}`))
    const all = [...first.data, ...rest.data]
    assert.sameMembers(all.map(Struct.get("id")), ids)
    const times = all.map(({ at }) => at)
    assert.deepStrictEqual(
      times,
      times.toSorted((a, b) => b - a)
    )
    assert.deepStrictEqual([first.has_more, rest.has_more, rest.next], [true, false, null])
    const { name } = read(yield* admin(`/organizations/${org}`))
    assert.deepStrictEqual(all[0], {
      id: ids[4],
      request_id: "mine",
      at: Date.UTC(2026, 2, 1, 0, 0, 4) / 1000,
      status: 200,
      code: null,
      error: null,
      org,
      key_id: key,
      address: null,
      user_agent: null,
      end_user: "ann",
      tag: "blue",
      surface: "chat",
      model: "m",
      stream: false,
      route: "m@p",
      preferred_route: "m@q",
      provider_request_id: null,
      attempts: attempts.map(({ cost_nano, ...attempt }) => ({
        ...attempt,
        ...(cost_nano !== undefined && { cost_usd: 0.000_000_25 })
      })),
      usage: {
        ...counts,
        total_tokens: 14,
        cached_tokens: 0,
        cache_write_tokens: 0,
        cache_write_1h_tokens: 0,
        reasoning_tokens: 0,
        web_searches: 0,
        images: 0,
        seconds: 0
      },
      notes: [],
      charge_usd: 1.234567891,
      refunded_usd: 0,
      cost_usd: 0.000_000_257,
      stated_cost_usd: null,
      first_byte_ms: null,
      total_ms: 5,
      video_status: null,
      org_name: name,
      key_name: ""
    })
    assertRefused(yield* admin("/requests?after=x"), badRequest("`after` must be the `next` of a page.", "after"))
  })

  it.effect("are found by each filter", function* () {
    const admin = yield* reader
    const { key, org, owned } = yield* account
    const model = `m-${randomUUID()}`
    const ok = yield* logRequest({ ...owned, model, at: new Date("2026-03-01") })
    const left = yield* logRequest({ ...owned, status: 499, at: new Date("2026-03-01T12:00Z") })
    const limited = yield* logRequest({
      ...owned,
      status: 429,
      code: "rate_limit_exceeded",
      address: "203.0.113.8",
      at: new Date("2026-03-02")
    })
    const broken = yield* logRequest({ ...owned, code: "stream_error", stream: true, at: new Date("2026-03-03") })
    const failed = yield* logRequest({ ...owned, status: 503, surface: "video", at: new Date("2026-03-04") })
    const routed = yield* logRequest({
      ...owned,
      route: `${model}@p`,
      request_id: "a b",
      address: "203.0.113.7",
      at: new Date("2026-03-05")
    })
    const found = (query: string) =>
      Effect.map(admin(`/requests?organization=${org}&${query}`), (answer) =>
        read(answer).data.map(({ id }: { id: string }) => id)
      )
    const { name } = read(yield* admin(`/organizations/${org}`))
    const cases: ReadonlyArray<readonly [string, ReadonlyArray<string>]> = [
      [`key=${key}`, [routed, failed, broken, limited, left, ok]],
      ["key=key_other", []],
      [`model=${model}`, [ok]],
      [`route=${model}@p`, [routed]],
      ["surface=video", [failed]],
      ["code=stream_error", [broken]],
      ["status=429", [limited]],
      ["status=4xx", [limited, left]],
      ["status=rejected", [limited]],
      ["status=5xx", [failed]],
      ["status=ok", [routed, ok]],
      ["status=error", [failed, broken]],
      ["address=203.0.113.7", [routed]],
      ["address=203.0.113.0/24", [routed, limited]],
      ["address=2001:db8::/32", []],
      ["search=a%20b", [routed]],
      [`search=${ok}`, [ok]],
      ["since=2026-03-04", [routed, failed]],
      [`until=${Date.UTC(2026, 2, 2) / 1000}`, [left, ok]],
      ["since=2026-03-02&until=2026-03-03T00:00:01Z&status=429", [limited]],
      ["since=999999999w&until=9999-12-31&status=4xx", [limited, left]],
      ["since=0000-01-01&status=4xx", [limited, left]],
      ["until=0000-01-01", []]
    ]
    for (const [query, ids] of cases) assert.deepStrictEqual(yield* found(query), ids, query)
    const byName = read(yield* admin(`/requests?organization=${encodeURIComponent(name)}&status=429`))
    assert.lengthOf(byName.data, 1)
  })

  it.effect("are refused by the name of a filter that is wrong", function* () {
    const admin = yield* reader
    const text = "must be a string of at most 1000 characters without control characters."
    const status = "must be an HTTP status, 4xx, 5xx, ok, error or rejected."
    for (const [query, param, problem] of [
      ["status=teapot", "status", status],
      ["status=99", "status", status],
      ["status=4.5", "status", status],
      ["address=all", "address", "must be an address or a range such as 203.0.113.0/24 or 2001:db8::/32."],
      ["surface=sms", "surface", "must be one of chat, image, video."],
      ["model=%01", "model", text],
      [`route=${"x".repeat(10_000)}`, "route", text],
      ["search=%1b", "search", text],
      ["organization=%01", "organization", "must be an id or a name."],
      ["limit=1001", "limit", "must be an integer from 1 to 1000."]
    ] as const) {
      assertRefused(yield* admin(`/requests?${query}`), badRequest(`\`${param}\` ${problem}`, param))
    }
    assertRefused(
      yield* admin("/requests?organization=nobody"),
      badRequest("There is no organization nobody.", "organization")
    )
    const since = yield* admin("/requests?since=tomorrow")
    assert.strictEqual(since.status, 400)
    assert.include(since.text, '"param":"since"')
    for (const hostile of ["<script>alert(1)</script>", "%E2%80%AEgpj", "'; DROP TABLE request_log; --", "%"]) {
      const answer = yield* admin(
        `/requests?model=${encodeURIComponent(hostile)}&search=${encodeURIComponent(hostile)}`
      )
      assert.deepStrictEqual(read(answer).data, [])
    }
  })

  it.effect("say that a page ended early, because it searched as many as one page may", function* () {
    const admin = yield* reader
    const sql = yield* SqlClient.SqlClient
    const { key, org, owned } = yield* account
    const limit = yield* SearchLimit
    const oldest = yield* logRequest({ ...owned, at: new Date("2026-01-01"), address: "203.0.113.9" })
    yield* sql`INSERT INTO request_log (id, request_id, at, surface, status, org_id, key_id, charge, total_ms)
        SELECT uuid_v7('2026-01-02'::timestamptz), 'r', '2026-01-02', 'chat', 200, ${org}, ${key}, 0, 1
        FROM generate_series(1, ${limit}::int)`
    const page = (after = "") =>
      Effect.map(admin(`/requests?organization=${org}&address=203.0.113.9${after}`), (answer) => read(answer))
    const first = yield* page()
    assert.deepStrictEqual([first.data, first.has_more, first.cut_short], [[], true, true])
    const rest = yield* page(`&after=${first.next}`)
    assert.deepStrictEqual([rest.data.map(Struct.get("id")), rest.has_more, rest.cut_short], [[oldest], false, false])
  })

  it.effect("come as CSV with what the list shows, however many they are", function* () {
    const admin = yield* reader
    const sql = yield* SqlClient.SqlClient
    const { key, org, owned } = yield* account
    yield* sql`INSERT INTO request_log (id, request_id, at, surface, status, org_id, key_id, model, charge, cost, prompt_tokens,
          completion_tokens, total_ms)
        SELECT uuid_v7('2026-01-01'::timestamptz + (n / 3) * interval '1 second'), 'r' || n,
          '2026-01-01'::timestamptz + (n / 3) * interval '1 second', 'chat', 200, ${org},
          ${key}, '=cmd,"x"', n * 1234567::bigint, CASE n % 3 WHEN 0 THEN n * 7 END, n, 1, 1
        FROM generate_series(1, 2500) AS n`
    yield* logRequest({
      ...owned,
      attempts,
      model: "@m\u202e\n",
      notes: ["usage_estimated", "hold_exceeded"],
      status: 429
    })
    const answer = yield* admin(`/requests.csv?organization=${org}`)
    assert.strictEqual(answer.headers.get("content-type"), "text/csv; charset=utf-8")
    assert.strictEqual(answer.headers.get("content-disposition"), 'attachment; filename="requests.csv"')
    const rows = parseCsv(answer.text)
    assert.lengthOf(rows, 2501)
    let after = ""
    const listed: Array<Readonly<Record<string, string | number>>> = []
    do {
      const page = read(yield* admin(`/requests?organization=${org}&limit=1000${after && `&after=${after}`}`))
      listed.push(...page.data)
      after = page.next
    } while (after !== null)
    assert.deepStrictEqual(rows.map(Struct.get("id")), listed.map(Struct.get("id")))
    for (const [index, { charge_usd = 0, cost_usd, request_id }] of listed.entries()) {
      const row = rows[index]
      assert.strictEqual(row?.["request_id"], request_id)
      assert.strictEqual(nanoOf(row?.["charge_usd"] ?? ""), nanoOf(charge_usd))
      assert.strictEqual(nanoOf(row?.["cost_usd"] ?? ""), nanoOf(cost_usd ?? 0))
    }
    assert.deepInclude(rows[0], { model: "'@m ", tries: "2", notes: "usage_estimated,hold_exceeded", status: "429" })
    assert.strictEqual(rows[1]?.["model"], `'=cmd,"x"`)
    assert.lengthOf(parseCsv((yield* admin(`/requests.csv?organization=${org}&status=429`)).text), 1)
    const none = yield* admin(`/requests.csv?organization=${org}&status=418`)
    assert.match(none.text, /^id,request_id,at,[^\n]*,total_ms,error_param,error_message,error_hint,video_status\r\n$/)
    assertRefused(
      yield* admin("/requests.csv?organization=nobody"),
      badRequest("There is no organization nobody.", "organization")
    )
  })

  it.effect("one is shown by its row or its request id, which names the others that have it", function* () {
    const admin = yield* reader
    const { owned } = yield* account
    const request_id = `same-${randomUUID()}`
    const old = yield* logRequest({
      ...owned,
      request_id,
      at: new Date("2026-03-01"),
      status: 402,
      code: "insufficient_quota"
    })
    const skipped = [{ route: "m@p", provider: "p", outcome: "skipped", ms: 0 }]
    const preferred = { preferred_route: "m@p", route: "m@q", attempts: [...skipped, { ...attempts[1], route: "m@q" }] }
    const middle = yield* logRequest({ ...owned, request_id, at: new Date("2026-03-02"), ...preferred })
    const newest = yield* logRequest({ ...owned, request_id, at: new Date("2026-03-03") })
    const shown = read(yield* admin(`/requests/${request_id}`))
    assert.deepInclude(shown, {
      id: newest,
      others: [middle, old],
      preference: null,
      hold: null,
      video: null,
      entries: []
    })
    assert.strictEqual(shown.price.why, "Nothing was held, so nothing was charged.")
    const byRow = read(yield* admin(`/requests/${middle}`))
    assert.deepInclude(byRow, { id: middle, others: [newest, old] })
    assert.strictEqual(byRow.preference, "m@p had the prompt cache of the conversation, but its circuit was open.")
    const impostor = yield* logRequest({ ...owned, request_id: middle, at: new Date("2026-03-04") })
    assert.deepInclude(read(yield* admin(`/requests/${middle}`)), { id: middle, request_id })
    assert.deepInclude(read(yield* admin(`/requests/${impostor}`)), { id: impostor, others: [middle] })
    for (const id of ["nothing", randomUUID(), "%01", "x".repeat(10_000)]) {
      const { status, text } = yield* admin(`/requests/${id}`)
      assert.strictEqual(status, 404)
      assert.include(text, "There is no request")
    }
  })

  it.effect("that failed are counted by status and code, the most frequent first", function* () {
    const admin = yield* reader
    const { org, owned } = yield* account
    const at = (day: number) => new Date(Date.UTC(2026, 2, day))
    const limited = { ...owned, status: 429, code: "rate_limit_exceeded" }
    for (const day of [1, 2, 3]) yield* logRequest({ ...limited, at: at(day) })
    yield* logRequest({ ...limited, code: "tokens_limit_exceeded", at: at(3) })
    yield* logRequest({ ...owned, status: 404, at: at(4) })
    yield* logRequest({ ...owned, at: at(4) })
    yield* logRequest({ ...owned, code: "stream_error", at: at(2) })
    yield* logRequest({ status: 503, at: at(3) })
    const count = (status: number, code: string | null, requests: number, day: number) => ({
      status,
      code,
      requests,
      last_at: at(day).getTime() / 1000
    })
    const tokens = count(429, "tokens_limit_exceeded", 1, 3)
    assert.deepStrictEqual(read(yield* admin(`/requests/failures?organization=${org}`)).data, [
      count(429, "rate_limit_exceeded", 3, 3),
      count(404, null, 1, 4),
      tokens,
      count(200, "stream_error", 1, 2)
    ])
    const span = "since=2026-03-02&until=2026-03-04"
    assert.deepStrictEqual(read(yield* admin(`/requests/failures?organization=${org}&${span}`)).data, [
      count(429, "rate_limit_exceeded", 2, 3),
      tokens,
      count(200, "stream_error", 1, 2)
    ])
  })

  it.effect("are for operators only", function* () {
    const { url } = yield* MediaServer
    for (const path of ["/requests", "/requests.csv", "/requests/failures", "/requests/x"]) {
      assert.strictEqual((yield* adminAt(url, "ggo_wrong")(path)).status, 401)
    }
  })
})
