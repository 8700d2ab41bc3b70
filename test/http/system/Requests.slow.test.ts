import { Effect } from "effect"
import { type Account, openAccount } from "../../harness/client/Account.ts"
import { bearer, call, chat, post, soon, talk } from "../../harness/client/HttpCalls.ts"
import { ServedProcess } from "../../harness/gateway/ServedGateway.ts"
import { assert, withLayer } from "../../harness/It.ts"
import { json, sse } from "../../harness/upstream/FakeUpstream.ts"
import { answers, chunk, gatewayProcess, streams, Upstreams } from "../../harness/upstream/Upstreams.ts"
import { ask, open } from "../connections/RawSocket.ts"

const served = gatewayProcess({ talk: {} }, { CORS_ORIGINS: "https://app.test", LOG_FORMAT: "json" })

const preflight = {
  method: "OPTIONS",
  headers: { origin: "https://app.test", "access-control-request-method": "POST" }
}

type Series = Readonly<Record<string, number>>

const sample = /^gateway_requests_total\{(.*)\} (\d+)$/gm

const counts = Effect.map(
  call("/metrics"),
  ({ text }): Series =>
    Object.fromEntries(Array.from(text.matchAll(sample), ([, labels = "", count]) => [labels, Number(count)]))
)

const labels = (surface: string, model: string, status: number, code = "") =>
  `surface="${surface}",model="${model}",status="${status}",code="${code}"`

/** Those that the scrapes themselves count. */
const scrapes = labels("system", "", 200)

/** What has been counted since, without the scrapes. */
const since = (before: Series, after: Series): Series =>
  Object.fromEntries(
    Object.entries(after).flatMap(([series, count]) => {
      const more = count - (before[series] ?? 0)
      return more === 0 || series === scrapes ? [] : [[series, more]]
    })
  )

const first = Effect.map(Upstreams, (upstreams) => upstreams.first)

const read = (path: string) => (account: Account) => call(path, { headers: bearer(account.secret) })

const asking = (reply: ReturnType<typeof answers>, body: unknown) => (account: Account) =>
  Effect.zipRight(
    Effect.flatMap(first, ({ script }) => script(reply)),
    chat(account, body)
  )

const draw = post("/v1/images/generations")
const picture = { model: "picture", prompt: "a tree", response_format: "b64_json" }

const leave = (account: Account) =>
  Effect.gen(function* () {
    yield* (yield* first).script(sse(chunk({ content: "one" }), Effect.never))
    const connection = yield* open
    const body = JSON.stringify({ ...talk("talk"), stream: true })
    yield* connection.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${account.secret}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    )
    yield* soon(Effect.sync(() => assert.include(connection.received(), "one")))
  }).pipe(Effect.scoped)

type Run = (account: Account) => Effect.Effect<unknown, unknown, Effect.Effect.Context<ReturnType<typeof leave>>>

const cases: ReadonlyArray<readonly [what: string, run: Run, counted: Series]> = [
  ["a list of models", read("/v1/models"), { [labels("models", "", 200)]: 1 }],
  ["the reference, like a scrape", read("/docs/reference"), {}],
  ["the credits", read("/v1/credits?x=1"), { [labels("credits", "", 200)]: 1 }],
  ["a list of videos", read("/v1//videos/"), { [labels("videos_read", "", 200)]: 1 }],
  ["an unknown video", read("/v1/videos/vid_1"), { [labels("videos_read", "", 404)]: 1 }],
  ["an unknown clip", read("/v1/videos/vid_1/content"), { [labels("videos_read", "", 404)]: 1 }],
  ["a read without a key", () => call("/v1/models"), { [labels("models", "", 401, "invalid_api_key")]: 1 }],
  ["an unknown file", () => call("/media/nothing"), { [labels("media", "", 404, "unknown_endpoint")]: 1 }],
  ["an unknown path", () => call("/nowhere/42"), { [labels("none", "", 404, "unknown_endpoint")]: 1 }],
  ["a browser's preflight", () => call("/v1/models", preflight), { [labels("preflight", "", 204)]: 1 }],
  ["a HEAD", () => call("/v1/models", { method: "HEAD" }), { [labels("models", "", 404, "unknown_endpoint")]: 1 }],
  ["a chat", asking(answers(), talk("talk")), { [labels("chat", "talk", 200)]: 1 }],
  ["a stream", asking(streams("a"), { ...talk("talk"), stream: true }), { [labels("chat", "talk", 200)]: 1 }],
  ["a failed chat", asking(json(500, {}), talk("talk")), { [labels("chat", "talk", 502, "upstream_error")]: 1 }],
  [
    "a broken stream",
    asking(sse(chunk({ content: "a" })), { ...talk("talk"), stream: true }),
    { [labels("chat", "talk", 200, "stream_error")]: 1 }
  ],
  ["a stream that is left", leave, { [labels("chat", "talk", 499, "client_closed")]: 1 }],
  ["no JSON", (account) => chat(account, "{"), { [labels("chat", "", 400)]: 1 }],
  ["an invalid field", (account) => chat(account, { ...talk("talk"), n: 2 }), { [labels("chat", "talk", 400)]: 1 }],
  [
    "a model that customers invent",
    (account) => Effect.forEach(["a", "b", '"\n'], (model) => chat(account, talk(model))),
    { [labels("chat", "unknown", 404, "model_not_found")]: 3 }
  ],
  [
    "another surface's model",
    (account) => chat(account, talk("picture")),
    { [labels("chat", "picture", 404, "model_not_found")]: 1 }
  ],
  [
    "a chat without a key",
    () => chat({ secret: "ggw_nobody" }, talk("talk")),
    { [labels("chat", "", 401, "invalid_api_key")]: 1 }
  ],
  [
    "a replay",
    (account) =>
      Effect.zipRight(
        draw(account, picture, { headers: { "idempotency-key": "k" } }),
        draw(account, picture, { headers: { "idempotency-key": "k" } })
      ),
    { [labels("image", "picture", 200)]: 2 }
  ],
  ["what is no HTTP", () => ask("hello\r\n\r\n"), { [labels("none", "", 400)]: 1 }],
  [
    "CONNECT",
    () => ask("CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n"),
    { [labels("none", "", 404, "unknown_endpoint")]: 1 }
  ]
]

withLayer(served)("an answer", (it) => {
  it.effect.each(cases)("to %s is counted once", function* ([, run, counted]) {
    const account = yield* openAccount({})
    const before = yield* counts
    yield* run(account)
    yield* soon(Effect.map(counts, (after) => assert.deepStrictEqual(since(before, after), counted)))
  })

  it.effect("leaves one line without a secret, a prompt or an output", function* () {
    const { stderr } = yield* ServedProcess
    const account = yield* openAccount({})
    yield* (yield* first).script(answers("my secret output"))
    const { headers } = yield* chat(account, talk("talk", "my secret prompt"))
    const id = headers.get("x-request-id") ?? ""
    yield* soon(
      Effect.sync(() => {
        const lines = stderr().split("\n")
        const [line = "", ...more] = lines.filter((one) => one.includes(id))
        assert.isEmpty(more)
        const { organization, key_id, model, status, charge_usd } = JSON.parse(line)
        assert.deepStrictEqual(
          { organization, key_id, model, status, charge_usd },
          { organization: account.org, key_id: account.key, model: "talk", status: 200, charge_usd: "0.00002" }
        )
      })
    )
    assert.notInclude(stderr(), account.secret)
    assert.notInclude(stderr(), "my secret")
    assert.notMatch(stderr(), /"path":"\/metrics"/)
  })
})
