import { mkdirSync, writeFileSync } from "node:fs"
import path from "node:path"
import { Effect, Layer } from "effect"
import { Embedded } from "../../src/database/Embedded.ts"
import { allGone } from "../database/EmbeddedDatabase.ts"
import { emptyUrl } from "../harness/database/Postgres.ts"
import { talkCatalog } from "../harness/fixtures/ChatCatalog.ts"
import { assert, withLayer } from "../harness/It.ts"
import { Cli, cliProgram, failure, list, misuse, text } from "./Cli.ts"
import { commandHelps } from "./Helps.ts"

withLayer(Cli.layer)("gateway", (it) => {
  it.effect("a misuse is one line on stderr and exit code 2, and JSON with --json", function* () {
    const message = yield* misuse(["nope"])
    assert.include(message, '"nope"')
    assert.include(yield* misuse(["keys", "create", "--json"]), "--org")
    const { start } = yield* Cli
    const { stderr, ...finished } = yield* (yield* start(["nope", "--json"])).finished
    assert.deepStrictEqual(finished, { code: 2, stdout: "" })
    assert.deepStrictEqual(JSON.parse(stderr), { error: { message, type: "usage_error" } })
    const capped = ["keys", "create", "--org", "a"]
    assert.include(yield* misuse([...capped, "--cap", "1"]), "--cap-period")
    assert.include(yield* misuse([...capped, "--cap-period", "day"]), "--cap")
    assert.include(yield* misuse(["requests", "--csv", "--follow"]), "--csv")
    for (const report of ["usage", "requests"]) {
      assert.include(yield* misuse([report, "--since", "1d", "--until", "2d"]), "--since")
      assert.include(yield* misuse([report, "--since", "today", "--until", "yesterday"]), "--since")
    }
  })

  it.scoped("serve runs what main gives it, and tells its failure in one line", function* () {
    const { start } = yield* Cli
    const entry = yield* cliProgram
    const served = (args: ReadonlyArray<string>, environment = {}) =>
      Effect.flatMap(start(["serve", ...args], environment, entry), ({ finished }) => finished)
    assert.deepStrictEqual(yield* served([]), { code: 0, stdout: "serving\n", stderr: "" })
    assert.deepStrictEqual(yield* served(["--json"]), { code: 0, stdout: "serving in JSON\n", stderr: "" })
    const failed = { code: 1, stdout: "", stderr: "gateway: It cannot be served.\n" }
    assert.deepStrictEqual(yield* served([], { SERVE_FAILS: "1" }), failed)
  })

  it.effect("the help of every command tells of its arguments and its options", function* () {
    const helps = yield* commandHelps(text)
    assert.isAbove(helps.length, 45)
    for (const { help, name, options } of helps) {
      assert.match(help, new RegExp(`^gateway ${name}`), name)
      const terms = [...options.slice(1), ...(help.split("\n\n")[0]?.match(/<[A-Z_]+>/g) ?? [])]
      for (const term of terms) {
        assert.match(help, new RegExp(`^ {2}${term}(?: \\S+)*(?: {2,}|\\n +)[^\\s].{3}`, "m"), `${name} ${term}`)
      }
    }
  })

  it.effect("help and version are plain text, and serve's help has every setting", function* () {
    assert.strictEqual((yield* text("--version")).trim(), "1.0.0")
    const help = yield* text("serve", "--help")
    assert.match(help, /^PORT +8787 /m)
    assert.match(help, /^OTEL_EXPORTER_OTLP_ENDPOINT /m)
    assert.notInclude(help, "\u001b")
    const overview = yield* text("--help")
    assert.isAtMost(overview.trimEnd().split("\n").length, 40)
    assert.isAtMost(Math.max(...overview.split("\n").map((line) => line.length)), 80)
    assert.strictEqual(yield* text(), overview)
  })

  it.effect(
    "a wrong setting, a dead database and an unknown password are one line each, without the secret",
    function* () {
      assert.include(yield* failure(["orgs", "list"], { TRUST_PROXY: "x" }), "TRUST_PROXY")
      const dead = yield* failure(["orgs", "list", "--json"], { DATABASE_URL: "postgres://u:hunter2@127.0.0.1:1/x" })
      assert.include(dead, "127.0.0.1:1")
      assert.notInclude(dead, "hunter2")
    }
  )

  it.effect("settings come from a .env file too", function* () {
    const { directory, run, url } = yield* Cli
    const home = path.join(directory, ".env")
    writeFileSync(home, "LOG_FORMAT=xml\n")
    assert.include(yield* failure(["orgs", "list"]), "LOG_FORMAT")
    writeFileSync(home, `DATABASE_URL="postgres://u@127.0.0.1:1/x"\n`)
    assert.strictEqual((yield* run(["orgs", "list"], { DATABASE_URL: url })).code, 0)
    writeFileSync(home, "")
  })

  it.scoped("a server's database is migrated by gateway migrate alone", function* () {
    const { run } = yield* Cli
    const environment = { DATABASE_URL: yield* emptyUrl }
    assert.include(yield* failure(["orgs", "list"], environment), "gateway migrate")
    const first = yield* run(["migrate", "--json"], environment)
    const document: unknown = JSON.parse(first.stdout)
    assert.include(JSON.stringify(document), '"applied":["0001_organizations","0002_ledger"')
    assert.strictEqual(first.stderr, "")
    assert.strictEqual((yield* run(["migrate"], environment)).stdout, "The database is up to date.\n")
    const second = yield* run(["migrate"], { DATABASE_URL: yield* emptyUrl })
    assert.match(second.stdout, /^Created the database: \d+ migrations\.\n$/)
    assert.strictEqual(second.stderr, "")
    assert.strictEqual((yield* run(["orgs", "list"], environment)).stdout, "There are no organizations.\n")
  })

  it.effect("the first command starts and migrates an existing embedded database, which others share", function* () {
    const { directory, run, start } = yield* Cli
    const dataDir = path.join(directory, "data")
    mkdirSync(dataDir)
    const environment = { DATABASE_URL: "", DATA_DIR: dataDir }
    yield* Effect.scoped(Layer.build(Embedded.layer({ dataDir })))
    const both = yield* Effect.all(
      ["a", "b"].map((name) =>
        Effect.flatMap(start(["orgs", "create", name], environment), ({ finished }) => finished)
      ),
      { concurrency: 2 }
    )
    assert.deepStrictEqual(
      both.map(({ code, stderr }) => ({ code, stderr })),
      [
        { code: 0, stderr: "" },
        { code: 0, stderr: "" }
      ]
    )
    const { stdout } = yield* run(["orgs", "list"], environment)
    assert.match(stdout, /^a .*\n(.*\n)*b |^b .*\n(.*\n)*a /m)
    yield* allGone({ dataDir, home: path.join(dataDir, "postgres") })
  })

  const catalogText = talkCatalog(
    ["acme"],
    "{provider: acme, model: v-talk, cost: {prompt_per_1m_usd: 1.5, completion_per_1m_usd: 5}}"
  )

  it.effect(
    "catalog check needs no database: what is on, what is off and why, the lowest margin, mistakes by line",
    function* () {
      const { directory, run } = yield* Cli
      const file = path.join(directory, "catalog.yaml")
      const nowhere = { DATABASE_URL: "postgres://u@127.0.0.1:1/x" }
      writeFileSync(file, catalogText)
      const off = yield* run(["catalog", "check", file], nowhere)
      assert.strictEqual(off.stderr, "gateway: 1 price is below the provider's cost.\n")
      assert.strictEqual(off.code, 1)
      assert.match(off.stdout, /talk +chat +-25 +off: set ACME_KEY$/m)
      assert.notInclude(off.stdout, "prompt per 1M")
      assert.match(off.stdout, /^LOSS {2}talk@acme: the price of completion per 1M/m)
      assert.match(off.stdout, /such as markup: 20$/m)
      writeFileSync(file, `markup: 50\n${catalogText}`)
      const marked = yield* run(["catalog", "check", file], nowhere)
      assert.match(marked.stdout, /talk +chat +50 +\S+ +off: set ACME_KEY$/m)
      assert.notInclude(marked.stdout, "such as markup")
      writeFileSync(file, catalogText)
      const on = yield* run(["catalog", "check", "--json"], { ...nowhere, CATALOG_FILE: file, ACME_KEY: "sk-secret" })
      assert.notInclude(on.stdout, "sk-secret")
      const document: unknown = JSON.parse(on.stdout)
      assert.include(JSON.stringify(document), '"id":"talk","surface":"chat","callable":true')
      assert.include(
        JSON.stringify(document),
        '{"unit":"prompt per 1M","price_usd":2,"cost_usd":1.5,"margin_usd":0.5,"margin_pct":25}'
      )
      writeFileSync(file, catalogText.replace("max_output: 64000", "max_output: lots"))
      const broken = yield* run(["catalog", "check", file, "--json"], nowhere)
      assert.strictEqual(broken.code, 1)
      assert.match(broken.stderr, /catalog\.yaml:11: models\[0\]\.max_output: /)
      assert.include(broken.stdout, '"valid": false')
      assert.include(broken.stdout, '"line": 11')
      assert.strictEqual((yield* run(["catalog", "check", "/nowhere.yaml"], nowhere)).code, 1)
    }
  )

  it.effect(
    "catalog check compares with a price feed: a drift is shown, a loss fails, a bad feed is one line",
    function* () {
      const { directory, run } = yield* Cli
      const file = path.join(directory, "catalog.yaml")
      const feed = path.join(directory, "feed.json")
      const nowhere = { DATABASE_URL: "postgres://u@127.0.0.1:1/x" }
      const charges = (completion: number) =>
        writeFileSync(
          feed,
          JSON.stringify({
            "acme/v-talk": {
              litellm_provider: "acme",
              input_cost_per_token: 1.5e-6,
              output_cost_per_token: completion,
              max_input_tokens: 1_000_000
            }
          })
        )
      writeFileSync(file, catalogText.replace("completion_per_1m_usd: 5", "completion_per_1m_usd: 3"))
      charges(3.5e-6)
      const drifted = yield* run(["catalog", "check", file, "--feed", feed], nowhere)
      assert.deepStrictEqual([drifted.code, drifted.stderr], [0, ""])
      assert.match(drifted.stdout, /^talk@acme +cost of completion per 1M +3\.00 +3\.50 +acme\/v-talk$/m)
      assert.include(drifted.stdout, `${feed} has 1 entry and has prices for 1 of 1 model.`)
      charges(4.5e-6)
      const lost = yield* run(["catalog", "check", file, "--feed", feed, "--json"], nowhere)
      assert.deepStrictEqual(
        [lost.code, lost.stderr],
        [
          1,
          `${JSON.stringify({ error: { message: "1 price is below the provider's cost.", type: "command_failed" } })}\n`
        ]
      )
      const document = JSON.parse(lost.stdout)
      assert.deepStrictEqual(document.feed.drifts, [
        {
          model: "talk",
          route: "talk@acme",
          entry: "acme/v-talk",
          what: "cost of completion per 1M",
          catalog: 3,
          feed: 4.5
        }
      ])
      assert.lengthOf(document.losses, 1)
      writeFileSync(feed, "[]")
      const bad = yield* run(["catalog", "check", file, "--feed", feed], nowhere)
      assert.strictEqual(bad.code, 1)
      assert.match(bad.stderr, /^gateway: .*feed\.json: does not have the format of LiteLLM's .*\n$/)
    }
  )

  it.effect("catalog propose prints a catalog on stdout and what it skips on stderr", function* () {
    const { directory, run } = yield* Cli
    const [file, feed, proposed] = ["catalog.yaml", "feed.json", "proposed.yaml"].map((name) =>
      path.join(directory, name)
    )
    const environment = { DATABASE_URL: "postgres://u@127.0.0.1:1/x", CATALOG_FILE: file ?? "" }
    const prices = { litellm_provider: "acme", mode: "chat", input_cost_per_token: 1.5e-7, output_cost_per_token: 6e-7 }
    const limits = { max_input_tokens: 1000, max_output_tokens: 100 }
    writeFileSync(file ?? "", catalogText)
    writeFileSync(feed ?? "", JSON.stringify({ "acme/new": { ...prices, ...limits }, "acme/a\u001b[2J": prices }))
    const done = yield* run(["catalog", "propose", "--feed", feed ?? ""], environment)
    assert.strictEqual(done.code, 0)
    assert.strictEqual(
      done.stderr,
      "gateway: warning: acme/a [2J is skipped: id must be an id of letters, digits and . _ - : /.\n"
    )
    assert.match(done.stdout, /pricing:\n +prompt_per_1m_usd: 0\.15\n +completion_per_1m_usd: 0\.6$/m)
    writeFileSync(proposed ?? "", done.stdout)
    const checked = yield* run(["catalog", "check", proposed ?? ""], environment)
    assert.deepStrictEqual([checked.code, checked.stderr], [0, ""])
    const json = yield* run(["catalog", "propose", "--feed", feed ?? "", "--json"], environment)
    const { data } = JSON.parse(json.stdout)
    assert.deepInclude(data[0].model, { id: "new", pricing: { prompt_per_1m_usd: 0.15, completion_per_1m_usd: 0.6 } })
    const other = yield* run(["catalog", "propose", "--feed", feed ?? "", "--vendor", "zz"], environment)
    assert.deepStrictEqual(
      [other.code, other.stdout, other.stderr],
      [1, "", "gateway: The catalog has no provider zz. It has: acme\n"]
    )
  })

  it.effect("the built-in catalog is the default of catalog check", function* () {
    assert.lengthOf(yield* list("catalog", "check"), 45)
  })
})
