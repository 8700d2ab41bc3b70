import { Effect, Schema, Struct } from "effect"
import { openAccount } from "../../harness/client/Account.ts"
import { assertRefused, bearer, call, chat, refusals, soon, talk } from "../../harness/client/HttpCalls.ts"
import * as Served from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json } from "../../harness/upstream/FakeUpstream.ts"
import { answers, gateway, onFirst, onSecond, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { ask } from "../connections/RawSocket.ts"

const models = { talk: {}, other: {}, "moves-on": { routes: [onFirst, onSecond] } }

const forwarding = [
  "forwarded",
  "via",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-forwarded-server",
  "x-real-ip",
  "x-client-ip",
  "cf-connecting-ip",
  "cf-ray",
  "cdn-loop",
  "true-client-ip",
  "x-cluster-client-ip",
  "x-envoy-external-address",
  "x-nginx-proxy",
  "x-original-forwarded-for",
  "x-original-host",
  "x-remote-addr",
  "x-azure-clientip",
  "x-appengine-user-ip"
]

/** The sum of all series with the labels. */
const sampleOf = (exposition: string, name: string, labels: Readonly<Record<string, string>>): number =>
  exposition
    .split("\n")
    .filter(
      (one) =>
        one.startsWith(`${name}{`) && Object.entries(labels).every(([key, value]) => one.includes(`${key}="${value}"`))
    )
    .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0)

const metrics = Effect.map(call("/metrics"), ({ status, text }) => {
  assert.strictEqual(status, 200)
  return text
})

