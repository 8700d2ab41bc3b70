import { randomUUID } from "node:crypto"
import { writeFileSync } from "node:fs"
import path from "node:path"
import { SqlClient } from "@effect/sql"
import { Effect, Layer, Redacted } from "effect"
import { Database } from "../../src/database/Database.ts"
import { eventually } from "../database/EmbeddedDatabase.ts"
import { talkCatalog } from "../harness/fixtures/ChatCatalog.ts"
import { assert, withLayer } from "../harness/It.ts"
import { logIdAt } from "../harness/LogId.ts"
import { Cli, failure, json, list, text } from "./Cli.ts"

const database = Layer.unwrapEffect(Effect.map(Cli, ({ url }) => Layer.orDie(Database.layerUrl(Redacted.make(url)))))
const suite = Layer.provideMerge(database, Cli.layer)

const log = (request: {
  readonly id: string
  readonly at: Date
  readonly org: string
  readonly more?: Readonly<Record<string, unknown>>
}) =>
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) => sql`
      INSERT INTO request_log
      SELECT * FROM json_populate_record(NULL::request_log, ${JSON.stringify({
        id: logIdAt(request.at.getTime()),
        request_id: request.id,
        at: request.at,
        surface: "chat",
        status: 200,
        org_id: request.org,
        key_id: "key_1",
        stream: false,
        attempts: [],
        notes: [],
        charge: 0,
        total_ms: 5,
        ...request.more
      })}::json)`
  )

