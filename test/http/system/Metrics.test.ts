import { readFileSync } from "node:fs"
import { Effect, Schema, Struct } from "effect"
import parse from "parse-prometheus-text-format"
import { parse as load } from "yaml"
import { root } from "../../docs/Markdown.ts"
import { openAccount } from "../../harness/client/Account.ts"
import { call, chat, post, soon, talk } from "../../harness/client/HttpCalls.ts"
import * as Metrics from "../../harness/client/Metrics.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json } from "../../harness/upstream/FakeUpstream.ts"
import {
  answers,
  completion,
  gateway,
  onFirst,
  onSecond,
  streams,
  Upstreams,
  usual
} from "../../harness/upstream/Upstreams.ts"

const cost = { prompt_per_1m_usd: 0.5, completion_per_1m_usd: 1 }

const served = gateway({
  talk: { routes: [{ ...onFirst, cost, options: { stated_cost: "usage.cost" } }] },
  "moves-on": { routes: [onFirst, onSecond] },
  refused: {}
})

const draw = post("/v1/images/generations")

/** Requests of every kind. */
const drive = Effect.gen(function* () {
  const { first, second } = yield* Upstreams
  const account = yield* openAccount({})
  yield* first.script(
    // A total above its parts cannot be explained.
    json(200, completion("fine", { ...usual, total_tokens: 115, cost: 0.000_03 })),
    streams("a", "b"),
    json(503, {}),
    json(401, {})
  )
  yield* second.script(answers())
  yield* chat(account, talk("talk"))
  yield* chat(account, { ...talk("talk"), stream: true })
  yield* chat(account, talk("moves-on"), { headers: { "session-id": "s" } })
  yield* chat(account, talk("refused"))
  yield* draw(account, { model: "picture", prompt: "a tree", response_format: "b64_json" })
  yield* chat(account, talk("invented"))
  yield* chat({ secret: "ggw_nobody" }, talk("talk"))
})

type Labels = Readonly<Record<string, string>>
const chatted = { surface: "chat" }
const counters: ReadonlyArray<readonly [name: string, labels: Labels, by: number]> = [
  ["gateway_requests_total", { surface: "chat", model: "talk", status: "200" }, 2],
  ["gateway_requests_total", { model: "unknown" }, 1],
  ["gateway_refused_total", { reason: "invalid_api_key" }, 1],
  ["gateway_refused_total", { reason: "model_not_found" }, 1],
  ["gateway_request_seconds_count", chatted, 6],
  ["gateway_request_seconds_bucket", { ...chatted, le: "+Inf" }, 6],
  ["gateway_request_seconds_count", { ...chatted, model: "talk" }, 2],
  ["gateway_request_seconds_count", { ...chatted, model: "unknown" }, 1],
  ["gateway_first_byte_seconds_count", chatted, 3],
  ["gateway_first_byte_seconds_count", { ...chatted, model: "moves-on" }, 1],
  ["gateway_first_byte_seconds_count", { surface: "image" }, 1],
  ["gateway_overhead_seconds_count", chatted, 4],
  ["gateway_attempts_total", { route: "talk@first", provider: "first", outcome: "ok" }, 2],
  ["gateway_attempts_total", { route: "moves-on@first", outcome: "retry" }, 1],
  ["gateway_attempts_total", { route: "refused@first", outcome: "account" }, 1],
  ["gateway_attempt_seconds_count", { route: "talk@first" }, 2],
  ["gateway_attempt_seconds_count", { route: "moves-on@first" }, 1],
  ["gateway_failovers_total", { model: "moves-on" }, 1],
  ["gateway_affinity_total", {}, 1],
  ["gateway_tokens_total", { kind: "prompt" }, 3 * usual.prompt_tokens],
  ["gateway_tokens_total", { kind: "completion" }, 3 * usual.completion_tokens],
  ["gateway_charged_nano_usd_total", {}, 3 * 20_000 + 40_000_000],
  ["gateway_cost_nano_usd_total", {}, 2 * 10_000],
  ["gateway_log_rows_dropped_total", {}, 0],
  ["gateway_unread_total", { part: "usage", route: "talk@first" }, 1],
  ["gateway_stated_cost_nano_usd_total", { route: "talk@first" }, 30_000],
  ["gateway_compared_cost_nano_usd_total", { route: "talk@first" }, 10_000]
]

const gauges: ReadonlyArray<readonly [name: string, labels: Labels, is: (value: number) => boolean]> = [
  ["gateway_circuits", { model: "talk", route: "talk@first", state: "closed" }, (value) => value === 1],
  ["gateway_circuits", { model: "refused", route: "refused@first", state: "open" }, (value) => value === 1],
  ["gateway_circuits", { model: "refused", route: "refused@first", state: "closed" }, (value) => value === 0],
  ["gateway_statement_seconds_count", { statement: "hold" }, (value) => value >= 5],
  ["gateway_statement_seconds_count", { statement: "settle" }, (value) => value >= 4],
  ["gateway_statement_batch_size_sum", { statement: "hold" }, (value) => value >= 5],
  ["gateway_database_connections", {}, (value) => value >= 1],
  ["gateway_database_waiting", {}, (value) => value === 0],
  ["gateway_database_up", {}, (value) => value === 1],
  ["gateway_ready", {}, (value) => value === 1],
  ["gateway_connections", {}, (value) => value >= 1],
  ["gateway_in_flight", {}, (value) => value === 0],
  ["gateway_log_rows_waiting", {}, (value) => value === 0],
  // Other tests of this process may have lost some.
  ["gateway_log_rows_dropped_total", {}, (value) => value >= 0],
  ["gateway_event_loop_delay_seconds_count", {}, (value) => value > 0],
  ["process_resident_memory_bytes", {}, (value) => value > 20_000_000],
  ["nodejs_heap_size_used_bytes", {}, (value) => value > 10_000_000],
  ["process_start_time_seconds", {}, (value) => value > 1_700_000_000],
  ["gateway_build_info", { version: "1.0.0", node: process.version }, (value) => value === 1],
  ["gateway_holds", { owner: "process" }, (value) => value === 0],
  ["gateway_oldest_hold_seconds", { owner: "job" }, (value) => value === 0],
  ["gateway_videos", { status: "queued" }, (value) => value === 0],
  ["gateway_oldest_video_seconds", { status: "in_progress" }, (value) => value === 0],
  ["gateway_webhooks_failing", {}, (value) => value === 0],
  ["gateway_oldest_failing_webhook_seconds", {}, (value) => value === 0],
  ["gateway_organizations_low", { usd: "10" }, (value) => value === 0]
]

