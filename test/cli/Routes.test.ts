import { randomUUID } from "node:crypto"
import { writeFileSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Effect, Schema } from "effect"
import { talkCatalog } from "../harness/fixtures/ChatCatalog.ts"
import { assert, withLayer } from "../harness/It.ts"
import { Cli } from "./Cli.ts"
import { suite } from "./Operator.ts"

const Shown = Schema.parseJson(
  Schema.Struct({
    data: Schema.Array(
      Schema.Struct({
        id: Schema.String,
        in_catalog: Schema.Boolean,
        disabled_at: Schema.NullOr(Schema.Number),
        note: Schema.NullOr(Schema.String)
      })
    )
  })
)
const Changed = Schema.parseJson(
  Schema.Struct({
    id: Schema.String,
    disabled: Schema.Boolean,
    disabled_at: Schema.NullOr(Schema.Number),
    note: Schema.NullOr(Schema.String)
  })
)

const catalog = (...providers: ReadonlyArray<string>) =>
  talkCatalog(providers, providers.map((provider) => `{provider: ${provider}, model: v-talk}`).join(", "))

withLayer(suite)("gateway", (it) => {
  const prepared = Effect.gen(function* () {
    const { directory, run } = yield* Cli
    const file = path.join(directory, "catalog.yaml")
    const write = (text: string) => writeFileSync(file, text)
    write(catalog("acme", "spare"))
    const environment = { CATALOG_FILE: file, ACME_KEY: "k", SPARE_KEY: "k" }
    return {
      write,
      routes: (...args: ReadonlyArray<string>) => run(["routes", ...args], environment),
      run,
      environment
    }
  })

  it.effect("routes disable and enable: what providers shows, with the note", function* () {
    const { environment, routes, run } = yield* prepared
    const shown = Effect.gen(function* () {
      const { stdout } = yield* run(["providers", "--json"], environment)
      return (yield* Schema.decode(Shown)(stdout)).data
    })
    const { stdout } = yield* routes("disable", "talk@acme", "--note", "wrong answers", "--json")
    const disabled = yield* Schema.decode(Changed)(stdout)
    assert.deepInclude(disabled, { id: "talk@acme", disabled: true, note: "wrong answers" })
    const { disabled_at } = disabled
    assert.deepStrictEqual(yield* shown, [
      { id: "talk@acme", in_catalog: true, disabled_at, note: "wrong answers" },
      { id: "talk@spare", in_catalog: true, disabled_at: null, note: null }
    ])
    const plain = yield* run(["providers"], environment)
    assert.match(plain.stdout, /^talk@acme +disabled +0 +0 /m)
    assert.match(plain.stdout, /\n\nROUTE +DISABLED_AT +IN_CATALOG +NOTE\ntalk@acme +\S+ \S+Z +true +wrong answers\n$/)
    const enabled = yield* routes("enable", "talk@acme", "--json")
    assert.deepInclude(yield* Schema.decode(Changed)(enabled.stdout), {
      disabled: false,
      disabled_at: null,
      note: null
    })
    assert.notInclude((yield* run(["providers"], environment)).stdout, "DISABLED_AT")
  })

  it.effect(
    "routes disable: one that the catalog has no more is shown, and can be enabled beside a broken file",
    function* () {
      const { environment, routes, run, write } = yield* prepared
      yield* routes("disable", "talk@spare")
      write(catalog("acme"))
      const shown = yield* run(["providers"], environment)
      assert.match(shown.stdout, /^talk@spare +disabled /m)
      assert.match(shown.stdout, /^talk@spare +\S+ \S+Z +false +-$/m)
      write("models: no")
      const warned = yield* run(["providers"], environment)
      assert.strictEqual(warned.code, 0)
      assert.match(warned.stdout, /catalog\.yaml:1: /)
      assert.match(warned.stdout, /^talk@spare +disabled /m)
      assert.strictEqual((yield* routes("enable", "talk@spare")).code, 0)
      const unknown = yield* routes("enable", "talk@spare")
      assert.strictEqual(unknown.code, 1)
      assert.match(unknown.stderr, /catalog\.yaml:1: /)
    }
  )

  it.effect("providers: what runs is shown beside a broken file, once for all instances", function* () {
    const { environment, run, write } = yield* prepared
    const sql = yield* SqlClient.SqlClient
    for (const instance of [randomUUID(), randomUUID()]) {
      yield* sql`INSERT INTO instances (id) VALUES (${instance})`
      yield* sql`
        INSERT INTO route_health (instance_id, route, provider, model, circuit, requests, failures, published_at)
        VALUES (${instance}, 'talk@acme', 'acme', 'talk', 'closed', 4, 1, now())`
    }
    write("models: no")
    const { code, stdout } = yield* run(["providers", "--json"], environment)
    assert.strictEqual(code, 0)
    const Told = Schema.Struct({
      sandbox: Schema.Null,
      catalog_problem: Schema.String,
      data: Schema.Array(Schema.Struct({ id: Schema.String, requests: Schema.Number, in_catalog: Schema.Boolean }))
    })
    const told = yield* Schema.decode(Schema.parseJson(Told))(stdout)
    assert.match(told.catalog_problem, /catalog\.yaml:1: /)
    assert.deepStrictEqual(told.data, [{ id: "talk@acme", requests: 8, in_catalog: true }])
    yield* sql`UPDATE instances SET stopped_at = now()`
  })

  it.effect("models list: names first, with prices, margin, routes and state", function* () {
    const { environment, run, write } = yield* prepared
    write(catalog("acme", "spare"))
    const plain = yield* run(["models", "list"], environment)
    const [heading = "", row = ""] = plain.stdout.split("\n")
    assert.match(heading, /^MODEL +SURFACE +UNIT +PRICE_USD +COST_USD +MARGIN_% +ROUTES +STATE$/)
    assert.match(row, /^talk +chat +1M tokens in \/ out +2(\.0+)? \/ 4(\.0+)? +- +- +2 of 2 +available$/)
    assert.strictEqual(heading.indexOf("STATE"), row.indexOf("available"))
    const { stdout } = yield* run(["models", "list", "--json"], environment)
    const Listed = Schema.Struct({
      sandbox: Schema.Boolean,
      data: Schema.Array(
        Schema.Struct({
          id: Schema.String,
          callable: Schema.Boolean,
          prices: Schema.Array(Schema.Struct({ unit: Schema.String, price_usd: Schema.Number })),
          routes: Schema.Array(Schema.Struct({ id: Schema.String, circuit: Schema.String }))
        })
      )
    })
    const { data, sandbox } = yield* Schema.decode(Schema.parseJson(Listed))(stdout)
    assert.isFalse(sandbox)
    const [talk] = data
    assert.deepInclude(talk, { id: "talk", callable: true })
    assert.deepStrictEqual(talk?.prices.slice(0, 2), [
      { unit: "prompt per 1M", price_usd: 2 },
      { unit: "completion per 1M", price_usd: 4 }
    ])
    assert.deepStrictEqual(
      talk?.routes.map(({ circuit, id }) => [id, circuit]),
      [
        ["talk@acme", "closed"],
        ["talk@spare", "closed"]
      ]
    )
    const without = { ...environment, ACME_KEY: "", SANDBOX: "false" }
    assert.match((yield* run(["models", "list"], without)).stdout, /^talk .+ 0 of 2 +unavailable: set ACME_KEY$/m)
    assert.strictEqual((yield* run(["models", "list", "--callable"], without)).stdout, "No model can be called.\n")
    write("models: no")
    const { code, stderr } = yield* run(["models", "list"], environment)
    assert.strictEqual(code, 1)
    assert.match(stderr, /catalog\.yaml:1: /)
  })

  it.effect("routes: an unknown one is refused, with those that it may mean", function* () {
    const { routes } = yield* prepared
    for (const action of ["disable", "enable", "reset"]) {
      const { code, stderr } = yield* routes(action, "tolk@acme")
      assert.strictEqual(code, 1)
      assert.strictEqual(stderr, "gateway: There is no route tolk@acme. Known routes: talk@acme.\n")
    }
    const { stderr } = yield* routes("disable", "nothing")
    assert.strictEqual(stderr, "gateway: There is no route nothing. Known routes: talk@acme, talk@spare.\n")
  })

  it.effect("routes reset: takes a known route and leaves it enabled", function* () {
    const { routes } = yield* prepared
    const { stdout } = yield* routes("reset", "talk@acme", "--json")
    assert.deepInclude(yield* Schema.decode(Changed)(stdout), { id: "talk@acme", disabled: false })
  })
})
