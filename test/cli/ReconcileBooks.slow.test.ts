import { writeFileSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { assert, withLayer } from "../harness/It.ts"
import { type BooksAnswer, serveInvoices } from "../harness/upstream/FakeInvoices.ts"
import { Cli } from "./Cli.ts"
import { dateOf, day, from, hour, logAt, reconcile, secret, suite } from "./Reconciling.ts"

withLayer(suite)("gateway reconcile", (it) => {
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

  it.scoped("unreadable invoices end the command with 2 and do not print the key", function* () {
    const answers: ReadonlyArray<readonly [BooksAnswer, string]> = [
      [
        { status: 401, body: { error: { message: `bad key ${secret}` } } },
        "refused the key in OPENROUTER_MANAGEMENT_KEY"
      ],
      [{ body: "<html>down</html>", headers: { "content-type": "text/html" } }, "did not answer with JSON"],
      [{ body: '{"data": [{"date":' }, "did not answer with JSON"],
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
      const { baseUrl } = yield* serveInvoices(() => answer)
      const finished = yield* reconcile("router", ["--base-url", baseUrl], { OPENROUTER_MANAGEMENT_KEY: secret })
      assert.strictEqual(finished.code, 2)
      assert.include(finished.stderr, message)
      assert.strictEqual(finished.stdout, "")
    }
  })

  it.scoped("a request to a busy vendor is retried", function* () {
    const { baseUrl, calls } = yield* serveInvoices((_, number) =>
      number === 1 ? { status: 429, headers: { "retry-after": "0" }, body: "" } : { body: { data: [] } }
    )
    const { code } = yield* reconcile("router", ["--base-url", baseUrl, "--json"], {
      OPENROUTER_MANAGEMENT_KEY: secret
    })
    assert.strictEqual(code, 0)
    assert.lengthOf(calls, 3)
  })

  it.scoped("a comparison by request id is refused if log rows are deleted, one by windows is not", function* () {
    const { directory } = yield* Cli
    const sql = yield* SqlClient.SqlClient
    yield* sql`UPDATE usage_bounds SET rows_from = ${new Date(from + day)}`
    writeFileSync(path.join(directory, "ids.csv"), `time,model,usd,id\n${dateOf(from)},nine,1,a\n`)
    const columns = "time=time,model=model,usd=usd"
    const byId = yield* reconcile("acme", ["--file", "ids.csv", "--columns", `${columns},request_id=id`])
    assert.strictEqual(byId.code, 2)
    assert.include(
      byId.stderr,
      `A comparison by request id needs the log, which starts at ${new Date(from + day).toISOString()}`
    )
    const byDay = yield* reconcile("acme", ["--file", "ids.csv", "--columns", columns])
    assert.strictEqual(byDay.code, 1)
    assert.include(byDay.stdout, "1 price")
    yield* sql`UPDATE usage_bounds SET rows_from = '-infinity'`
  })

  it.scoped("a year of hours is compared in parts, with its progress on stderr", function* () {
    const { directory, run } = yield* Cli
    const sql = yield* SqlClient.SqlClient
    const start = from - 365 * day
    const [series] = yield* sql`
      INSERT INTO usage_series (org_id, key_id, model, route, provider, surface, status, is_sold)
      VALUES ('org_y', 'key_y', 'talk', 'talk@acme', 'acme', 'chat', 200, true) RETURNING id`
    for (const [span, step, requests] of [
      ["hour", "1 hour", 115],
      ["day", "1 day", 24 * 115]
    ] as const) {
      yield* sql`
        INSERT INTO usage_totals (starts_at, series_id, span, requests, errors, prompt_tokens, completion_tokens,
          cached_tokens, cache_write_tokens, cache_write_hour_tokens, reasoning_tokens, web_searches, charge, cost, margin,
          costed, uncosted)
        SELECT at, ${series?.["id"] ?? 0}, ${span}, ${requests}, 0, 10, 1, 0, 0, 0, 0, 0, 0, 1000000000, 0, ${requests}, 0
        FROM generate_series(${new Date(start)}::timestamptz, ${new Date(from - 1)}, ${step}::interval) AS at`
    }
    const lines = Array.from(
      { length: 365 * 24 },
      (_, index) => `${new Date(start + index * hour).toISOString()},nine,1`
    )
    writeFileSync(path.join(directory, "year.csv"), `time,model,usd\n${lines.join("\n")}\n`)
    const columns = ["--file", "year.csv", "--columns", "time=time,model=model,usd=usd"]
    const { code, stderr, stdout } = yield* run(
      ["reconcile", "acme", "--since", dateOf(start), "--until", dateOf(from), ...columns],
      { CATALOG_FILE: "books.yaml" }
    )
    assert.include(stdout, `${365 * 24} matched, 0 theirs_only, 0 ours_only`)
    assert.include(stderr, "by hour: 53 of 53 parts are compared")
    assert.strictEqual(code, 0)
  })

  it.scoped("missing or invalid options are named, with exit code 2", function* () {
    const { directory } = yield* Cli
    const bad = path.join(directory, "bad.csv")
    writeFileSync(bad, "time,model,usd\n2026-13-01,m,1\n")
    writeFileSync(path.join(directory, "endless.csv"), `time,model,usd\n2026-11-01,"m${",".repeat(200_000)}`)
    const columns = ["--columns", "time=time,model=model,usd=usd"]
    const misuses: ReadonlyArray<readonly [ReadonlyArray<string>, string]> = [
      [["openai"], "OPENAI_ADMIN_KEY is not set"],
      [["nobody"], "The catalog has no provider nobody."],
      [["acme"], "The gateway cannot fetch invoices of acme"],
      [["acme", "--file", "bad.csv"], "--file and --columns must be used together."],
      [["acme", "--file", "bad.csv", ...columns], "bad.csv:2: time is no date or time"],
      [["acme", "--file", "endless.csv", ...columns], "endless.csv:2: the line is longer than 100000 characters"],
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
    assert.deepStrictEqual([broken.code, broken.stderr], [2, "gateway: --since must be the start of a UTC day.\n"])
  })
})