const Rules = Schema.Struct({
  groups: Schema.Array(
    Schema.Struct({ rules: Schema.Array(Schema.Struct({ alert: Schema.String, expr: Schema.String })) })
  )
})

const helps = /^# HELP (\S+) /gm
const types = /^# TYPE (\S+) (?:counter|gauge|histogram)$/gm
const namesIn = (text: string, pattern: RegExp) => Array.from(text.matchAll(pattern), ([, name]) => name)

const seriesOf = (family: string, labels: Labels): string => JSON.stringify([family, Struct.omit(labels, "le")])

withLayer(served)("the metrics", (it) => {
  it.effect("move with what happens, by as much", function* () {
    const before = yield* Metrics.scrape
    yield* drive
    yield* soon(
      Effect.map(Metrics.scrape, (after) => {
        for (const [name, labels, by] of counters) {
          const moved = Metrics.sumOf(after, name, labels) - Metrics.sumOf(before, name, labels)
          assert.strictEqual(moved, by, `${name} ${JSON.stringify(labels)}`)
        }
        for (const [name, labels, is] of gauges) {
          const found = Metrics.samplesOf(after, name, labels)
          assert.isNotEmpty(found, name)
          const value = Metrics.sumOf(after, name, labels)
          assert.isTrue(is(value), `${name} ${JSON.stringify(labels)} is ${value}`)
        }
      })
    )
  })

  it.effect("are in the text format, each family declared once before its series", function* () {
    yield* drive
    const { text } = yield* call("/metrics")
    const lines = text.trimEnd().split("\n")
    const samples = Metrics.parseSamples(text)
    const families = parse(text)
    const declared = namesIn(text, types)
    assert.deepStrictEqual(families.map(Struct.get("name")), declared)
    assert.strictEqual(new Set(declared).size, declared.length)
    assert.deepStrictEqual(namesIn(text, helps), declared)
    let line = /^$/
    for (const text of lines) {
      const [, declaring] = /^# (?:HELP|TYPE) (\S+)/.exec(text) ?? []
      if (declaring !== undefined) line = new RegExp(`^${declaring}(?:_bucket|_sum|_count)?(?:\\{.*\\})? -?[\\d.e+-]+$`)
      else assert.match(text, line)
    }
    // Other tests of this process have made thousands of series.
    const buckets = new Map<string, Array<Metrics.Sample>>()
    for (const sample of samples.filter(({ name }) => name.endsWith("_bucket"))) {
      const series = seriesOf(sample.name.replace(/_bucket$/, ""), sample.labels)
      buckets.set(series, [...(buckets.get(series) ?? []), sample])
    }
    for (const { labels, name, value } of samples.filter(({ name }) => name.endsWith("_count"))) {
      const own = buckets.get(seriesOf(name.replace(/_count$/, ""), labels)) ?? []
      const counts = own.map(({ value }) => value)
      assert.deepStrictEqual(
        counts,
        counts.toSorted((a, b) => a - b),
        name
      )
      assert.deepInclude(own.at(-1), { labels: { ...labels, le: "+Inf" }, value })
    }
  })

  it.effect("that the dashboard and the alerts name exist, with their labels", function* () {
    yield* drive
    const samples = yield* Metrics.scrape
    const read = (file: string) => readFileSync(`${root}/deploy/${file}`, "utf8")
    const dashboard: ReadonlyArray<string> = Array.from(
      read("grafana-dashboard.json").matchAll(/"expr": (".*")/g),
      ([, text = ""]) => JSON.parse(text)
    )
    const alerts = Schema.decodeUnknownSync(Rules)(load(read("alerts.yaml")))
    const expressions = [...dashboard, ...alerts.groups.flatMap(({ rules }) => rules.map(({ expr }) => expr))]
    assert.isAbove(expressions.length, 30)
    for (const expression of expressions) {
      for (const [, name = "", filter = ""] of expression.matchAll(/((?:gateway|process|nodejs)_\w+)(?:\{(.*?)\})?/g)) {
        const found = Metrics.samplesOf(samples, name)
        assert.isNotEmpty(found, name)
        const grouped = Array.from(expression.matchAll(/by \(([^)]*)\)/g), ([, by = ""]) => by.split(", ")).flat()
        const filtered = Array.from(filter.matchAll(/(\w+)(?:=|!)/g), ([, label = ""]) => label)
        for (const label of [...grouped, ...filtered].filter((one) => one !== "instance")) {
          assert.property(found[0]?.labels, label, `${label} in ${expression}`)
        }
      }
    }
  })
})
