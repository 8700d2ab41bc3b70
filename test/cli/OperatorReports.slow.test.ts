import { SqlClient } from "@effect/sql"
import { Effect } from "effect"
import { assert, withLayer } from "../harness/It.ts"
import { Cli, json, list, misuse, text } from "./Cli.ts"
import { chat, customer, OperatedGateway, spendOf, suiteWithGateway } from "./Operator.ts"

withLayer(suiteWithGateway)("reports of the operator", (it) => {
  it.effect("requests are exported whole, in order, by time and status", function* () {
    const sql = yield* SqlClient.SqlClient
    const { id: org } = yield* json("orgs", "create", "exporter")
    yield* sql`INSERT INTO request_log (id, request_id, at, surface, status, code, org_id, key_id, model, total_ms)
        SELECT uuid_v7('2026-01-01'::timestamptz + (n / 3) * interval '1 second'), 'r' || n,
          '2026-01-01'::timestamptz + (n / 3) * interval '1 second', 'chat',
          CASE n % 4 WHEN 0 THEN 503 WHEN 1 THEN 429 ELSE 200 END, CASE n % 4 WHEN 2 THEN 'stream_error' END,
          ${String(org)}, 'key_1', '=cmd,"x"', 1
        FROM generate_series(1, 2500) AS n`
    const rows = yield* list("requests", "--org", "exporter")
    assert.lengthOf(rows, 2500)
    assert.lengthOf(new Set(rows.map(({ request_id }) => request_id)), 2500)
    const times = rows.map(({ at }) => Number(at))
    assert.deepStrictEqual(
      times,
      times.toSorted((a, b) => b - a)
    )
    assert.lengthOf(yield* list("requests", "--org", "exporter", "--limit", "1001"), 1001)
    const by = (...filters: ReadonlyArray<string>) =>
      Effect.map(list("requests", "--org", "exporter", ...filters), ({ length }) => length)
    assert.deepStrictEqual(
      [
        yield* by("--status", "5xx"),
        yield* by("--status", "4xx"),
        yield* by("--status", "ok"),
        yield* by("--status", "200"),
        yield* by("--status", "error")
      ],
      [625, 625, 625, 1250, 1250]
    )
    assert.strictEqual(yield* by("--until", "2026-01-01T00:00:02"), 5)
    const csv = (yield* text("requests", "--org", "exporter", "--csv")).trimEnd().split("\n")
    assert.lengthOf(csv, 2501)
    assert.match(csv[0] ?? "", /^id,request_id,at,status,code,org,/)
    assert.include(csv[1], `"'=cmd,""x"""`)
    assert.lengthOf((yield* text("requests", "--org", "exporter")).trimEnd().split("\n"), 101)
    assert.include(yield* misuse(["requests", "--csv", "--json"]), "--csv cannot be combined")
    assert.include(yield* misuse(["requests", "--follow", "--until", "1h"]), "--follow cannot be combined with --until")
  })

  it.scoped("usage by two things adds up to what the ledger has", function* () {
    const { send } = yield* OperatedGateway
    const { key, keyId, name, org } = yield* customer()
    for (const model of ["gemini-3.6-flash", "gpt-5.4", "no-such-model"]) {
      yield* send({ path: "/chat/completions", id: "u", key, body: { ...chat("hi"), model } })
    }
    for (const by of ["org,model", "model,status", "key,surface", "route,day", "day,model", "provider,org"]) {
      const rows = yield* list("usage", "--org", name, "--by", by)
      const spend = rows.reduce((sum, row) => sum + Number(row["spend_usd"]), 0)
      assert.closeTo(spend, yield* spendOf(org), 1e-9, by)
      const totals = (yield* json("usage", "--org", name, "--by", by))["totals"]
      assert.deepInclude(totals, { requests: 3 })
    }
    const rows = yield* list("usage", "--org", name, "--by", "org,model")
    assert.deepStrictEqual(
      rows
        .map((row) => [row["org"], row["name"], row["model"]])
        .toSorted((a, b) => String(a[2]).localeCompare(String(b[2]))),
      ["gemini-3.6-flash", "gpt-5.4", "unknown"].map((model) => [org, name, model])
    )
    assert.match(yield* text("usage", "--org", name), /^total +3 /m)
    const csv = yield* text("usage", "--org", name, "--by", "key", "--csv")
    assert.match(csv, new RegExp(`^key,name,requests,.*\\n${keyId},,3,`))
  })

  it.effect("prints the completions of each shell", function* () {
    const { run } = yield* Cli
    for (const shell of ["bash", "zsh", "fish"]) {
      const { code, stdout } = yield* run(["--completions", shell])
      assert.strictEqual(code, 0)
      assert.include(stdout, "refund")
    }
  })
})
