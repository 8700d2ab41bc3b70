import { randomUUID } from "node:crypto"
import { writeFileSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Effect, Layer, Redacted } from "effect"
import { Database } from "../../src/database/Database.ts"
import { logRequest } from "../harness/database/Rows.ts"
import { talkCatalog } from "../harness/fixtures/ChatCatalog.ts"
import { assert, withLayer } from "../harness/It.ts"
import { Cli, failure, json, list, misuse, text } from "./Cli.ts"

const database = Layer.unwrapEffect(Effect.map(Cli, ({ url }) => Layer.orDie(Database.layerUrl(Redacted.make(url)))))
const suite = Layer.provideMerge(database, Cli.layer)

withLayer(suite)("gateway", (it) => {
  it.effect("orgs: made, shown, listed, suspended, resumed", function* () {
    const made = yield* json("orgs", "create", "acme", "--credits", "12.500000001")
    assert.strictEqual(Object.keys(made)[0], "id")
    assert.match(String(made["id"]), /^org_/)
    assert.deepInclude(made, {
      name: "acme",
      suspended: false,
      balance_usd: 12.500000001,
      held_usd: 0,
      available_usd: 12.500000001,
      fit_holds: false
    })
    assert.isTrue(Number.isInteger(made["created_at"]))
    assert.deepStrictEqual(yield* json("orgs", "show", "acme"), made)
    assert.deepStrictEqual(yield* json("orgs", "show", String(made["id"])), made)
    assert.deepStrictEqual(yield* json("orgs", "suspend", "acme"), { ...made, suspended: true })
    assert.deepStrictEqual(yield* json("orgs", "resume", "acme"), made)
    assert.deepStrictEqual(yield* json("orgs", "update", "acme", "--fit-holds", "on"), { ...made, fit_holds: true })
    assert.deepStrictEqual(yield* json("orgs", "update", "acme", "--fit-holds", "off"), made)
    const capped = { cap_usd: 7.5, cap_period: "total", cap_spent_usd: 0 }
    const update = (...options: ReadonlyArray<string>) => json("orgs", "update", "acme", ...options)
    assert.deepStrictEqual(yield* update("--cap", "7.5", "--cap-period", "total"), { ...made, ...capped })
    assert.match(
      yield* text("orgs", "list"),
      / DISCOUNT_PERCENT +CAP_USD +CAP_PERIOD +CAP_SPENT_USD .*\nacme +org_\w+ .* 0 +7\.50 +total +0\.00 /
    )
    assert.deepStrictEqual(yield* update("--cap", "8"), { ...made, ...capped, cap_usd: 8 })
    assert.deepStrictEqual(yield* update("--cap", "none"), made)
    assert.include(yield* misuse(["orgs", "update", "acme", "--cap", "5"]), "--cap-period")
    yield* json("orgs", "create", "two words")
    const names = (yield* list("orgs", "list")).map(({ name }) => name)
    assert.deepStrictEqual(names, ["acme", "two words"])
    assert.match(
      yield* text("orgs", "list"),
      /^NAME +ID .*\nacme +org_\w+ +false +12\.500000001 +0\.00 +12\.500000001 .*\n/
    )
    assert.include(yield* failure(["orgs", "create", "acme"]), "acme")
    assert.include(yield* failure(["orgs", "show", "nobody", "--json"]), "nobody")
  })

  it.effect("orgs create and update --discount: shown and listed, with a warning if it sells below cost", function* () {
    const { directory, run } = yield* Cli
    yield* json("orgs", "create", "valued")
    const file = path.join(directory, "costly.yaml")
    const catalog = talkCatalog(
      ["first"],
      "{provider: first, model: m, cost: {prompt_per_1m_usd: 1.6, completion_per_1m_usd: 3.2}}"
    )
    writeFileSync(file, catalog)
    const update = (discount: string, more: ReadonlyArray<string> = []) =>
      run(["orgs", "update", "valued", "--discount", discount, ...more], { CATALOG_FILE: file, SANDBOX: "true" })
    const harmless = yield* update("20", ["--json"])
    assert.deepStrictEqual([harmless.code, harmless.stderr], [0, ""])
    assert.strictEqual(JSON.parse(harmless.stdout).discount_percent, 20)
    const { code, stderr, stdout } = yield* update("20.01")
    assert.strictEqual(code, 0, stderr)
    assert.match(stdout, /discount_percent +20\.01/)
    assert.include(
      stderr,
      "At a discount of 20.01 %, talk@first: the price of prompt per 1M is below what the provider charges."
    )
    assert.include(stderr, "3 more prices are below the cost: run gateway catalog check --discount 20.01.")
    assert.match(yield* text("orgs", "list"), / DISCOUNT_PERCENT .*\n(.*\n)*valued +org_\w+ .* 20\.01 /)
    const discounted = ["orgs", "create", "discounted", "--discount", "20.01", "--json"]
    const made = yield* run(discounted, { CATALOG_FILE: file, SANDBOX: "true" })
    assert.include(made.stderr, "At a discount of 20.01 %, talk@first")
    assert.strictEqual(JSON.parse(made.stdout).discount_percent, 20.01)
    const unread = yield* run(["orgs", "update", "valued", "--discount", "-3.5"], { CATALOG_FILE: "none.yaml" })
    assert.strictEqual(unread.code, 0)
    assert.include(unread.stderr, "so the discount was not compared with the costs")
    for (const wrong of ["100.5", "-101", "1e1", "33.333", "NaN", "ten", "0x10", "5%", "", " 5"]) {
      const refused = yield* update(wrong)
      assert.include(
        refused.stderr,
        "--discount must be a percentage from -100 to 100 with at most two decimals",
        wrong
      )
    }
    assert.deepInclude(yield* json("orgs", "show", "valued"), { discount_percent: -3.5 })
  })

  it.effect("catalog check: names each route with losses once, at most twenty, and all of them in JSON", function* () {
    const { directory, run } = yield* Cli
    const file = path.join(directory, "losses.yaml")
    const cost = "cost: {prompt_per_1m_usd: 2.5, completion_per_1m_usd: 5}"
    const names = Array.from({ length: 23 }, (_, index) => `p${index}`)
    const routes = names.map((name) => `{provider: ${name}, model: m, ${cost}}`).join(", ")
    writeFileSync(file, talkCatalog(names, routes))
    const plain = yield* run(["catalog", "check", file])
    assert.strictEqual(plain.code, 1)
    const lines = plain.stdout.split("\n").filter((line) => line.startsWith("LOSS"))
    const units = "prompt per 1M, cached prompt per 1M, cache write per 1M and completion per 1M"
    assert.lengthOf(lines, 21)
    assert.strictEqual(lines[0], `LOSS  talk@p0: the prices of ${units} are below what the provider charges`)
    assert.strictEqual(lines[20], "LOSS  and 3 more. Use --json for all.")
    const machine = yield* run(["catalog", "check", file, "--json"])
    assert.lengthOf(JSON.parse(machine.stdout).losses, 23 * 4)
    assert.include(plain.stderr, `${23 * 4} prices are below`)
    const cheap = path.join(directory, "discounted.yaml")
    writeFileSync(
      cheap,
      talkCatalog(["first"], `{provider: first, model: m, cost: {prompt_per_1m_usd: 1.6, completion_per_1m_usd: 0}}`)
    )
    const discounted = yield* run(["catalog", "check", cheap, "--discount", "30"])
    assert.include(discounted.stdout, "NOTE  at a discount of 30 %, talk@first: the ")
  })

  it.effect("credits: added once per reference, adjusted down to nothing and by force below", function* () {
    const { id } = yield* json("orgs", "create", "payer")
    const paid = yield* json("credits", "add", "payer", "10", "--ref", "invoice 1", "--note", "first")
    assert.deepInclude(paid, {
      org: id,
      kind: "top_up",
      amount_usd: 10,
      ref: "invoice 1",
      note: "first",
      replayed: false
    })
    const again = yield* json("credits", "add", String(id), "10.00", "--ref", "invoice 1")
    assert.deepStrictEqual(again, { ...paid, replayed: true })
    const remark = "This top-up already exists. Nothing was added."
    assert.include(yield* text("credits", "add", "payer", "10", "--ref", "invoice 1"), remark)
    assert.include(yield* failure(["credits", "add", "payer", "11", "--ref", "invoice 1"]), "invoice 1")
    assert.include(yield* failure(["credits", "adjust", "payer", "-10.000000001", "--note", "x"]), "10 USD")
    const down = yield* json("credits", "adjust", "payer", "-10", "--note", "refund")
    assert.deepInclude(down, { kind: "adjustment", amount_usd: -10, note: "refund" })
    yield* json("credits", "adjust", "payer", "-2500.5", "--note", "debt", "--force")
    assert.strictEqual((yield* json("orgs", "show", "payer"))["balance_usd"], -2500.5)
    const amounts = (yield* list("ledger", "show", "payer")).map((entry) => entry["amount_usd"])
    assert.deepStrictEqual(amounts, [-2500.5, -10, 10])
    const [newest, ...others] = yield* list("ledger", "show", "payer", "--limit", "1")
    assert.strictEqual(newest?.["amount_usd"], -2500.5)
    assert.lengthOf(others, 0)
  })

  it.effect("an amount is a plain decimal above 0 that the ledger can hold exactly", function* () {
    const wrong = ["0", "-1", "1e3", "abc", "", "0.0000000001", "1000000000.1", "$5", "Infinity"]
    for (const amount of wrong) {
      assert.include(yield* misuse(["credits", "add", "payer", "--", amount]), "USD", amount)
    }
  })

  it.effect("ledger verify proves the books, and shows the rows that break them", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* json("orgs", "create", "cooked", "--credits", "5")
    assert.deepInclude(yield* json("ledger", "verify"), { proved: true, violations: [] })
    yield* sql`UPDATE organizations SET balance = balance + 1 WHERE name = 'cooked'`
    const { run } = yield* Cli
    const plain = yield* run(["ledger", "verify"])
    assert.strictEqual(plain.code, 1)
    assert.strictEqual(plain.stderr.split("\n").length, 2)
    assert.include(plain.stdout, "5000000001")
    const machine = yield* run(["ledger", "verify", "--json"])
    assert.strictEqual(machine.code, 1)
    const document: unknown = JSON.parse(machine.stdout)
    assert.deepInclude(document, { proved: false })
    assert.include(JSON.stringify(document), "5000000001")
    yield* sql`UPDATE organizations SET balance = balance - 1 WHERE name = 'cooked'`
  })

  it.effect("statement: a month from balance to balance, as a table, as CSV and as JSON", function* () {
    yield* json("orgs", "create", "stated", "--credits", "5")
    yield* json("credits", "adjust", "stated", "-1.5", "--note", "n")
    const statement = yield* json("statement", "stated")
    assert.deepInclude(statement, { object: "statement", opening_usd: 0, closing_usd: 3.5, total_charge_usd: 0 })
    const month = String(statement["month"])
    assert.deepStrictEqual(yield* json("statement", "stated", "--month", month), statement)
    assert.match(
      yield* text("statement", "stated"),
      /\n\nLINE +AT .*\nopening balance +-[^]*\ntop-up .* 5\.00 +[^]*\nclosing balance .* 3\.50 +-/
    )
    yield* json("orgs", "update", "stated", "--discount", "-10")
    const head = (yield* text("statement", "stated")).split("\n\n")[0]
    assert.match(
      String(head),
      /^statement +[0-9A-F]{12}-\d{4}-\d\d\ncustomer +stated \(org_\w+\)\nperiod +1 .* to now \(not closed\)\n/
    )
    assert.match(
      String(head),
      /\ncurrency +US dollars \(USD\)\ndiscount +Charges include no discount until .*, then a surcharge of 10 %\.$/
    )
    assert.match(
      yield* text("statement", "stated", "--csv"),
      /^line,at,[^]*\nadjustment,[^,]+,,,,,,,,-1\.5,\nclosing balance,,,,,,,,,3\.5,/
    )
    assert.include(yield* failure(["statement", "stated", "--month", "9999-01"]), "9999-01")
    assert.include(yield* misuse(["statement", "stated", "--month", "november"]), "--month")
  })
})

withLayer(suite)("gateway requests", (it) => {
  it.effect("shows the status of videos in a column, if there are any", function* () {
    const sql = yield* SqlClient.SqlClient
    yield* json("orgs", "create", "filmed", "--credits", "5")
    const { id: key, org } = yield* json("keys", "create", "--org", "filmed")
    yield* logRequest({ org_id: org, key_id: key, model: "talk" })
    const list = text("requests", "--org", "filmed")
    assert.match(yield* list, /^AT +STATUS +CODE /)
    const hold = randomUUID()
    yield* sql`INSERT INTO holds (id, org_id, key_id, amount) VALUES (${hold}, ${String(org)}, ${String(key)}, 5)`
    yield* sql`INSERT INTO videos (id, org_id, key_id, hold_id, request_id, model, seconds, price, prompt, deadline)
        VALUES ('vid_1', ${String(org)}, ${String(key)}, ${hold}, 'r', 'film', 8, 5, '', now())`
    yield* logRequest({ org_id: org, key_id: key, model: "film", surface: "video", status: 202, hold_id: hold })
    assert.match(yield* list, /^AT +STATUS +VIDEO_STATUS +CODE .*\n.* 202 +queued +- .*\n.* 200 +- +- /)
  })
})