withLayer(suite)("gateway", (it) => {
  it.effect("requests: newest first, with every field, and by every filter", function* () {
    const { id } = yield* json("orgs", "create", "caller")
    const org = String(id)
    const counts = {
      cached_tokens: 3,
      cache_write_tokens: 2,
      reasoning_tokens: 0,
      web_searches: 5,
      images: 0,
      seconds: 0
    }
    const usage = { prompt_tokens: 10, completion_tokens: 4, ...counts, cache_write_hour_tokens: 1 }
    const failed = { route: "m@q", provider: "q", outcome: "retry", status: 200, ms: 3 }
    const answered = { route: "m@p", provider: "p", outcome: "ok", status: 200, ms: 4 }
    const served = {
      model: "m",
      route: "m@p",
      preferred_route: "m@q",
      provider: "p",
      address: "203.0.113.9",
      user_agent: "openai/6",
      end_user: "ann",
      tag: "blue",
      provider_request_id: "theirs",
      attempts: [{ ...failed, cost_nano: "250000000" }, answered],
      ...usage,
      charge: 1_500_000_000,
      cost: 1_000_000_000,
      first_byte_ms: 2
    }
    yield* log({ id: "first", at: new Date("2026-03-01T00:00:00.250Z"), org, more: served })
    yield* log({
      id: "second",
      at: new Date("2026-03-02T00:00:00Z"),
      org,
      more: { status: 429, code: "rate_limit_exceeded", key_id: "key_2" }
    })
    yield* log({
      id: "other",
      at: new Date("2026-03-03T00:00:00Z"),
      org: "org_elsewhere",
      more: { code: "stream_error", stream: true }
    })

    const ids = (...filters: ReadonlyArray<string>) =>
      Effect.map(list("requests", ...filters), (rows) => rows.map((row) => row["request_id"]))
    assert.deepStrictEqual(yield* ids(), ["other", "second", "first"])
    assert.deepStrictEqual(yield* ids("--org", "caller"), ["second", "first"])
    assert.deepStrictEqual(yield* ids("--key", "key_2"), ["second"])
    assert.include(yield* failure(["requests", "--key", "key_none"]), "There is no key with the id key_none.")
    assert.deepStrictEqual(yield* ids("--model", "m"), ["first"])
    assert.deepStrictEqual(yield* ids("--status", "429"), ["second"])
    assert.deepStrictEqual(yield* ids("--address", "203.0.113.9"), ["first"])
    assert.deepStrictEqual(yield* ids("--address", "203.0.113.0/24", "--key", "key_2"), [])
    assert.deepStrictEqual(yield* ids("--tag", "blue"), ["first"])
    assert.deepStrictEqual(yield* ids("--tag", "blue", "--user", "ann", "--org", "caller"), ["first"])
    assert.deepStrictEqual(yield* ids("--tag", "blue", "--user", "bob"), [])
    assert.deepStrictEqual(yield* ids("--since", "2026-03-02"), ["other", "second"])
    assert.deepStrictEqual(yield* ids("--limit", "1"), ["other"])

    const [row] = yield* list("requests", "--model", "m")
    assert.isString(row?.["id"])
    assert.deepStrictEqual(
      { ...row, id: "" },
      {
        id: "",
        request_id: "first",
        at: Date.UTC(2026, 2, 1) / 1000,
        status: 200,
        code: null,
        error: null,
        org,
        key_id: "key_1",
        address: "203.0.113.9",
        user_agent: "openai/6",
        end_user: "ann",
        tag: "blue",
        surface: "chat",
        model: "m",
        stream: false,
        route: "m@p",
        preferred_route: "m@q",
        provider_request_id: "theirs",
        attempts: [
          { ...failed, cost_usd: 0.25 },
          { ...answered, provider_request_id: "theirs" }
        ],
        usage: { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14, ...counts, cache_write_1h_tokens: 1 },
        notes: [],
        charge_usd: 1.5,
        refunded_usd: 0,
        cost_usd: 1.25,
        stated_cost_usd: null,
        first_byte_ms: 2,
        total_ms: 5,
        video_status: null
      }
    )
    assert.match(yield* text("requests"), /^2026-03-01 00:00:00Z +200 +- +caller +m +1\.50 +5 +14 +m@p +2 +first$/m)
    const byTag = yield* list("usage", "--org", "caller", "--by", "tag,model")
    const named = byTag.map((row) => [row["tag"], row["model"], row["requests"], row["spend_usd"]])
    assert.deepStrictEqual(named, [
      ["blue", "m", 1, 1.5],
      [null, null, 1, 0]
    ])
    const [byModel] = yield* list("usage", "--org", "caller", "--until", "2026-03-02")
    assert.deepInclude(byModel, {
      model: "m",
      requests: 1,
      total_tokens: 14,
      cached_tokens: 3,
      cache_hit_rate: 0.3,
      spend_usd: 1.5,
      cost_usd: 1.25,
      margin_usd: 0.25
    })
    const shown = ["usage", "--org", "caller", "--until", "2026-03-02"]
    assert.match(yield* text(...shown), /CACHE_HIT_RATE .*\nm +1 +10 +4 +0 +0 +0\.3 .*\ntotal +1 +10 +4 +0 +0 +0\.3 /)
    assert.match(yield* text(...shown, "--csv"), /,cache_hit_rate,.*\nm,1,10,4,0,0,0\.3,/)
    assert.match(yield* text("requests", "--model", "m", "--csv"), /,route,preferred_route,.*\n.*,m@p,m@q,/)
    const byProvider = yield* list("usage", "--org", "caller", "--by", "provider", "--until", "2026-03-02")
    assert.deepStrictEqual(
      byProvider.map((row) => [row["provider"], row["requests"], row["spend_usd"], row["cost_usd"], row["margin_usd"]]),
      [
        ["p", 1, 1.5, 1, 0.5],
        ["q", 0, 0, 0.25, -0.25]
      ]
    )
  })

  it.effect("requests --follow: what was there, then each new row once, oldest first, until interrupted", function* () {
    const { start } = yield* Cli
    const org = "org_followed"
    const now = Date.now()
    yield* log({ id: "old", at: new Date(now - 10_000), org })
    const running = yield* start(["requests", "--follow", "--json"])
    const seen = () =>
      running.lines.flatMap((line) => {
        const row: unknown = JSON.parse(line)
        const isOurs = typeof row === "object" && row !== null && "org" in row && row.org === org
        return isOurs && "request_id" in row ? [row.request_id] : []
      })
    yield* eventually("the old row is shown", () => seen().length === 1)
    yield* log({ id: "new 2", at: new Date(now), org })
    yield* eventually("a new row is shown", () => seen().length === 2)
    // Began long before the rows above, but ends only now.
    yield* log({ id: "long", at: new Date(now - 3_000_000), org, more: { total_ms: 3_000_000 } })
    yield* eventually("a long request is shown", () => seen().length === 3)
    yield* log({ id: "new 4", at: new Date(now + 2), org })
    yield* log({ id: "new 3", at: new Date(now + 1), org })
    yield* eventually("all rows are shown", () => seen().length === 5)
    yield* running.interrupt
    assert.strictEqual((yield* running.finished).code, 0)
    assert.deepStrictEqual(seen().slice(0, 3), ["old", "new 2", "long"])
    assert.sameMembers(seen().slice(3), ["new 3", "new 4"])
  })

  it.effect("requests --follow: keeps the column of videos once there was one", function* () {
    const { start } = yield* Cli
    const sql = yield* SqlClient.SqlClient
    const org = String((yield* json("orgs", "create", "filmed"))["id"])
    const key = String((yield* json("keys", "create", "--org", org))["id"])
    const hold = randomUUID()
    yield* sql`INSERT INTO holds (id, org_id, key_id, amount) VALUES (${hold}, ${org}, ${key}, 0)`
    yield* sql`INSERT INTO videos (id, org_id, key_id, hold_id, request_id, model, seconds, price, prompt, deadline)
        VALUES ('vid_1', ${org}, ${key}, ${hold}, 'r', 'film', 8, 0, '', now())`
    const running = yield* start(["requests", "--org", org, "--follow"])
    const chat = (id: string) => log({ id, at: new Date(), org })
    const isShown = (id: string) => eventually(`${id} is shown`, () => running.lines.some((line) => line.endsWith(id)))
    yield* chat("first chat")
    yield* isShown("first chat")
    yield* log({ id: "film", at: new Date(), org, more: { surface: "video", status: 202, hold_id: hold } })
    yield* isShown("film")
    yield* chat("last chat")
    yield* isShown("last chat")
    yield* running.interrupt
    const headings = running.lines.filter((line) => line.startsWith("AT "))
    assert.deepStrictEqual(
      headings.slice(-2).map((heading) => heading.includes("VIDEO_STATUS")),
      [false, true]
    )
    assert.match(running.lines.at(-1) ?? "", / 200 +- +- .* last chat$/)
  })

  it.effect("a command whose reader goes away ends without complaint", function* () {
    const { start } = yield* Cli
    const running = yield* start(["requests", "--follow"])
    yield* eventually("the heading is there", () => running.lines.length > 0)
    yield* running.hangUp
    yield* log({ id: "unread", at: new Date(), org: "org_piped" })
    const { code, stderr } = yield* running.finished
    assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
  })

  const catalog = talkCatalog(
    ["acme", "spare"],
    "{provider: acme, model: v-talk}, {provider: spare, model: v-talk, preference: 2}"
  )

  it.effect("providers: every route of the catalog, over all running instances", function* () {
    const { directory, run } = yield* Cli
    const sql = yield* SqlClient.SqlClient
    const file = path.join(directory, "catalog.yaml")
    writeFileSync(file, catalog)
    const environment = { CATALOG_FILE: file, ACME_KEY: "sk-secret" }
    const publish = Effect.fnUntraced(function* (
      circuit: string,
      requests: number,
      latency: number,
      error: string | null
    ) {
      const instance = randomUUID()
      yield* sql`INSERT INTO instances (id) VALUES (${instance})`
      yield* sql`
          INSERT INTO route_health (instance_id, route, provider, model, circuit, open_until, last_error, last_error_at,
            latency_ms, requests, failures, published_at)
          VALUES (${instance}, 'talk@acme', 'acme', 'talk', ${circuit}, now() + interval '1 minute', ${error},
            ${error === null ? null : new Date("2026-03-01T00:00:00Z")}, ${latency}, ${requests}, 1, now())`
    })
    yield* publish("closed", 30, 100, null)
    yield* publish("open", 10, 300, "503 \u001b[31moverloaded")
    const { stdout } = yield* run(["providers", "--json"], environment)
    assert.notInclude(stdout, "sk-secret")
    const document: unknown = JSON.parse(stdout)
    const found = JSON.stringify(document)
    assert.include(
      found,
      '{"sandbox":false,"catalog_problem":null,"data":[{"id":"talk@acme","model":"talk","provider":"acme","circuit":"open"'
    )
    assert.include(
      found,
      '"latency_ms":150,"requests":40,"failures":2,"instances":2,"in_catalog":true,"disabled_at":null,"note":null}'
    )
    assert.include(found, '{"id":"talk@spare","model":"talk","provider":"spare","circuit":"closed"')
    const plain = yield* run(["providers"], environment)
    assert.match(plain.stdout, /^talk@acme +open +40 +2 +150 +503 +\[31moverloaded +2026-03-01 00:00:00Z$/m)
    assert.match(plain.stdout, /^talk@spare +closed +0 +0 +- +- +-$/m)
    assert.notInclude(plain.stdout, "\u001b")
    assert.notInclude(plain.stdout, "SANDBOX")

    const offline = { CATALOG_FILE: file, SANDBOX: "true" }
    const sandboxed = yield* run(["providers"], offline)
    assert.match(sandboxed.stdout, /^SANDBOX is on/)
    assert.match(sandboxed.stdout, /^talk@sandbox-b +closed +0 /m)
    const asJson: unknown = JSON.parse((yield* run(["providers", "--json"], offline)).stdout)
    assert.include(JSON.stringify(asJson), '{"sandbox":true,"catalog_problem":null,"data":[{"id":"talk@sandbox",')
  })
})