withLayer(gateway(models))("the gateway", (it) => {
  it.effect("answers health and readiness without a key", function* () {
    for (const [path, body] of [
      ["/healthz", { status: "ok" }],
      ["/readyz", { status: "ready" }]
    ] as const) {
      const { headers, status, text } = yield* call(path)
      assert.strictEqual(status, 200)
      assert.deepStrictEqual<unknown>(JSON.parse(text), body)
      assert.match(headers.get("x-request-id") ?? "", /^req_/)
    }
  })

  it.effect("shows metrics to this machine only, and never through a proxy", function* () {
    const { headers } = yield* call("/metrics")
    assert.strictEqual(headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8")
    for (const name of forwarding) {
      for (const value of ["127.0.0.1", "", "x"]) {
        assertRefused(yield* call("/metrics", { headers: { [name]: value } }), refusals.noEndpoint)
      }
    }
  })

  it.effect("shows them, and the console, only under a name of this machine", function* () {
    const { url } = yield* Served.ServedGateway
    const { host, port } = new URL(url)
    const statuses = (path: string, names: ReadonlyArray<string>) =>
      Effect.forEach(names, (name) =>
        Effect.map(ask(`GET ${path} HTTP/1.1\r\nhost: ${name}\r\nconnection: close\r\n\r\n`), ({ status }) => status)
      )
    const own = [host, "127.0.0.1", "127.1.2.3", "LocalHost", "localhost.", `localhost:${port}`, `[::1]:${port}`]
    const foreign = [
      "rebound.example",
      `rebound.example:${port}`,
      "127.0.0.1.example",
      "127.0.0.1@a.example",
      "",
      "10.0.0.1"
    ]
    for (const path of ["/metrics", "/console", "/admin/v1/openapi.json"]) {
      assert.notInclude(yield* statuses(path, own), 404, path)
      assert.deepStrictEqual([...new Set(yield* statuses(path, foreign))], [404], path)
    }
    assert.deepStrictEqual(yield* statuses("/admin/v1/organizations", [host, "rebound.example"]), [401, 404])
  })

  it.effect("counts requests, refusals and attempts in its metrics", function* () {
    const { first, second } = yield* Upstreams
    const account = yield* openAccount({})
    const before = yield* metrics
    yield* first.script(answers(), answers(), json(503, {}))
    yield* second.script(answers())
    yield* chat(account, talk("talk"))
    yield* chat(account, { ...talk("talk"), stream: true })
    yield* chat(account, talk("moves-on"))
    yield* chat(account, "{")
    yield* chat({ secret: "ggw_nobody" }, talk("talk"))
    const more: ReadonlyArray<readonly [name: string, labels: Readonly<Record<string, string>>, times: number]> = [
      ["gateway_requests_total", { surface: "chat", status: "200" }, 3],
      ["gateway_requests_total", { surface: "chat", status: "400" }, 1],
      ["gateway_refused_total", { reason: "invalid_api_key" }, 1],
      ["gateway_attempts_total", { provider: "first", outcome: "ok" }, 2],
      ["gateway_attempts_total", { provider: "first", outcome: "retry" }, 1],
      ["gateway_attempts_total", { provider: "second", outcome: "ok" }, 1]
    ]
    yield* soon(
      Effect.map(metrics, (after) => {
        for (const [name, labels, times] of more) {
          const told = `${name} ${JSON.stringify(labels)}`
          assert.strictEqual(sampleOf(after, name, labels) - sampleOf(before, name, labels), times, told)
        }
      })
    )
  })

  it.effect("writes metrics in the text format, with each name declared once", function* () {
    const text = yield* metrics
    assert.isTrue(text.endsWith("\n"))
    const lines = text.trimEnd().split("\n")
    const declared = lines.flatMap((line) => /^# TYPE (\S+) (?:counter|gauge|histogram)$/.exec(line)?.[1] ?? [])
    assert.strictEqual(new Set(declared).size, declared.length)
    for (const line of lines.filter((one) => !one.startsWith("#"))) {
      const [, name = "", value] = /^([a-z_]+)(?:\{.*\})? (\S+)$/.exec(line) ?? []
      assert.isTrue(
        declared.some((one) => name === one || name.startsWith(`${one}_`)),
        line
      )
      assert.isFalse(Number.isNaN(Number(value)), line)
    }
  })

  it.effect("serves its OpenAPI document without a key, with the chat models", function* () {
    const Described = Schema.parseJson(
      Schema.Struct({
        openapi: Schema.String,
        info: Schema.Struct({ version: Schema.String }),
        servers: Schema.Array(Schema.Struct({ url: Schema.String })),
        components: Schema.Struct({
          schemas: Schema.Struct({
            ChatCompletionRequest: Schema.Struct({
              properties: Schema.Struct({ model: Schema.Struct({ enum: Schema.Array(Schema.String) }) })
            })
          })
        })
      })
    )
    const { headers, status, text } = yield* call("/v1/openapi.json")
    assert.strictEqual(status, 200)
    assert.strictEqual(headers.get("content-type"), "application/json; charset=utf-8")
    const { components, info, servers } = yield* Schema.decodeUnknown(Described)(text)
    assert.strictEqual(info.version, "1.0.0")
    assert.isTrue(servers.every(({ url }) => url.endsWith("/v1")))
    assert.deepStrictEqual(components.schemas.ChatCompletionRequest.properties.model.enum, Object.keys(models))
  })

  it.effect("lists the models in the catalog's order", function* () {
    const List = Schema.parseJson(
      Schema.Struct({
        object: Schema.Literal("list"),
        data: Schema.Array(
          Schema.Struct({
            id: Schema.String,
            object: Schema.Literal("model"),
            created: Schema.Number,
            owned_by: Schema.Literal("generation-gateway"),
            surface: Schema.String,
            pricing: Schema.Struct({ prompt_per_1m_usd: Schema.optional(Schema.Number), approximate: Schema.Boolean })
          })
        )
      })
    )
    const { text } = yield* call("/v1/models", { headers: bearer((yield* openAccount({})).secret) })
    const { data } = yield* Schema.decodeUnknown(List)(text)
    const chats = data.filter(({ surface }) => surface === "chat")
    assert.deepStrictEqual(chats.map(Struct.get("id")), Object.keys(models))
    for (const { pricing } of chats) assert.deepInclude(pricing, { prompt_per_1m_usd: 1, approximate: true })
  })
})

withLayer(gateway(models, { METRICS_PUBLIC: "true", PUBLIC_URL: "https://gateway.example/" }))(
  "the gateway with public metrics",
  (it) => {
    it.effect("shows metrics to everybody, through any proxy", function* () {
      for (const name of forwarding) {
        assert.strictEqual((yield* call("/metrics", { headers: { [name]: "203.0.113.1" } })).status, 200)
      }
    })

    it.effect("names the public address in its OpenAPI document", function* () {
      assert.include((yield* call("/v1/openapi.json")).text, '"servers":[{"url":"https://gateway.example/v1"}]')
    })
  }
)
